#include "engine/bench/roofline.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <fstream>
#include <utility>

#include "engine/bench/roofline_kernels.cuh"
#include "engine/platform/cuda_device.hpp"

namespace kilokv::engine::bench {
namespace {

constexpr std::uint32_t kBlockThreads = 128;  // as in the engine's kernels
constexpr std::uint32_t kBlocksEach = 16;     // for a multiprocessor: as many threads as it can hold
constexpr std::uint32_t kHotBits = 20;        // 2^20 accesses of one address
constexpr std::uint32_t kLaunches = 1000, kGraphKernels = 100, kGraphReplays = 10, kBarriers = 1000;
constexpr std::size_t kLinkBytes = std::size_t{256} << 20;

// Keeps the first error of CUDA. Later errors do not change it.
class Failure {
 public:
  bool check(cudaError_t error, const char* call) {
    if (error != cudaSuccess && ok()) message_ = std::string(call) + ": " + cudaGetErrorString(error);
    return ok();
  }
  bool ok() const { return message_.empty(); }
  Status status(const std::string& where) const { return Status(StatusCode::internal, where + ": " + message_); }

 private:
  std::string message_;
};

enum class Memory { device, pinned };

class Buffer {
 public:
  Buffer(Failure& failure, Memory memory, std::size_t bytes) : memory_(memory) {
    if (memory == Memory::device) {
      failure.check(cudaMalloc(&data_, bytes), "cudaMalloc");
    } else {
      failure.check(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault), "cudaHostAlloc");
    }
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { static_cast<void>(memory_ == Memory::device ? cudaFree(data_) : cudaFreeHost(data_)); }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  const Memory memory_;
  void* data_ = nullptr;
};

// Two streams, and the events that time the first one.
class Streams {
 public:
  explicit Streams(Failure& failure) : failure_(failure) {
    for (cudaStream_t& stream : streams_) {
      failure.check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    }
    for (cudaEvent_t& event : events_) failure.check(cudaEventCreate(&event), "cudaEventCreate");
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  ~Streams() {
    for (cudaEvent_t event : events_) static_cast<void>(cudaEventDestroy(event));
    for (cudaStream_t stream : streams_) static_cast<void>(cudaStreamDestroy(stream));
  }

  cudaStream_t first() const { return streams_[0]; }
  cudaStream_t second() const { return streams_[1]; }

  // Returns the seconds that the first stream needs for what `work` puts on it. `work` itself joins what it puts on the
  // second stream.
  template <class Work>
  double time(const Work& work) {
    failure_.check(cudaEventRecord(events_[0], first()), "cudaEventRecord");
    work();
    failure_.check(cudaGetLastError(), "kernel launch");
    failure_.check(cudaEventRecord(events_[1], first()), "cudaEventRecord");
    failure_.check(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
    float milliseconds = 0;
    failure_.check(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3;
  }
  // fork(): the second stream waits for what the first one has so far. join(): the other way round.
  void fork() { order(first(), second(), events_[2]); }
  void join() { order(second(), first(), events_[3]); }

 private:
  void order(cudaStream_t before, cudaStream_t after, cudaEvent_t event) {
    failure_.check(cudaEventRecord(event, before), "cudaEventRecord");
    failure_.check(cudaStreamWaitEvent(after, event, cudaEventWaitDefault), "cudaStreamWaitEvent");
  }

  Failure& failure_;
  cudaStream_t streams_[2] = {};
  cudaEvent_t events_[4] = {};
};

std::uint64_t attribute(Failure& failure, cudaDeviceAttr attribute) {
  int value = 0;
  failure.check(cudaDeviceGetAttribute(&value, attribute, 0), "cudaDeviceGetAttribute");
  return static_cast<std::uint64_t>(value);
}

class Roofline {
 public:
  // Requires: `table_bytes`, a power of two, are free.
  Roofline(const RooflineOptions& options, std::size_t table_bytes, std::uint64_t multiprocessors)
      : options_(options),
        table_bytes_(table_bytes),
        multiprocessors_(static_cast<std::uint32_t>(multiprocessors)),
        blocks_(multiprocessors_ * kBlocksEach),
        streams_(failure_),
        table_(failure_, Memory::device, table_bytes),
        sink_(failure_, Memory::device, sizeof(unsigned long long)),
        up_(failure_, Memory::pinned, link_bytes()),
        down_(failure_, Memory::pinned, link_bytes()) {
    fill(0);
  }

  Result<std::vector<RooflineMeasure>> run();

 private:
  // Runs one repetition, and returns the number that is reported.
  using Repetition = double (Roofline::*)();
  struct Probe {
    const char* name;
    const char* unit;
    const char* what;
    Repetition repetition;
  };
  static const Probe kProbes[];

  RooflineRecord* records() const { return table_.as<RooflineRecord>(); }
  std::uint32_t record_bits() const {
    return static_cast<std::uint32_t>(std::countr_zero(table_bytes_ / sizeof(RooflineRecord)));
  }
  std::size_t link_bytes() const { return std::min(kLinkBytes, table_bytes_ / 2); }
  // Each repetition has another order.
  Permutation order(std::uint32_t bits) { return {bits, (options_.seed + ++repetition_) * 0x9E37'79B9'7F4A'7C15}; }
  static double per_second(std::uint32_t bits, double seconds) {
    return static_cast<double>(std::uint64_t{1} << bits) / seconds / 1e6;
  }
  void fill(int byte) {
    failure_.check(cudaMemsetAsync(table_.as<void>(), byte, table_bytes_, streams_.first()), "cudaMemsetAsync");
  }

  double random_read() {
    const std::uint32_t bits = record_bits();
    return per_second(bits, streams_.time([&] {
      read_kernel<<<blocks_, kBlockThreads, 0, streams_.first()>>>(records(), order(bits),
                                                                   sink_.as<unsigned long long>());
    }));
  }
  double random_update() {
    const std::uint32_t bits = record_bits();
    return per_second(bits, streams_.time([&] {
      update_kernel<<<blocks_, kBlockThreads, 0, streams_.first()>>>(records(), order(bits));
    }));
  }
  double compare_exchange(std::uint32_t bits, std::uint64_t spread) {
    fill(0);
    return per_second(bits, streams_.time([&] {
      compare_exchange_kernel<<<blocks_, kBlockThreads, 0, streams_.first()>>>(records(), order(bits), spread,
                                                                               sink_.as<unsigned long long>());
    }));
  }
  double minimum(std::uint32_t bits, std::uint64_t spread) {
    fill(0xFF);
    return per_second(bits, streams_.time([&] {
      minimum_kernel<<<blocks_, kBlockThreads, 0, streams_.first()>>>(records(), order(bits), spread);
    }));
  }
  double random_compare_exchange() { return compare_exchange(record_bits(), 1); }
  double hot_compare_exchange() { return compare_exchange(std::min(kHotBits, record_bits()), 0); }
  double random_minimum() { return minimum(record_bits(), 1); }
  double hot_minimum() { return minimum(std::min(kHotBits, record_bits()), 0); }

  double device_copy() {
    const std::size_t bytes = table_bytes_ / 2;
    const double seconds = streams_.time([&] {
      failure_.check(cudaMemcpyAsync(table_.as<std::byte>() + bytes, table_.as<void>(), bytes, cudaMemcpyDeviceToDevice,
                                     streams_.first()),
                     "cudaMemcpyAsync");
    });
    return 2 * static_cast<double>(bytes) / seconds / 1e9;
  }

  double launch() {
    const double seconds = streams_.time([&] {
      for (std::uint32_t i = 0; i < kLaunches; ++i) empty_kernel<<<1, kBlockThreads, 0, streams_.first()>>>();
    });
    return seconds * 1e6 / kLaunches;
  }
  double launch_and_wait() {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t i = 0; i < kLaunches; ++i) {
      empty_kernel<<<1, kBlockThreads, 0, streams_.first()>>>();
      failure_.check(cudaGetLastError(), "kernel launch");
      failure_.check(cudaStreamSynchronize(streams_.first()), "cudaStreamSynchronize");
    }
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kLaunches;
  }
  double graph_replay();
  double grid_barrier();

  double host_link(bool to_device, bool to_host);
  double host_to_device() { return host_link(true, false); }
  double device_to_host() { return host_link(false, true); }
  double both_ways() { return host_link(true, true); }

  const RooflineOptions options_;
  const std::size_t table_bytes_;
  const std::uint32_t multiprocessors_, blocks_;
  std::uint64_t repetition_ = 0;
  Failure failure_;
  Streams streams_;
  const Buffer table_, sink_;
  const Buffer up_, down_;  // in memory of the host
};

const Roofline::Probe Roofline::kProbes[] = {
    {"random_read", "M/s", "random reads of 32 bytes", &Roofline::random_read},
    {"random_read_write", "M/s", "random reads of 32 bytes, each written back", &Roofline::random_update},
    {"cas_random", "M/s", "64-bit compare-and-swap, random addresses", &Roofline::random_compare_exchange},
    {"cas_hot", "M/s", "64-bit compare-and-swap, one address", &Roofline::hot_compare_exchange},
    {"min_random", "M/s", "64-bit atomic minimum, random addresses", &Roofline::random_minimum},
    {"min_hot", "M/s", "64-bit atomic minimum, one address", &Roofline::hot_minimum},
    {"device_copy", "GB/s", "copy within the device, bytes read and written", &Roofline::device_copy},
    {"launch", "us", "an empty kernel, back to back", &Roofline::launch},
    {"launch_and_wait", "us", "an empty kernel and waiting for it", &Roofline::launch_and_wait},
    {"graph_replay", "us", "an empty kernel of a replayed graph", &Roofline::graph_replay},
    {"grid_barrier", "us", "a barrier of the whole grid, as many blocks as fit", &Roofline::grid_barrier},
    {"host_to_device", "GB/s", "pinned memory to the device", &Roofline::host_to_device},
    {"device_to_host", "GB/s", "the device to pinned memory", &Roofline::device_to_host},
    {"both_ways", "GB/s", "both at once, added up", &Roofline::both_ways},
};

double Roofline::graph_replay() {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  failure_.check(cudaStreamBeginCapture(streams_.first(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (std::uint32_t i = 0; i < kGraphKernels; ++i) empty_kernel<<<1, kBlockThreads, 0, streams_.first()>>>();
  failure_.check(cudaStreamEndCapture(streams_.first(), &graph), "cudaStreamEndCapture");
  if (!failure_.check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate")) return 0;
  const auto replay = [&] { failure_.check(cudaGraphLaunch(executable, streams_.first()), "cudaGraphLaunch"); };
  replay();  // the first replay brings the graph to the device
  const double seconds = streams_.time([&] {
    for (std::uint32_t i = 0; i < kGraphReplays; ++i) replay();
  });
  failure_.check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  failure_.check(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return seconds * 1e6 / (kGraphKernels * kGraphReplays);
}

double Roofline::grid_barrier() {
  int blocks_each = 0;
  failure_.check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_each, grid_barrier_kernel, kBlockThreads, 0),
                 "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  std::uint32_t barriers = kBarriers;
  void* arguments[] = {&barriers};
  const dim3 blocks(static_cast<std::uint32_t>(blocks_each) * multiprocessors_);
  const double seconds = streams_.time([&] {
    failure_.check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(grid_barrier_kernel), blocks,
                                               dim3(kBlockThreads), arguments, 0, streams_.first()),
                   "cudaLaunchCooperativeKernel");
  });
  return seconds * 1e6 / kBarriers;
}

double Roofline::host_link(bool to_device, bool to_host) {
  const std::size_t bytes = link_bytes();
  const double seconds = streams_.time([&] {
    streams_.fork();
    if (to_device) {
      failure_.check(
          cudaMemcpyAsync(table_.as<void>(), up_.as<void>(), bytes, cudaMemcpyHostToDevice, streams_.first()),
          "cudaMemcpyAsync to the device");
    }
    if (to_host) {
      failure_.check(cudaMemcpyAsync(down_.as<void>(), table_.as<std::byte>() + bytes, bytes, cudaMemcpyDeviceToHost,
                                     streams_.second()),
                     "cudaMemcpyAsync to the host");
    }
    streams_.join();
  });
  return static_cast<double>(bytes) * (to_device && to_host ? 2 : 1) / seconds / 1e9;
}

Result<std::vector<RooflineMeasure>> Roofline::run() {
  std::vector<RooflineMeasure> measures;
  for (const Probe& probe : kProbes) {
    RooflineMeasure measure{probe.name, probe.unit, probe.what, {}};
    for (std::uint64_t i = 0; i <= options_.repetitions; ++i) {
      const double sample = (this->*probe.repetition)();
      if (!failure_.ok()) return failure_.status(measure.name);
      if (i > 0) measure.samples.push_back(sample);  // the first one warms up
    }
    std::sort(measure.samples.begin(), measure.samples.end());
    measures.push_back(std::move(measure));
  }
  return measures;
}

std::string cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string driver_line() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  return std::getline(file, line) ? line : "unknown";
}

Result<RooflineDevice> describe() {
  Failure failure;
  cudaDeviceProp properties{};
  failure.check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  failure.check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  failure.check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  std::size_t free_bytes = 0, all_bytes = 0;
  failure.check(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
  RooflineDevice device;
  device.model = properties.name;
  device.capability = std::to_string(properties.major) + "." + std::to_string(properties.minor);
  device.driver = driver_line();
  device.driver_cuda = cuda_version(driver);
  device.runtime_cuda = cuda_version(runtime);
  device.multiprocessors = attribute(failure, cudaDevAttrMultiProcessorCount);
  device.clock_mhz = attribute(failure, cudaDevAttrClockRate) / 1000;
  device.memory_clock_mhz = attribute(failure, cudaDevAttrMemoryClockRate) / 1000;
  device.l2_bytes = attribute(failure, cudaDevAttrL2CacheSize);
  device.memory_bytes = all_bytes;
  device.memory_free_bytes = free_bytes;
  if (!failure.ok()) return failure.status("the device");
  return device;
}

}  // namespace

double RooflineMeasure::median() const {
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

Result<RooflineReport> measure_roofline(const RooflineOptions& options) {
  auto opened = CudaDevice::open();
  if (!opened.ok()) return opened.status();
  auto device = describe();
  if (!device.ok()) return device.status();
  RooflineReport report;
  report.device = *device;
  // A tenth of the memory is left for other uses of the device.
  report.table_bytes = std::bit_floor(std::min(options.table_bytes_max, device->memory_free_bytes / 10 * 9));
  auto measures = Roofline(options, report.table_bytes, device->multiprocessors).run();
  if (!measures.ok()) return measures.status();
  report.measures = std::move(*measures);
  report.kernels = kernel_facts();
  return report;
}

}  // namespace kilokv::engine::bench
