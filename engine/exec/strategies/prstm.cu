#include "engine/exec/device/cuda_strategy.cuh"
#include "engine/stm/papers/prstm.hpp"

namespace kilokv::engine {
namespace {

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void prstm_kernel(
    const __grid_constant__ Prstm<CudaPlatform>::Arguments arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Prstm<CudaPlatform>>(platform, arguments).run();
}

}  // namespace

std::vector<CudaKernel> prstm_cuda_kernels() { return {cuda_kernel("prstm", prstm_kernel)}; }

}  // namespace kilokv::engine
