#include "engine/exec/device/cuda_strategy.cuh"
#include "engine/stm/papers/gpustm.hpp"

namespace kilokv::engine {
namespace {

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void gpustm_kernel(
    const __grid_constant__ Gpustm<CudaPlatform>::Arguments arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Gpustm<CudaPlatform>>(platform, arguments).run();
}

}  // namespace

std::vector<CudaKernel> gpustm_cuda_kernels() { return {cuda_kernel("gpustm", gpustm_kernel)}; }

}  // namespace kilokv::engine
