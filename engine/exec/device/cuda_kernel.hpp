// A kernel for CUDA devices. Each file exec/strategies/NAME.cu lists its kernels: it defines
// `std::vector<CudaKernel> NAME_cuda_kernels()`. Files that nvcc does not compile may include this header, too.
#pragma once

#include <cstdint>
#include <vector>

namespace kilokv::engine {

struct CudaKernel {
  const char* name;
  const void* function;  // a __global__ function that takes its arguments as one struct, over HostSpace
  std::uint32_t block_threads;
  bool takes_shared_words = false;  // each launch says how many shared words a block gets
  bool runs_in_clusters = false;    // of blocks; this needs compute capability 9.0 or higher
};

// The kernels of all strategies. The build makes this function from engine/strategies.cmake.
std::vector<CudaKernel> all_cuda_kernels();

}  // namespace kilokv::engine
