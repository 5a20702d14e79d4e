#include "engine/exec/device/cuda_kernels.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/exec/device/cuda_strategy.cuh"
#include "engine/platform/cuda_device.hpp"

namespace kilokv::engine {
namespace {

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
    const __grid_constant__ BulkArguments<HostSpace> arguments) {
  CudaPlatform platform;
  scatter_cells(platform, arguments);
}

// The arguments with raw pointers. A DevicePointer of a CUDA device holds the bits of the raw pointer.
template <template <class> class Arguments>
Arguments<HostSpace> raw(const Arguments<DeviceSpace>& arguments) {
  return std::bit_cast<Arguments<HostSpace>>(arguments);
}

// The text is built only for an error, so that a launch that succeeds allocates nothing.
Status to_status(cudaError_t error, const char* call, const char* kernel = "") {
  if (error == cudaSuccess) return {};
  return Status(StatusCode::internal, std::string(call) + kernel + ": " + cudaGetErrorString(error));
}

// Sets `each` to the number of blocks that a multiprocessor runs at once.
cudaError_t blocks_each(const void* kernel, std::uint32_t block_threads, std::size_t shared_bytes, int* each) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(each, kernel, static_cast<int>(block_threads), shared_bytes);
}

class CudaKernels final : public DeviceKernels {
 public:
  explicit CudaKernels(CudaDevice* device) : device_(*device) {}

  // Finds out how many blocks of each kernel run at once, because a cooperative launch takes no more.
  Status prepare() {
    int multiprocessors = 0, shared_bytes = 0, has_clusters = 0, bulk_each = 0, validator_each = 0;
    cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
    const auto kernel_blocks = [&](const void* kernel, int* each) {
      if (error == cudaSuccess) error = blocks_each(kernel, kBlockThreads, 0, each);
    };
    kernel_blocks(reinterpret_cast<const void*>(bulk_kernel), &bulk_each);
    kernel_blocks(reinterpret_cast<const void*>(validator_kernel), &validator_each);
    if (error == cudaSuccess) {
      error = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    }
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0);
    multiprocessors_ = static_cast<std::uint32_t>(multiprocessors);
    shared_bytes_max_ = static_cast<std::size_t>(shared_bytes);
    bulk_blocks_max_ = static_cast<std::uint32_t>(bulk_each * multiprocessors);
    validator_blocks_ = static_cast<std::uint32_t>(std::min(validator_each, kValidatorBlocksEach) * multiprocessors);
    for (const CudaKernel& kernel : all_cuda_kernels()) {
      if (error != cudaSuccess) break;
      error = add(kernel, has_clusters != 0);
    }
    return to_status(error, "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  }

  std::uint32_t group_width() const override { return CudaPlatform::kGroupWidth; }
  std::optional<KernelHandle> look_up(std::string_view name) const override {
    const auto found =
        std::find_if(kernels_.begin(), kernels_.end(), [&](const Entry& entry) { return entry.kernel.name == name; });
    if (found == kernels_.end()) return std::nullopt;
    return static_cast<KernelHandle>(found - kernels_.begin());
  }
  std::uint32_t block_threads(KernelHandle kernel) const override { return at(kernel).kernel.block_threads; }
  std::uint64_t shared_words_max() const override { return shared_bytes_max_ / sizeof(std::uint64_t); }

  std::uint32_t threads(KernelHandle handle, std::uint32_t wanted, std::uint64_t shared_words,
                        std::uint32_t cluster_blocks) const override {
    const Entry& entry = at(handle);
    const CudaKernel& kernel = entry.kernel;
    const std::size_t bytes = shared_words * sizeof(std::uint64_t);
    if (cluster_blocks > 1) {
      const std::uint32_t cluster_threads = kernel.block_threads * cluster_blocks;
      const std::uint32_t clusters_max = std::max(clusters_at_once(kernel, cluster_blocks, bytes), 1u);
      return std::min(blocks_for(wanted, cluster_threads), clusters_max) * cluster_threads;
    }
    int each = entry.blocks_each;
    if (bytes > 0 && blocks_each(kernel.function, kernel.block_threads, bytes, &each) != cudaSuccess) each = 1;
    const std::uint32_t blocks_max = static_cast<std::uint32_t>(std::max(each, 1)) * multiprocessors_;
    return std::min(blocks_for(wanted, kernel.block_threads), blocks_max) * kernel.block_threads;
  }

  // More than 1 only if the device has compute capability 9.0 or higher, and the kernel was compiled for that.
  std::uint32_t cluster_blocks_max(KernelHandle handle, std::uint32_t most) const override {
    const Entry& entry = at(handle);
    std::uint32_t blocks = entry.has_clusters ? std::bit_floor(std::max(most, 1u)) : 1;
    while (blocks > 1 && clusters_at_once(entry.kernel, blocks, shared_bytes_max_) == 0) blocks /= 2;
    return blocks;
  }

  Status launch(DeviceStream stream, KernelHandle handle, const void* arguments, const LaunchShape& shape) override {
    const CudaKernel& kernel = at(handle).kernel;
    const std::uint32_t blocks = shape.threads / kernel.block_threads;
    const std::size_t shared_bytes = shape.shared_words * sizeof(std::uint64_t);
    void* values[] = {const_cast<void*>(arguments)};
    if (shape.cluster_blocks == 1) {
      return launch_together(kernel.function, kernel.name, values, blocks, kernel.block_threads, shared_bytes, stream);
    }
    cudaLaunchAttribute attributes[2]{};
    cudaLaunchConfig_t config = in_clusters(kernel, blocks, shape.cluster_blocks, shared_bytes, attributes);
    config.stream = stream_of(stream);
    return to_status(cudaLaunchKernelExC(&config, kernel.function, values), "launch of ", kernel.name);
  }

  Status bulk(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) override {
    BulkArguments<HostSpace> copy = raw(arguments);
    void* values[] = {&copy};
    return launch_together(reinterpret_cast<const void*>(bulk_kernel), "bulk", values,
                           std::min(blocks_for(arguments.size, kBlockThreads), bulk_blocks_max_), kBlockThreads, 0,
                           stream);
  }
  std::uint32_t validator_threads() const override { return validator_blocks_ * kBlockThreads; }
  Status validator(DeviceStream stream, const ValidatorArguments<DeviceSpace>& arguments) override {
    ValidatorArguments<HostSpace> copy = raw(arguments);
    void* values[] = {&copy};
    return launch_together(reinterpret_cast<const void*>(validator_kernel), "validator", values, validator_blocks_,
                           kBlockThreads, 0, stream);
  }
  Status scatter(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) override {
    scatter_kernel<<<blocks_for(arguments.size, kBlockThreads), kBlockThreads, 0, stream_of(stream)>>>(raw(arguments));
    return to_status(cudaGetLastError(), "launch of scatter");
  }

 private:
  struct Entry {
    CudaKernel kernel;
    int blocks_each = 1;  // blocks that a multiprocessor runs at once, without shared words
    bool has_clusters = false;
  };

  const Entry& at(KernelHandle kernel) const { return kernels_[static_cast<std::size_t>(kernel)]; }

  cudaError_t add(const CudaKernel& kernel, bool has_clusters) {
    Entry entry{kernel};
    cudaError_t error = cudaSuccess;
    if (kernel.takes_shared_words) {
      error = cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes_max_));
    }
    if (kernel.runs_in_clusters) {
      cudaFuncAttributes attributes{};
      entry.has_clusters = has_clusters && error == cudaSuccess &&
                           cudaFuncGetAttributes(&attributes, kernel.function) == cudaSuccess &&
                           attributes.ptxVersion >= 90;
      static_cast<void>(cudaGetLastError());
      error = cudaSuccess;  // not an error: without clusters, the strategy uses its other kernels
    } else if (error == cudaSuccess) {
      error = blocks_each(kernel.function, kernel.block_threads, 0, &entry.blocks_each);
    }
    kernels_.push_back(entry);
    return error;
  }

  static std::uint32_t blocks_for(std::uint32_t items, std::uint32_t block_threads) {
    return std::max((items + block_threads - 1) / block_threads, 1u);
  }
  cudaStream_t stream_of(DeviceStream stream) const { return static_cast<cudaStream_t>(device_.stream(stream)); }

  Status launch_together(const void* kernel, const char* name, void** values, std::uint32_t blocks,
                         std::uint32_t block_threads, std::size_t shared_bytes, DeviceStream stream) {
    return to_status(
        cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(block_threads), values, shared_bytes, stream_of(stream)),
        "launch of ", name);
  }

  // The configuration of a launch of `blocks` blocks, in clusters of `each`. `attributes`: two, which must outlive the
  // configuration.
  static cudaLaunchConfig_t in_clusters(const CudaKernel& kernel, std::uint32_t blocks, std::uint32_t each,
                                        std::size_t shared_bytes, cudaLaunchAttribute* attributes) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = each;
    attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeCooperative;
    attributes[1].val.cooperative = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(kernel.block_threads);
    config.dynamicSmemBytes = shared_bytes;
    config.attrs = attributes;
    config.numAttrs = 2;
    return config;
  }
  // How many clusters run at once, because a cooperative launch takes no more. 0: the device has no clusters of this
  // size.
  static std::uint32_t clusters_at_once(const CudaKernel& kernel, std::uint32_t each, std::size_t shared_bytes) {
    cudaLaunchAttribute attributes[2]{};
    const cudaLaunchConfig_t config = in_clusters(kernel, each, each, shared_bytes, attributes);
    int clusters = 0;
    if (cudaOccupancyMaxActiveClusters(&clusters, kernel.function, &config) == cudaSuccess) {
      return static_cast<std::uint32_t>(std::max(clusters, 0));
    }
    static_cast<void>(cudaGetLastError());
    return 0;
  }

  // With more blocks, the latency of a lookup is not hidden better, and each barrier between blocks is slower.
  static constexpr int kValidatorBlocksEach = 4;

  CudaDevice& device_;
  std::vector<Entry> kernels_;  // the kernels of strategies
  std::uint32_t bulk_blocks_max_ = 1, validator_blocks_ = 1, multiprocessors_ = 1;
  std::size_t shared_bytes_max_ = 0;  // of a block
};

KernelFacts facts_of(const CudaKernel& kernel) {
  KernelFacts facts;
  facts.name = kernel.name;
  facts.block_threads = static_cast<int>(kernel.block_threads);
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, kernel.function) != cudaSuccess) return facts;
  facts.registers = attributes.numRegs;
  facts.shared_bytes = static_cast<int>(attributes.sharedSizeBytes);
  facts.spilled_bytes = static_cast<int>(attributes.localSizeBytes);
  int threads_max = 1;
  if (blocks_each(kernel.function, kernel.block_threads, 0, &facts.blocks_each) == cudaSuccess &&
      cudaDeviceGetAttribute(&threads_max, cudaDevAttrMaxThreadsPerMultiProcessor, 0) == cudaSuccess) {
    facts.occupancy = static_cast<double>(facts.blocks_each) * facts.block_threads / threads_max;
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
  std::vector<CudaKernel> kernels = all_cuda_kernels();
  kernels.push_back(cuda_kernel<BulkArguments>("bulk", bulk_kernel));
  kernels.push_back(cuda_kernel<ValidatorArguments>("validator", validator_kernel));
  kernels.push_back(cuda_kernel<BulkArguments>("scatter", scatter_kernel));
  std::vector<KernelFacts> facts;
  for (const CudaKernel& kernel : kernels) facts.push_back(facts_of(kernel));
  return facts;
}

}  // namespace kilokv::engine
