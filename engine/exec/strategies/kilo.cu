#include "engine/exec/device/cuda_strategy.cuh"
#include "engine/stm/papers/kilo.hpp"

namespace kilokv::engine {
namespace {

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void kilo_kernel(
    const __grid_constant__ Kilo<CudaPlatform>::Arguments arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Kilo<CudaPlatform>>(platform, arguments).run();
}

}  // namespace

std::vector<CudaKernel> kilo_cuda_kernels() { return {cuda_kernel("kilo", kilo_kernel)}; }

}  // namespace kilokv::engine
