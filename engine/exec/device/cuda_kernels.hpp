// The kernels of a CUDA device. Without nvcc this is the same face, and open_cuda() says that there is none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/device/device_kernels.hpp"

namespace kilokv::engine {

// UNAVAILABLE, with the reason: no driver, no device, or one that this build has no code for.
Result<OpenedDevice> open_cuda();

// What the compiler made of a kernel, and what that means on the device that is there.
struct KernelFacts {
  std::string name;
  int registers = 0;      // of a thread
  int shared_bytes = 0;   // of a block, static
  int spilled_bytes = 0;  // of a thread, in local memory
  int block_threads = 0;  // that it is launched with
  int blocks_each = 0;    // blocks that one multiprocessor runs at once
  double occupancy = 0;   // share of a multiprocessor's threads that these are
};
// Requires a device.
std::vector<KernelFacts> kernel_facts();

}  // namespace kilokv::engine
