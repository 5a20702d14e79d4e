#include "engine/exec/device/cuda_kernels.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "engine/platform/cuda.cuh"
#include "engine/platform/cuda_device.hpp"
#include "engine/stm/ordered.hpp"
#include "engine/stm/papers/gpustm.hpp"
#include "engine/stm/papers/kilo.hpp"
#include "engine/stm/papers/local.hpp"
#include "engine/stm/papers/lock.hpp"
#include "engine/stm/papers/prstm.hpp"

namespace kilokv::engine {
namespace {

constexpr int kBlockThreads = 128;
// Blocks that a multiprocessor must be able to run at once: more would make the compiler spill registers.
constexpr int kBlocksEachMin = 4;
// Of `local`: as many as shared a local memory in its paper. The stage is a block's.
constexpr int kLocalBlockThreads = 256;
constexpr int kLocalBlocksEachMin = 2;
// In clusters its stage is as large as a multiprocessor's memory.
constexpr int kClusterBlocksEachMin = 1;
constexpr int block_threads_of(TicketedStrategy strategy) {
  return strategy == TicketedStrategy::local ? kLocalBlockThreads : kBlockThreads;
}

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void ordered_kernel(
    const __grid_constant__ OrderedArguments<HostSpace> arguments) {
  CudaPlatform platform;
  OrderedRun<CudaPlatform>(platform, arguments).run();
}

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void prstm_kernel(
    const __grid_constant__ TicketedArguments<HostSpace> arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Prstm<CudaPlatform>>(platform, arguments).run();
}

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void lock_kernel(
    const __grid_constant__ TicketedArguments<HostSpace> arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Locking<CudaPlatform>>(platform, arguments).run();
}

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void gpustm_kernel(
    const __grid_constant__ TicketedArguments<HostSpace> arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Gpustm<CudaPlatform>>(platform, arguments).run();
}

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void kilo_kernel(
    const __grid_constant__ TicketedArguments<HostSpace> arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Kilo<CudaPlatform>>(platform, arguments).run();
}

__global__ __launch_bounds__(kLocalBlockThreads, kLocalBlocksEachMin) void local_kernel(
    const __grid_constant__ TicketedArguments<HostSpace> arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Local<CudaPlatform>>(platform, arguments).run();
}

// Tells where the time goes, which takes registers.
__global__ __launch_bounds__(kLocalBlockThreads, kLocalBlocksEachMin) void local_times_kernel(
    const __grid_constant__ TicketedArguments<HostSpace> arguments) {
  CudaPlatform platform;
  TicketedRun<CudaPlatform, Local<CudaPlatform, TimedLocalRules>>(platform, arguments).run();
}

// Its stage is in the memory of a cluster's blocks. A block's is there while the block runs: hence the barriers.
template <class Rules>
__device__ void run_local_in_clusters(const TicketedArguments<HostSpace>& arguments) {
  if constexpr (CudaClusterPlatform::kIsThere) {
    CudaClusterPlatform platform;
    platform.cluster_barrier();
    TicketedRun<CudaClusterPlatform, Local<CudaClusterPlatform, Rules>>(platform, arguments).run();
    platform.cluster_barrier();
  }
}

__global__ __launch_bounds__(kLocalBlockThreads, kClusterBlocksEachMin) void local_cluster_kernel(
    const __grid_constant__ TicketedArguments<HostSpace> arguments) {
  run_local_in_clusters<LocalRules>(arguments);
}

__global__ __launch_bounds__(kLocalBlockThreads, kClusterBlocksEachMin) void local_cluster_times_kernel(
    const __grid_constant__ TicketedArguments<HostSpace> arguments) {
  run_local_in_clusters<TimedLocalRules>(arguments);
}

using TicketedKernel = void (*)(const TicketedArguments<HostSpace>);
TicketedKernel kernel_of(TicketedStrategy strategy) {
  switch (strategy) {
    case TicketedStrategy::prstm: return prstm_kernel;
    case TicketedStrategy::lock: return lock_kernel;
    case TicketedStrategy::gpustm: return gpustm_kernel;
    case TicketedStrategy::kilo: return kilo_kernel;
    case TicketedStrategy::local: break;
  }
  return local_kernel;
}
TicketedKernel local_kernel_of(bool in_clusters, bool times) {
  if (in_clusters) return times ? local_cluster_times_kernel : local_cluster_kernel;
  return times ? local_times_kernel : local_kernel;
}

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void bulk_kernel(
    const __grid_constant__ BulkArguments<HostSpace> arguments) {
  CudaPlatform platform;
  BulkRun<CudaPlatform>(platform, arguments).run();
}

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void validator_kernel(
    const __grid_constant__ ValidatorArguments<HostSpace> arguments) {
  CudaPlatform platform;
  using Check = LaneCheck<CudaPlatform>;
  ValidatorBack<CudaPlatform, Check>(platform, arguments, Check(arguments)).serve();
}

__global__ __launch_bounds__(kBlockThreads, kBlocksEachMin) void scatter_kernel(
    const __grid_constant__ ScatterArguments<HostSpace> arguments) {
  CudaPlatform platform;
  scatter_cells(platform, arguments);
}

// A DevicePointer of a CUDA device holds the bits of the pointer.
template <template <class> class Arguments>
Arguments<HostSpace> raw(const Arguments<DeviceSpace>& arguments) {
  return std::bit_cast<Arguments<HostSpace>>(arguments);
}

Status to_status(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return {};
  return Status(StatusCode::internal, std::string(call) + ": " + cudaGetErrorString(error));
}

class CudaKernels final : public DeviceKernels {
 public:
  explicit CudaKernels(CudaDevice* device) : device_(*device) {}

  // Blocks that run side by side: a cooperative launch takes no more.
  Status prepare() {
    int multiprocessors = 0;
    cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
    int ordered_each = 0, bulk_each = 0, validator_each = 0;
    if (error == cudaSuccess) {
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&ordered_each, ordered_kernel, kBlockThreads, 0);
    }
    if (error == cudaSuccess) {
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&bulk_each, bulk_kernel, kBlockThreads, 0);
    }
    int shared_bytes = 0;
    if (error == cudaSuccess) {
      error = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    }
    if (error == cudaSuccess) {
      part_words_max_ = static_cast<std::size_t>(shared_bytes) / sizeof(std::uint64_t);
      error = allow_shared(false, shared_bytes);
    }
    if (error == cudaSuccess) part_bits_max_ = find_part_bits(shared_bytes);
    multiprocessors_ = static_cast<std::uint32_t>(multiprocessors);
    if (error == cudaSuccess) {
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&validator_each, validator_kernel, kBlockThreads, 0);
    }
    for (const TicketedStrategy strategy : kTicketedStrategies) {
      int each = 0;
      if (error == cudaSuccess) {
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel_of(strategy), kBlockThreads, 0);
      }
      ticketed_blocks_max_[static_cast<std::size_t>(strategy)] = static_cast<std::uint32_t>(each * multiprocessors);
    }
    ordered_blocks_max_ = static_cast<std::uint32_t>(ordered_each * multiprocessors);
    bulk_blocks_max_ = static_cast<std::uint32_t>(bulk_each * multiprocessors);
    validator_blocks_ = static_cast<std::uint32_t>(std::min(validator_each, kValidatorBlocksEach) * multiprocessors);
    return to_status(error, "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  }

  std::uint32_t ordered_threads(std::uint32_t transactions) const override {
    return std::min(blocks_for(transactions), ordered_blocks_max_) * kBlockThreads;
  }
  std::uint32_t ticketed_threads(TicketedStrategy strategy, std::uint32_t wanted) const override {
    return std::min(blocks_for(wanted), ticketed_blocks_max_[static_cast<std::size_t>(strategy)]) * kBlockThreads;
  }
  std::uint32_t group_width() const override { return CudaPlatform::kGroupWidth; }
  std::uint32_t part_bits_max() const override { return part_bits_max_; }
  std::uint32_t stage_threads(std::uint32_t part_bits) const override { return kLocalBlockThreads << part_bits; }
  std::uint32_t stage_slots_max(std::uint32_t signature_bits, std::uint32_t part_bits) const override {
    return engine::stage_slots_max(part_words_max_, signature_bits, stage_threads(part_bits), CudaPlatform::kGroupWidth,
                                   part_bits);
  }
  std::uint32_t local_threads(std::uint32_t wanted, std::uint64_t part_words, std::uint32_t part_bits,
                              bool times) const override {
    const TicketedKernel kernel = local_kernel_of(part_bits > 0, times);
    const std::size_t bytes = part_words * sizeof(std::uint64_t);
    if (part_bits > 0) {
      const std::uint32_t cluster_threads = stage_threads(part_bits);
      const std::uint32_t clusters_max = std::max(clusters_at_once(kernel, 1u << part_bits, bytes), 1u);
      return std::min(blocks_for(wanted, cluster_threads), clusters_max) * cluster_threads;
    }
    int each = 0;
    if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, kLocalBlockThreads, bytes) != cudaSuccess) {
      each = 1;
    }
    const std::uint32_t blocks_max = std::max(static_cast<std::uint32_t>(each), 1u) * multiprocessors_;
    return std::min(blocks_for(wanted, kLocalBlockThreads), blocks_max) * kLocalBlockThreads;
  }
  // A round costs a grid barrier, some microseconds, and about a nanosecond for each of those that it had; one
  // thread alone runs a transaction in one microsecond or a few, and looks at a position in some tens of nanoseconds.
  OrderedTuning tuning() const override {
    return {.decided_min = 8, .divisor = 1024, .walks = true, .few_of_max = 256};
  }

  Status ordered(DeviceStream stream, const OrderedArguments<DeviceSpace>& arguments) override {
    return launch_together(ordered_kernel, "launch of ordered", raw(arguments),
                           ordered_threads(arguments.batch.size) / kBlockThreads, stream);
  }
  Status ticketed(DeviceStream stream, TicketedStrategy strategy,
                  const TicketedArguments<DeviceSpace>& arguments) override {
    const auto block_threads = static_cast<std::uint32_t>(block_threads_of(strategy));
    TicketedKernel kernel = kernel_of(strategy);
    std::size_t shared_bytes = 0;
    if (strategy == TicketedStrategy::local) {
      const LocalArguments<DeviceSpace>& local = arguments.local;
      shared_bytes =
          sizeof(std::uint64_t) * stage_part_words(local.staged, arguments.tuning.local.signature_bits, local.threads,
                                                   CudaPlatform::kGroupWidth, local.part_bits);
      kernel = local_kernel_of(local.part_bits > 0, arguments.tuning.local.times);
      if (local.part_bits > 0) return launch_clusters(kernel, arguments, shared_bytes, stream);
    }
    return launch_together(kernel, "launch of a strategy with tickets", raw(arguments),
                           arguments.threads / block_threads, stream, block_threads, shared_bytes);
  }
  Status bulk(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) override {
    return launch_together(bulk_kernel, "launch of bulk", raw(arguments),
                           std::min(blocks_for(arguments.size), bulk_blocks_max_), stream);
  }
  std::uint32_t validator_threads() const override { return validator_blocks_ * kBlockThreads; }
  Status validator(DeviceStream stream, const ValidatorArguments<DeviceSpace>& arguments) override {
    return launch_together(validator_kernel, "launch of validator", raw(arguments), validator_blocks_, stream);
  }
  Status scatter(DeviceStream stream, const ScatterArguments<DeviceSpace>& arguments) override {
    scatter_kernel<<<blocks_for(arguments.size), kBlockThreads, 0, stream_of(stream)>>>(raw(arguments));
    return to_status(cudaGetLastError(), "launch of scatter");
  }

 private:
  static std::uint32_t blocks_for(std::uint32_t items, std::uint32_t block_threads = kBlockThreads) {
    return std::max((items + block_threads - 1) / block_threads, 1u);
  }
  cudaStream_t stream_of(DeviceStream stream) const { return static_cast<cudaStream_t>(device_.stream(stream)); }

  template <class Arguments>
  Status launch_together(void (*kernel)(Arguments), const char* call, Arguments arguments, std::uint32_t blocks,
                         DeviceStream stream, std::uint32_t block_threads = kBlockThreads,
                         std::size_t shared_bytes = 0) {
    void* values[] = {&arguments};
    return to_status(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(blocks),
                                                 dim3(block_threads), values, shared_bytes, stream_of(stream)),
                     call);
  }

  // A launch of `local` in clusters of so many blocks. `attributes`: two, which outlive it.
  static cudaLaunchConfig_t in_clusters(std::uint32_t blocks, std::uint32_t each, std::size_t shared_bytes,
                                        cudaLaunchAttribute* attributes) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = each;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeCooperative;
    attributes[1].val.cooperative = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(kLocalBlockThreads);
    config.dynamicSmemBytes = shared_bytes;
    config.attrs = attributes;
    config.numAttrs = 2;
    return config;
  }
  // Clusters that run side by side: a cooperative launch takes no more. 0: the device has none of this size.
  static std::uint32_t clusters_at_once(TicketedKernel kernel, std::uint32_t each, std::size_t shared_bytes) {
    cudaLaunchAttribute attributes[2]{};
    const cudaLaunchConfig_t config = in_clusters(each, each, shared_bytes, attributes);
    int clusters = 0;
    if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess) {
      return static_cast<std::uint32_t>(std::max(clusters, 0));
    }
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  // The most blocks of which a stage can have all their memory; 0: one, for clusters are from compute capability 9.0
  // on, and code for them is in what was compiled for that.
  static std::uint32_t find_part_bits(int shared_bytes) {
    int has_clusters = 0;
    cudaFuncAttributes attributes{};
    const bool is_there = cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0) == cudaSuccess &&
                          has_clusters != 0 &&
                          cudaFuncGetAttributes(&attributes, local_cluster_kernel) == cudaSuccess &&
                          attributes.ptxVersion >= 90 && allow_shared(true, shared_bytes) == cudaSuccess;
    const auto bytes = static_cast<std::size_t>(shared_bytes);
    std::uint32_t bits = is_there ? kPartBitsMax : 0;
    while (bits > 0 && clusters_at_once(local_cluster_times_kernel, 1u << bits, bytes) == 0) --bits;
    while (bits > 0 && clusters_at_once(local_cluster_kernel, 1u << bits, bytes) == 0) --bits;
    static_cast<void>(cudaGetLastError());
    return bits;
  }
  // As much of a block's memory as the stage may want.
  static cudaError_t allow_shared(bool in_clusters, int bytes) {
    cudaError_t error = cudaSuccess;
    for (const bool times : {false, true}) {
      if (error != cudaSuccess) break;
      error =
          cudaFuncSetAttribute(local_kernel_of(in_clusters, times), cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    }
    return error;
  }
  Status launch_clusters(TicketedKernel kernel, const TicketedArguments<DeviceSpace>& arguments,
                         std::size_t shared_bytes, DeviceStream stream) {
    cudaLaunchAttribute attributes[2]{};
    cudaLaunchConfig_t config =
        in_clusters(arguments.threads / kLocalBlockThreads, 1u << arguments.local.part_bits, shared_bytes, attributes);
    config.stream = stream_of(stream);
    return to_status(cudaLaunchKernelEx(&config, kernel, raw(arguments)), "launch of local in clusters");
  }

  CudaDevice& device_;
  static constexpr std::uint32_t kPartBitsMax = std::countr_zero(kStageBlocksMax);
  // More threads hide no more of the latency of a lookup, and make each of the barriers between blocks slower.
  static constexpr int kValidatorBlocksEach = 4;

  std::uint32_t ordered_blocks_max_ = 1, bulk_blocks_max_ = 1, multiprocessors_ = 1, validator_blocks_ = 1;
  std::size_t part_words_max_ = 0;   // of a stage, in a block
  std::uint32_t part_bits_max_ = 0;  // of a stage
  std::array<std::uint32_t, std::size(kTicketedStrategies)> ticketed_blocks_max_{};
};

template <class Kernel>
KernelFacts facts_of(const char* name, Kernel kernel, int block_threads = kBlockThreads) {
  KernelFacts facts;
  facts.name = name;
  facts.block_threads = block_threads;
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)) != cudaSuccess) return facts;
  facts.registers = attributes.numRegs;
  facts.shared_bytes = static_cast<int>(attributes.sharedSizeBytes);
  facts.spilled_bytes = static_cast<int>(attributes.localSizeBytes);
  int threads_max = 1;
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&facts.blocks_each, kernel, block_threads, 0) == cudaSuccess &&
      cudaDeviceGetAttribute(&threads_max, cudaDevAttrMaxThreadsPerMultiProcessor, 0) == cudaSuccess) {
    facts.occupancy = static_cast<double>(facts.blocks_each) * block_threads / threads_max;
  }
  return facts;
}

}  // namespace

Result<OpenedDevice> open_cuda() {
  auto device = CudaDevice::open();
  if (!device.ok()) return device.status();
  auto kernels = std::make_unique<CudaKernels>(static_cast<CudaDevice*>(device->get()));
  if (Status status = kernels->prepare(); !status.ok()) return status;
  OpenedDevice opened;
  opened.device = std::move(*device);
  opened.kernels = std::move(kernels);
  return Result<OpenedDevice>(std::move(opened));
}

std::vector<KernelFacts> kernel_facts() {
  return {facts_of("ordered", ordered_kernel),
          facts_of("prstm", prstm_kernel),
          facts_of("lock", lock_kernel),
          facts_of("gpustm", gpustm_kernel),
          facts_of("kilo", kilo_kernel),
          facts_of("local", local_kernel, kLocalBlockThreads),
          facts_of("local in clusters", local_cluster_kernel, kLocalBlockThreads),
          facts_of("local with times", local_times_kernel, kLocalBlockThreads),
          facts_of("local in clusters with times", local_cluster_times_kernel, kLocalBlockThreads),
          facts_of("bulk", bulk_kernel),
          facts_of("validator", validator_kernel),
          facts_of("scatter", scatter_kernel)};
}

}  // namespace kilokv::engine
