// The kernels of a CUDA device. In a build without nvcc the interface is the same, and open_cuda() fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/device/device_kernels.hpp"

namespace kilokv::engine {

// Opens the CUDA device. UNAVAILABLE: there is no driver or no device, or this build has no code for the device. The
// message says which.
Result<OpenedDevice> open_cuda();

// What a kernel needs, as the compiler made it, and what follows for this machine's device.
struct KernelFacts {
  std::string name;
  int registers = 0;      // for each thread
  int shared_bytes = 0;   // static shared memory of each block
  int spilled_bytes = 0;  // local memory of each thread, for registers that did not suffice
  int block_threads = 0;  // threads of a block
  int blocks_each = 0;    // blocks that one multiprocessor runs at once
  double occupancy = 0;   // the threads of these blocks / the most threads that a multiprocessor runs
};
// The facts of all kernels. Requires: there is a device.
std::vector<KernelFacts> kernel_facts();

}  // namespace kilokv::engine
