#include "engine/exec/device/cuda_strategy.cuh"
#include "engine/stm/papers/local.hpp"

namespace kilokv::engine {
namespace {

// So many threads shared a local memory in the paper. Here they share the stage of one block.
constexpr int kLocalBlockThreads = 256;
constexpr int kLocalBlocksEachMin = 2;
// In clusters, a block's part of the stage may fill the shared memory of a multiprocessor. Then only one block fits.
constexpr int kClusterBlocksEachMin = 1, kTimedBlocksEachMin = 1;

__global__ __launch_bounds__(kLocalBlockThreads, kLocalBlocksEachMin) void local_kernel(
    const __grid_constant__ LocalArguments<HostSpace> arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Local<CudaPlatform>>(platform, arguments).run();
}

// As local_kernel, but also measures where the time goes. That takes registers, so a multiprocessor may have room for
// one block only.
__global__ __launch_bounds__(kLocalBlockThreads, kTimedBlocksEachMin) void local_times_kernel(
    const __grid_constant__ LocalArguments<HostSpace> arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Local<CudaPlatform, TimedLocalRules>>(platform, arguments).run();
}

// The stage is in the shared memory of a cluster's blocks. The memory of a block exists only while the block runs. So
// the barriers make sure that all blocks have started before one reads it, and that none ends too early.
__global__ __launch_bounds__(kLocalBlockThreads, kClusterBlocksEachMin) void local_cluster_kernel(
    const __grid_constant__ LocalArguments<HostSpace> arguments) {
  if constexpr (CudaClusterPlatform::kIsThere) {
    CudaClusterPlatform platform;
    platform.cluster_barrier();
    TicketedRun<CudaClusterPlatform, Local<CudaClusterPlatform>>(platform, arguments).run();
    platform.cluster_barrier();
  }
}

CudaKernel stage_kernel(const char* name, void (*kernel)(const LocalArguments<HostSpace>), bool in_clusters) {
  CudaKernel made = cuda_kernel<LocalArguments>(name, kernel, kLocalBlockThreads);
  made.takes_shared_words = true;
  made.runs_in_clusters = in_clusters;
  return made;
}

}  // namespace

std::vector<CudaKernel> local_cuda_kernels() {
  return {stage_kernel("local", local_kernel, false), stage_kernel("local in clusters", local_cluster_kernel, true),
          stage_kernel("local with times", local_times_kernel, false)};
}

}  // namespace kilokv::engine
