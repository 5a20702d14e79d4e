// A kernel for CUDA devices, as a strategy's .cu file lists it: exec/strategies/NAME.cu defines
// `std::vector<CudaKernel> NAME_cuda_kernels()`. For files that nvcc does not compile, too.
#pragma once

#include <cstdint>
#include <vector>

namespace kilokv::engine {

struct CudaKernel {
  const char* name;
  const void* function;  // a __global__ one that takes its arguments as one struct, over HostSpace
  std::uint32_t block_threads;
  bool takes_shared_words = false;  // of its launch
  bool runs_in_clusters = false;    // of blocks; from compute capability 9.0 on
};

// Of all strategies: the build makes it from engine/strategies.cmake.
std::vector<CudaKernel> all_cuda_kernels();

}  // namespace kilokv::engine
