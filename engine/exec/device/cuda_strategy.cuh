// What a strategy's .cu file needs.
#pragma once

#include "engine/exec/device/cuda_kernel.hpp"
#include "engine/platform/concept.hpp"
#include "engine/platform/cuda.cuh"
#include "engine/platform/device_pointer.hpp"

namespace kilokv::engine {

constexpr int kBlockThreads = 128;
// Blocks that a multiprocessor must be able to run at once: more would make the compiler spill registers.
constexpr int kBlocksEachMin = 4;

// The host packs arguments over DeviceSpace, whose pointers hold the bits of a CUDA device's.
template <template <class> class Arguments>
CudaKernel cuda_kernel(const char* name, void (*kernel)(const Arguments<HostSpace>),
                       std::uint32_t block_threads = kBlockThreads) {
  static_assert(sizeof(Arguments<HostSpace>) == sizeof(Arguments<DeviceSpace>));
  return {name, reinterpret_cast<const void*>(kernel), block_threads};
}

}  // namespace kilokv::engine
