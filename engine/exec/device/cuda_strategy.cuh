// What the .cu file of a strategy needs.
#pragma once

#include "engine/exec/device/cuda_kernel.hpp"
#include "engine/platform/concept.hpp"
#include "engine/platform/cuda.cuh"
#include "engine/platform/device_pointer.hpp"

namespace kilokv::engine {

constexpr int kBlockThreads = 128;
// So many blocks must fit on a multiprocessor at once. With a larger number, the compiler would spill registers.
constexpr int kBlocksEachMin = 4;

// Describes a kernel. The host packs its arguments over DeviceSpace, whose pointers hold the bits of raw CUDA pointers.
// So both forms must have the same size.
template <template <class> class Arguments>
CudaKernel cuda_kernel(const char* name, void (*kernel)(const Arguments<HostSpace>),
                       std::uint32_t block_threads = kBlockThreads) {
  static_assert(sizeof(Arguments<HostSpace>) == sizeof(Arguments<DeviceSpace>));
  return {name, reinterpret_cast<const void*>(kernel), block_threads};
}

}  // namespace kilokv::engine
