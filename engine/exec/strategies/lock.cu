#include "engine/exec/device/cuda_strategy.cuh"
#include "engine/stm/papers/lock.hpp"

namespace kilokv::engine {
namespace {

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void lock_kernel(
    const __grid_constant__ Locking<CudaPlatform>::Arguments arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Locking<CudaPlatform>>(platform, arguments).run();
}

}  // namespace

std::vector<CudaKernel> lock_cuda_kernels() { return {cuda_kernel("lock", lock_kernel)}; }

}  // namespace kilokv::engine
