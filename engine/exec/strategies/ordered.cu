#include "engine/exec/device/cuda_strategy.cuh"
#include "engine/stm/ordered.hpp"

namespace kilokv::engine {
namespace {

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void ordered_kernel(
    const __grid_constant__ OrderedArguments<HostSpace> arguments) {
  CudaPlatform platform;
  OrderedRun<CudaPlatform>(platform, arguments).run();
}

}  // namespace

std::vector<CudaKernel> ordered_cuda_kernels() { return {cuda_kernel<OrderedArguments>("ordered", ordered_kernel)}; }

}  // namespace kilokv::engine
