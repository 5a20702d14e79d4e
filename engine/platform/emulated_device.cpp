#include "engine/platform/emulated_device.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

std::size_t shared_bytes_of(std::uint32_t threads) {
  return std::size_t{threads} * EmulatedPlatform::kSharedWords * sizeof(std::uint64_t);
}
constexpr std::size_t kBlockBytesMax = EmulatedDevice::kBlockWordsMax * sizeof(std::uint64_t);

}  // namespace

void KernelMeeting::meet() {
  std::unique_lock lock(mutex_);
  if (++waiting_ == present_) return open();
  opened_.wait(lock, [this, before = openings_] { return openings_ != before; });
}

void KernelMeeting::leave() {
  const std::lock_guard lock(mutex_);
  --present_;
  if (waiting_ > 0 && waiting_ == present_) open();
}

// Requires: the mutex is held.
void KernelMeeting::open() {
  if (present_ < threads_) even_ = false;
  waiting_ = 0;
  ++openings_;
  opened_.notify_all();
}

EmulatedDevice::EmulatedDevice(const EmulatedDeviceOptions& options)
    : info_{"emulated", "host threads", options.threads, options.memory_bytes_max},
      memory_(options.memory_bytes_max + shared_bytes_of(options.threads) + options.threads * kBlockBytesMax),
      team_(options.threads),
      random_(options.seed),
      failing_call_(options.fail_at_call),
      error_(options.fail_as),
      fails_(options.fails) {
  const Result<DeviceAddress> shared = memory_.allocate(shared_bytes_of(options.threads));
  KILOKV_CHECK(shared.ok());
  shared_ = *shared;
  for (std::uint32_t block = 0; block < options.threads; ++block) {
    const Result<DeviceAddress> words = memory_.allocate(kBlockBytesMax);
    KILOKV_CHECK(words.ok());
    block_memory_.push_back(*words);
  }
}

EmulatedDevice::~EmulatedDevice() = default;

void EmulatedDevice::fail_call(std::uint64_t n, InjectedError error) {
  failing_call_ = calls_ + n;
  error_ = error;
}

// Every call that can fail calls this first.
Status EmulatedDevice::enter(const char* call) {
  ++calls_;
  fails_later_ = false;
  if (!lost_.ok()) {
    return Status(StatusCode::internal, std::string(call) + ": the device is lost: " + lost_.message());
  }
  if (calls_ != failing_call_ && !(fails_ && fails_())) return {};
  switch (error_) {
    case InjectedError::exhausted:
      return Status(StatusCode::resource_exhausted, ErrorReason::unspecified, std::string(call) + ": injected error");
    case InjectedError::lost: return lose(call);
    case InjectedError::asynchronous: fails_later_ = true; break;
  }
  return {};
}

Status EmulatedDevice::lose(const char* call) {
  lost_ = Status(StatusCode::internal, std::string(call) + ": injected error");
  return lost_;
}

Result<DeviceAddress> EmulatedDevice::allocate(std::size_t bytes) {
  ++allocations_;
  Status status = enter("allocate");
  if (status.ok() && fails_later_) status = lose("allocate");
  if (!status.ok()) return status;
  return memory_.allocate(bytes);
}

Result<void*> EmulatedDevice::allocate_pinned(std::size_t bytes) {
  ++allocations_;
  Status status = enter("allocate_pinned");
  if (status.ok() && fails_later_) status = lose("allocate_pinned");
  if (!status.ok()) return status;
  auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::memset(memory.get(), kDevicePoison, bytes);
  void* address = memory.get();
  pinned_.emplace(address, std::move(memory));
  return address;
}

void EmulatedDevice::free_pinned(void* memory) {
  if (memory == nullptr) return;
  KILOKV_CHECK(pinned_.erase(memory) == 1);
}

Result<SharedMemory> EmulatedDevice::allocate_shared(std::size_t bytes) {
  ++allocations_;
  Status status = enter("allocate_shared");
  if (status.ok() && fails_later_) status = lose("allocate_shared");
  if (!status.ok()) return status;
  const Result<DeviceAddress> address = memory_.allocate(bytes);
  if (!address.ok()) return address.status();
  std::byte* const host = memory_.locate(*address, bytes, 1, DeviceAccess::write, "allocate_shared");
  KILOKV_CHECK(host != nullptr);
  std::memset(host, 0, bytes);
  return SharedMemory{host, *address};
}

Result<DeviceStream> EmulatedDevice::create_stream() {
  Status status = enter("create_stream");
  if (status.ok() && fails_later_) status = lose("create_stream");
  if (!status.ok()) return status;
  streams_.emplace_back();
  return static_cast<DeviceStream>(streams_.size() - 1);
}

Result<DeviceEvent> EmulatedDevice::create_event() {
  Status status = enter("create_event");
  if (status.ok() && fails_later_) status = lose("create_event");
  if (!status.ok()) return status;
  events_.emplace_back();
  return static_cast<DeviceEvent>(events_.size() - 1);
}

Status EmulatedDevice::enqueue(const char* call, DeviceStream stream, std::function<void()> run, Place after) {
  if (Status status = enter(call); !status.ok()) return status;
  const auto index = static_cast<std::size_t>(stream);
  KILOKV_CHECK(index < streams_.size());
  streams_[index].pending.push_back({call, std::move(run), after, fails_later_});
  return {};
}

Status EmulatedDevice::copy_to_device(DeviceStream stream, DeviceAddress to, const void* from, std::size_t bytes) {
  return enqueue("copy_to_device", stream, [this, to, from, bytes] {
    if (bytes == 0) return;
    std::byte* memory = memory_.locate(to, bytes, 1, DeviceAccess::write, "copy_to_device");
    if (memory != nullptr) std::memcpy(memory, from, bytes);
  });
}

Status EmulatedDevice::copy_to_host(DeviceStream stream, void* to, DeviceAddress from, std::size_t bytes) {
  return enqueue("copy_to_host", stream, [this, to, from, bytes] {
    if (bytes == 0) return;
    const std::byte* memory = memory_.locate(from, bytes, 1, DeviceAccess::copy, "copy_to_host");
    if (memory != nullptr) std::memcpy(to, memory, bytes);
  });
}

Status EmulatedDevice::fill(DeviceStream stream, DeviceAddress to, std::uint8_t byte, std::size_t bytes) {
  return enqueue("fill", stream, [this, to, byte, bytes] {
    if (bytes == 0) return;
    std::byte* memory = memory_.locate(to, bytes, 1, DeviceAccess::write, "fill");
    if (memory != nullptr) std::memset(memory, byte, bytes);
  });
}

Status EmulatedDevice::launch(DeviceStream stream, const char* name, Kernel body, EmulatedBlocks blocks) {
  KILOKV_CHECK(blocks.words <= kBlockWordsMax && blocks.in_cluster > 0);
  return enqueue("launch", stream, [this, name, blocks, body = std::move(body)] { run_kernel(name, body, blocks); });
}

Status EmulatedDevice::record(DeviceEvent event, DeviceStream stream) {
  const auto number = static_cast<std::size_t>(event);
  KILOKV_CHECK(number < events_.size());
  const auto happen = [this, number] { events_[number].time = std::chrono::steady_clock::now(); };
  if (Status status = enqueue("record", stream, happen); !status.ok()) return status;
  const auto index = static_cast<std::size_t>(stream);
  events_[number].place = {index, streams_[index].done + streams_[index].pending.size()};
  return {};
}

Status EmulatedDevice::wait(DeviceStream stream, DeviceEvent event) {
  KILOKV_CHECK(static_cast<std::size_t>(event) < events_.size());
  return enqueue(
      "wait", stream, [] {}, events_[static_cast<std::size_t>(event)].place);
}

Result<double> EmulatedDevice::seconds_between(DeviceEvent begin, DeviceEvent end) {
  KILOKV_CHECK(static_cast<std::size_t>(begin) < events_.size() && static_cast<std::size_t>(end) < events_.size());
  const auto time = [this](DeviceEvent event) { return events_[static_cast<std::size_t>(event)].time; };
  return std::chrono::duration<double>(time(end) - time(begin)).count();
}

Status EmulatedDevice::synchronize(DeviceStream stream) {
  Status status = enter("synchronize");
  if (status.ok() && fails_later_) status = lose("synchronize");
  if (!status.ok()) return status;
  const auto index = static_cast<std::size_t>(stream);
  KILOKV_CHECK(index < streams_.size());
  lost_ = memory_.fault();
  while (lost_.ok() && !streams_[index].pending.empty()) run_one();
  return lost_;
}

bool EmulatedDevice::is_ready(const Stream& stream) const {
  if (stream.pending.empty()) return false;
  const Place& after = stream.pending.front().after;
  return after.operations == 0 || streams_[after.stream].done >= after.operations;
}

// Runs the next operation of a stream that is ready. There always is one, because an operation waits only for older
// ones.
void EmulatedDevice::run_one() {
  std::vector<Stream*> ready;
  for (Stream& stream : streams_) {
    if (is_ready(stream)) ready.push_back(&stream);
  }
  KILOKV_CHECK(!ready.empty());
  Stream& stream = *ready[random_() % ready.size()];
  const Operation operation = std::move(stream.pending.front());
  stream.pending.pop_front();
  if (operation.fails) {
    static_cast<void>(lose(operation.name));
    return;
  }
  operation.run();
  ++stream.done;
  lost_ = memory_.fault();
}

void EmulatedDevice::run_kernel(const char* name, const Kernel& body, EmulatedBlocks blocks) {
  memory_.make_undefined(shared_, shared_bytes_of(team_.size()));
  block_words_.clear();
  for (const DeviceAddress memory : block_memory_) {
    if (blocks.words == 0) break;
    // The words are at the end of the memory, so that an access after them is out of range.
    const std::size_t bytes = blocks.words * sizeof(std::uint64_t);
    block_words_.push_back(memory + (kBlockBytesMax - bytes));
    memory_.make_undefined(block_words_.back(), bytes);
  }
  const DevicePointer<std::uint64_t> shared(shared_);
  KernelMeeting meeting(team_.size());
  team_.run([&](std::uint32_t thread) {
    const KernelScope scope(&memory_, name);
    const std::size_t cluster = std::min<std::size_t>(thread - thread % blocks.in_cluster, block_words_.size());
    const auto of_cluster = std::span<const DeviceAddress>(block_words_).subspan(cluster);
    EmulatedPlatform platform(&team_, thread, shared + std::size_t{thread} * EmulatedPlatform::kSharedWords, &meeting,
                              of_cluster.first(std::min<std::size_t>(blocks.in_cluster, of_cluster.size())));
    body(platform);
    meeting.leave();
  });
  if (!meeting.is_even()) memory_.report(std::string(name) + ": not every thread came to a barrier");
}

}  // namespace kilokv::engine
