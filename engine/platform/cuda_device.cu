#include "engine/platform/cuda_device.hpp"

#include <cuda_runtime.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/platform/cuda.cuh"

namespace kilokv::engine {
namespace {

// Uses every function of a platform. It is never launched, but it serves two checks. If it compiles, cuda.cuh has all
// functions. If the runtime finds it for a device, this build has code for that device.
template <class P>
__device__ void use_all(P& p, PointerOf<P, std::uint64_t> word, PointerOf<P, std::uint32_t> half) {
  constexpr Order kOrder = Order::acquire_release;
  std::uint64_t sum = p.load(word, Order::acquire, Scope::device) + p.load(half, Order::sequential, Scope::system);
  p.store(word, sum, Order::release, Scope::block);
  p.store(half, p.lane() + p.group() + p.block(), Order::relaxed, Scope::device);
  sum += p.exchange(word, sum, kOrder, Scope::device) + p.exchange(half, 1, kOrder, Scope::device);
  sum += p.compare_exchange(word, 0, sum, kOrder, Scope::device) + p.compare_exchange(half, 0, 1, kOrder, Scope::block);
  sum += p.fetch_add(word, sum, kOrder, Scope::device) + p.fetch_add(half, 1, kOrder, Scope::system);
  sum += p.fetch_min(word, sum, kOrder, Scope::device) + p.fetch_min(half, 1, kOrder, Scope::device);
  sum += p.fetch_max(word, sum, kOrder, Scope::device) + p.fetch_max(half, 1, kOrder, Scope::device);
  p.fence(Order::sequential, Scope::device);
  p.group_barrier();
  sum += p.ballot(sum != 0) + p.match(sum) + p.broadcast(sum, 0);
  p.put(p.shared() + p.block_thread() % P::kSharedWords, sum + p.block_threads());
  p.block_barrier();
  p.put(word + p.thread(), p.get(p.shared()) + p.threads() + p.clock());
  p.grid_barrier();
}

__global__ void probe_kernel(std::uint64_t* word, std::uint32_t* half) {
  CudaPlatform platform;
  use_all(platform, word, half);
  platform.put(platform.block_words(0), platform.get(half));
  if constexpr (CudaClusterPlatform::kIsThere) {
    CudaClusterPlatform in_cluster;
    in_cluster.cluster_barrier();
    in_cluster.fetch_add(in_cluster.block_words(0), 1, Order::sequential, Scope::cluster);
  }
}

Status unavailable(const std::string& what, cudaError_t error) {
  return Status(StatusCode::unavailable, ErrorReason::unspecified, what + ": " + cudaGetErrorString(error));
}

// `call`: the call that ended with this error. Clears the runtime's own note of the error.
Status to_status(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  const StatusCode code = error == cudaErrorMemoryAllocation ? StatusCode::resource_exhausted : StatusCode::internal;
  return Status(code, ErrorReason::unspecified, std::string(call) + ": " + cudaGetErrorString(error));
}

void* to_pointer(DeviceAddress address) { return reinterpret_cast<void*>(address); }

class OpenCudaDevice final : public CudaDevice {
 public:
  explicit OpenCudaDevice(DeviceInfo info) : info_(std::move(info)) {}
  // Errors are ignored here, because earlier calls have reported them.
  ~OpenCudaDevice() override {
    if (hangs_) return;
    for (cudaEvent_t event : events_) static_cast<void>(cudaEventDestroy(event));
    for (cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
  }

  const DeviceInfo& info() const override { return info_; }
  void* stream(DeviceStream stream) const override { return of(stream); }

  Result<DeviceAddress> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (Status status = to_status("cudaMalloc", cudaMalloc(&memory, bytes)); !status.ok()) return status;
    return reinterpret_cast<DeviceAddress>(memory);
  }
  void free(DeviceAddress address) override {
    if (!hangs_) static_cast<void>(cudaFree(to_pointer(address)));
  }
  Result<void*> allocate_pinned(std::size_t bytes) override {
    void* memory = nullptr;
    Status status = to_status("cudaHostAlloc", cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
    if (!status.ok()) return status;
    return memory;
  }
  void free_pinned(void* memory) override {
    if (!hangs_) static_cast<void>(cudaFreeHost(memory));
  }

  Result<SharedMemory> allocate_shared(std::size_t bytes) override {
    void* memory = nullptr;
    const Status allocated = to_status("cudaHostAlloc, mapped", cudaHostAlloc(&memory, bytes, cudaHostAllocMapped));
    if (!allocated.ok()) return allocated;
    std::memset(memory, 0, bytes);
    void* address = nullptr;
    const Status mapped = to_status("cudaHostGetDevicePointer", cudaHostGetDevicePointer(&address, memory, 0));
    if (!mapped.ok()) {
      free_pinned(memory);
      return mapped;
    }
    return SharedMemory{static_cast<std::byte*>(memory), reinterpret_cast<DeviceAddress>(address)};
  }
  void free_shared(SharedMemory memory) override { free_pinned(memory.host); }
  bool runs_by_itself() const override { return true; }

  Result<DeviceStream> create_stream() override {
    cudaStream_t stream = nullptr;
    Status status = to_status("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!status.ok()) return status;
    streams_.push_back(stream);
    return static_cast<DeviceStream>(streams_.size() - 1);
  }
  Result<DeviceEvent> create_event() override {
    cudaEvent_t event = nullptr;
    Status status = to_status("cudaEventCreate", cudaEventCreate(&event));
    if (!status.ok()) return status;
    events_.push_back(event);
    return static_cast<DeviceEvent>(events_.size() - 1);
  }

  Status copy_to_device(DeviceStream stream, DeviceAddress to, const void* from, std::size_t bytes) override {
    return to_status("cudaMemcpyAsync to the device",
                     cudaMemcpyAsync(to_pointer(to), from, bytes, cudaMemcpyHostToDevice, of(stream)));
  }
  Status copy_to_host(DeviceStream stream, void* to, DeviceAddress from, std::size_t bytes) override {
    return to_status("cudaMemcpyAsync to the host",
                     cudaMemcpyAsync(to, to_pointer(from), bytes, cudaMemcpyDeviceToHost, of(stream)));
  }
  Status fill(DeviceStream stream, DeviceAddress to, std::uint8_t byte, std::size_t bytes) override {
    return to_status("cudaMemsetAsync", cudaMemsetAsync(to_pointer(to), byte, bytes, of(stream)));
  }
  Status record(DeviceEvent event, DeviceStream stream) override {
    return to_status("cudaEventRecord", cudaEventRecord(of(event), of(stream)));
  }
  Status wait(DeviceStream stream, DeviceEvent event) override {
    return to_status("cudaStreamWaitEvent", cudaStreamWaitEvent(of(stream), of(event), cudaEventWaitDefault));
  }
  Result<double> seconds_between(DeviceEvent begin, DeviceEvent end) override {
    float milliseconds = 0;
    const Status status = to_status("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, of(begin), of(end)));
    if (!status.ok()) return status;
    return static_cast<double>(milliseconds) * 1e-3;
  }
  // Polls, and does not wait in the driver, so that a kernel that hangs ends in an error.
  Status synchronize(DeviceStream stream) override {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    for (;;) {
      const cudaError_t state = cudaStreamQuery(of(stream));
      if (state != cudaErrorNotReady) return to_status("cudaStreamQuery", state);
      const Clock::duration waited = Clock::now() - begin;
      if (waited > kHangs) break;
      if (waited > kSpins) std::this_thread::sleep_for(kSleeps);
    }
    hangs_ = true;
    return Status(StatusCode::internal,
                  "the device has not finished its work within " + std::to_string(kHangs.count()) + " s");
  }

 private:
  static constexpr std::chrono::seconds kHangs{30};
  static constexpr std::chrono::microseconds kSpins{2000}, kSleeps{50};

  cudaStream_t of(DeviceStream stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  cudaEvent_t of(DeviceEvent event) const { return events_[static_cast<std::size_t>(event)]; }

  const DeviceInfo info_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  bool hangs_ = false;  // the device does not end its work: nothing is freed, because that would wait for it for ever
};

Result<DeviceInfo> describe(int device) {
  cudaDeviceProp properties{};
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) {
    return unavailable("no CUDA device", error);
  }
  int multiprocessors = 0;
  int cooperative = 0;
  static_cast<void>(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  static_cast<void>(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
  if (cooperative == 0) {
    return Status(StatusCode::unavailable, ErrorReason::unspecified,
                  std::string(properties.name) + " has no cooperative launch");
  }
  return DeviceInfo{"cuda", properties.name, static_cast<std::uint32_t>(multiprocessors), properties.totalGlobalMem};
}

}  // namespace

Result<std::unique_ptr<Device>> CudaDevice::open() {
  constexpr int kDevice = 0;
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  int driver = 0;
  if (counted == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
    return Status(StatusCode::unavailable, ErrorReason::unspecified, "no CUDA driver");
  }
  if (counted == cudaErrorInsufficientDriver) return unavailable("the CUDA driver is too old", counted);
  if (counted != cudaSuccess) return unavailable("no CUDA device", counted);
  if (devices == 0) return unavailable("no CUDA device", cudaErrorNoDevice);
  Result<DeviceInfo> info = describe(kDevice);
  if (!info.ok()) return info.status();
  if (const cudaError_t error = cudaSetDevice(kDevice); error != cudaSuccess) return unavailable(info->model, error);
  cudaFuncAttributes attributes{};
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, probe_kernel); error != cudaSuccess) {
    return unavailable(info->model + " cannot run this build", error);
  }
  return std::unique_ptr<Device>(std::make_unique<OpenCudaDevice>(*info));
}

}  // namespace kilokv::engine
