#include "engine/bench/recorded_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kilokv::engine::bench {
namespace {

constexpr std::size_t kLineBytes = 64;

struct Copy {
  std::byte* to;
  std::size_t bytes;
};

// Removes the bytes from the caches. Where there is no such instruction, they stay.
void flush([[maybe_unused]] const std::byte* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__x86_64__)
  for (std::size_t i = 0; i < bytes; i += kLineBytes) _mm_clflush(data + i);
  _mm_mfence();
#endif
}

// Adds the time for which it lives to what is left out.
class LeftOut {
 public:
  explicit LeftOut(DeviceCalls* calls) : calls_(*calls) {}
  ~LeftOut() {
    calls_.left_out_seconds += watch_.processor_seconds();
    calls_.left_out_of_all += Stopwatch::process_now() - begun_;
  }
  LeftOut(const LeftOut&) = delete;
  LeftOut& operator=(const LeftOut&) = delete;

 private:
  DeviceCalls& calls_;
  const double begun_ = Stopwatch::process_now();
  const Stopwatch watch_;
};

// Passes every call on to another device, and counts it. Requires: all copies belong to one stream.
class WatchedDevice final : public Device {
 public:
  // `recording`: gets what the device returns; null: nothing is recorded.
  WatchedDevice(std::unique_ptr<Device> device, DeviceRecording* recording, DeviceCalls* calls)
      : device_(std::move(device)), recording_(recording), calls_(*calls) {}

  const DeviceInfo& info() const override { return device_->info(); }
  Result<DeviceAddress> allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  void free(DeviceAddress address) override { device_->free(address); }
  Result<void*> allocate_pinned(std::size_t bytes) override { return device_->allocate_pinned(bytes); }
  void free_pinned(void* memory) override { device_->free_pinned(memory); }
  Result<SharedMemory> allocate_shared(std::size_t bytes) override { return device_->allocate_shared(bytes); }
  void free_shared(SharedMemory memory) override { device_->free_shared(memory); }
  bool runs_by_itself() const override { return device_->runs_by_itself(); }
  Result<DeviceStream> create_stream() override { return device_->create_stream(); }
  Result<DeviceEvent> create_event() override { return device_->create_event(); }
  Status copy_to_device(DeviceStream stream, DeviceAddress to, const void* from, std::size_t bytes) override {
    calls_.sent_bytes += bytes;
    ++calls_.calls;
    return device_->copy_to_device(stream, to, from, bytes);
  }
  Status copy_to_host(DeviceStream stream, void* to, DeviceAddress from, std::size_t bytes) override {
    calls_.returned_bytes += bytes;
    ++calls_.calls;
    copies_.push_back({static_cast<std::byte*>(to), bytes});
    return device_->copy_to_host(stream, to, from, bytes);
  }
  Status fill(DeviceStream stream, DeviceAddress to, std::uint8_t byte, std::size_t bytes) override {
    ++calls_.calls;
    return device_->fill(stream, to, byte, bytes);
  }
  Status record(DeviceEvent event, DeviceStream stream) override {
    ++calls_.calls;
    return device_->record(event, stream);
  }
  Status wait(DeviceStream stream, DeviceEvent event) override {
    ++calls_.calls;
    return device_->wait(stream, event);
  }
  Result<double> seconds_between(DeviceEvent begin, DeviceEvent end) override {
    return device_->seconds_between(begin, end);
  }
  Status synchronize(DeviceStream stream) override {
    const LeftOut left_out(&calls_);
    ++calls_.calls;
    Status status = device_->synchronize(stream);
    for (const Copy& copy : copies_) {
      if (recording_ != nullptr) {
        recording_->bytes.insert(recording_->bytes.end(), copy.to, copy.to + copy.bytes);
        recording_->ends.push_back(recording_->bytes.size());
      }
      flush(copy.to, copy.bytes);
    }
    copies_.clear();
    return status;
  }

 private:
  std::unique_ptr<Device> device_;
  DeviceRecording* recording_;
  DeviceCalls& calls_;
  std::vector<Copy> copies_;
};

class ReplayedDevice final : public Device {
 public:
  ReplayedDevice(DeviceInfo info, const DeviceRecording* recording, DeviceCalls* calls)
      : info_(std::move(info)), recording_(*recording), calls_(*calls) {}

  const DeviceInfo& info() const override { return info_; }
  Result<DeviceAddress> allocate(std::size_t bytes) override {
    const DeviceAddress address = next_address_;
    next_address_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return address;
  }
  void free(DeviceAddress) override {}
  Result<void*> allocate_pinned(std::size_t bytes) override {
    return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  void free_pinned(void* memory) override { std::free(memory); }
  Result<SharedMemory> allocate_shared(std::size_t) override {
    return Status(StatusCode::internal, "a replayed device has no shared memory");
  }
  void free_shared(SharedMemory) override {}
  bool runs_by_itself() const override { return true; }
  Result<DeviceStream> create_stream() override { return DeviceStream{0}; }
  Result<DeviceEvent> create_event() override { return DeviceEvent{0}; }
  Status copy_to_device(DeviceStream, DeviceAddress, const void*, std::size_t bytes) override {
    calls_.sent_bytes += bytes;
    return called();
  }
  Status copy_to_host(DeviceStream, void* to, DeviceAddress, std::size_t bytes) override {
    calls_.returned_bytes += bytes;
    copies_.push_back({static_cast<std::byte*>(to), bytes});
    return called();
  }
  Status fill(DeviceStream, DeviceAddress, std::uint8_t, std::size_t) override { return called(); }
  Status record(DeviceEvent, DeviceStream) override { return called(); }
  Status wait(DeviceStream, DeviceEvent) override { return called(); }
  Result<double> seconds_between(DeviceEvent, DeviceEvent) override { return 0.0; }
  Status synchronize(DeviceStream) override {
    const LeftOut left_out(&calls_);
    const Status status = replay();
    return status.ok() ? called() : status;
  }

 private:
  static constexpr std::size_t kAlignment = 256;

  Status called() {
    ++calls_.calls;
    return {};
  }
  Status replay() {
    for (const Copy& copy : copies_) {
      const std::size_t begin = next_copy_ == 0 ? 0 : recording_.ends[next_copy_ - 1];
      if (next_copy_ == recording_.ends.size() || recording_.ends[next_copy_] - begin != copy.bytes) {
        return Status(StatusCode::internal, "the host made another copy than in the recording");
      }
      std::memcpy(copy.to, recording_.bytes.data() + begin, copy.bytes);
      flush(copy.to, copy.bytes);
      ++next_copy_;
    }
    copies_.clear();
    return {};
  }

  const DeviceInfo info_;
  const DeviceRecording& recording_;
  DeviceCalls& calls_;
  DeviceAddress next_address_ = kAlignment;
  std::vector<Copy> copies_;
  std::size_t next_copy_ = 0;
};

// Counts launches. `is_live`: passes them on. If not, only the shapes of launches are those of the other kernels.
class WatchedKernels final : public DeviceKernels {
 public:
  WatchedKernels(OpenedDevice original, bool is_live, DeviceCalls* calls)
      : original_(std::move(original)), is_live_(is_live), calls_(*calls) {}

  std::uint32_t group_width() const override { return kernels().group_width(); }
  std::optional<KernelHandle> look_up(std::string_view name) const override { return kernels().look_up(name); }
  std::uint32_t block_threads(KernelHandle kernel) const override { return kernels().block_threads(kernel); }
  std::uint32_t threads(KernelHandle kernel, std::uint32_t wanted, std::uint64_t shared_words,
                        std::uint32_t cluster_blocks) const override {
    return kernels().threads(kernel, wanted, shared_words, cluster_blocks);
  }
  std::uint64_t shared_words_max() const override { return kernels().shared_words_max(); }
  std::uint32_t cluster_blocks_max(KernelHandle kernel, std::uint32_t most) const override {
    return kernels().cluster_blocks_max(kernel, most);
  }
  Status launch(DeviceStream stream, KernelHandle kernel, const void* arguments, const LaunchShape& shape) override {
    return launched([&] { return kernels().launch(stream, kernel, arguments, shape); });
  }
  Status bulk(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) override {
    if (arguments.inserting + arguments.removing > 0) calls_.patches += arguments.size;
    return launched([&] { return kernels().bulk(stream, arguments); });
  }
  std::uint32_t validator_threads() const override { return kernels().validator_threads(); }
  Status validator(DeviceStream stream, const ValidatorArguments<DeviceSpace>& arguments) override {
    return launched([&] { return kernels().validator(stream, arguments); });
  }
  Status scatter(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) override {
    return launched([&] { return kernels().scatter(stream, arguments); });
  }

 private:
  DeviceKernels& kernels() const { return *original_.kernels; }
  template <class Launch>
  Status launched(const Launch& launch) {
    ++calls_.calls;
    return is_live_ ? launch() : Status();
  }

  OpenedDevice original_;  // a live one has no device here
  const bool is_live_;
  DeviceCalls& calls_;
};

}  // namespace

OpenedDevice open_recording(OpenedDevice device, DeviceRecording* recording, DeviceCalls* calls) {
  return {std::make_unique<WatchedDevice>(std::move(device.device), recording, calls), std::move(device.kernels)};
}

OpenedDevice open_replayed(OpenedDevice original, const DeviceRecording* recording, DeviceCalls* calls) {
  auto device = std::make_unique<ReplayedDevice>(original.device->info(), recording, calls);
  return {std::move(device), std::make_unique<WatchedKernels>(std::move(original), false, calls)};
}

OpenedDevice open_live(OpenedDevice device, DeviceCalls* calls) {
  auto watched = std::make_unique<WatchedDevice>(std::move(device.device), nullptr, calls);
  return {std::move(watched), std::make_unique<WatchedKernels>(std::move(device), true, calls)};
}

}  // namespace kilokv::engine::bench
