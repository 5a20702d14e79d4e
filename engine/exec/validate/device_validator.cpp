#include "engine/exec/validate/device_validator.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "engine/platform/host.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kBlockMin = 1024, kBlockMax = 65536;  // checks
constexpr std::uint32_t kBlocksWanted = 16;                   // in a read set, at least, unless blocks become too small
constexpr std::uint32_t kFrontBlock = 1024;
constexpr std::chrono::seconds kPatience{2};

struct BlockOffsets {
  BlockOffsets() {
    BlockLayout layout;
    words = layout.add<std::uint64_t>(kRingWords);
    entries = layout.add<std::uint64_t>(std::size_t{kRingEntryWords} * kSlots);
    ids = layout.add<KeyId>(std::size_t{kBlockMax} * kSlots);
    versions = layout.add<std::int64_t>(std::size_t{kBlockMax} * kSlots);
    bytes = layout.bytes();
  }
  std::size_t words, entries, ids, versions, bytes;
};

// The front's source of blocks. It copies each block to its slot.
struct Copied {
  const ReadSet& set;
  KeyId* ids;
  std::int64_t* versions;
  std::uint32_t block;
  const std::atomic<bool>& has_ended;
  std::chrono::steady_clock::time_point until = {};

  std::uint32_t first_stale(std::uint32_t begin, std::uint32_t end) const { return set.first_stale(begin, end); }
  std::uint64_t stage(std::uint32_t slot, std::uint32_t begin, std::uint32_t end) const {
    const std::size_t to = std::size_t{slot} * block;
    std::memcpy(ids + to, set.ids.data() + begin, (end - begin) * sizeof(KeyId));
    std::memcpy(versions + to, set.versions.data() + begin, (end - begin) * sizeof(std::int64_t));
    return to;
  }
  bool waits() {
    const auto now = std::chrono::steady_clock::now();
    if (until == std::chrono::steady_clock::time_point{}) until = now + kPatience;
    return now < until && !has_ended.load(std::memory_order_relaxed);
  }
};

// Lets the stream run while the caller works.
class Runner {
 public:
  Runner(Device* device, DeviceStream stream) : device_(*device), stream_(stream) {
    if (device->runs_by_itself()) return;
    try {
      thread_ = std::thread([this] {
        status_ = device_.synchronize(stream_);
        has_ended_.store(true, std::memory_order_relaxed);
      });
    } catch (const std::system_error&) {
      has_ended_.store(true, std::memory_order_relaxed);  // the stream will run in join(), too late to help
    }
  }
  // Waits until the stream has done everything.
  Status join() {
    if (!thread_.joinable()) return device_.synchronize(stream_);
    thread_.join();
    return status_;
  }
  const std::atomic<bool>& has_ended() const { return has_ended_; }

 private:
  Device& device_;
  DeviceStream stream_;
  std::atomic<bool> has_ended_{false};
  Status status_;
  std::thread thread_;
};

}  // namespace

Status DeviceValidator::reserve(DeviceStream stream) {
  const BlockOffsets offsets;
  if (shared_.bytes() == 0) {
    if (Status status = shared_.reserve(offsets.bytes); !status.ok()) return status;
    shared_.host<std::uint64_t>(offsets.words)[kRingCut] = kNoCut;
  }
  Status status = grid_.reserve(kGridWords * sizeof(std::uint64_t));
  return status.ok() ? device_.fill(stream, grid_.address(), 0, kGridWords * sizeof(std::uint64_t)) : status;
}

Status DeviceValidator::run(DeviceStream stream, const DeviceRecords& table, const ReadSet& set, ValidatorLanes lanes,
                            ValidatorResult* result) {
  if (Status status = reserve(stream); !status.ok()) return status;
  const BlockOffsets offsets;
  BulkArguments<DeviceSpace> of_table;
  table.open(&of_table);
  ValidatorArguments<DeviceSpace> a;
  a.ring = {shared_.at<std::uint64_t>(offsets.words), shared_.at<std::uint64_t>(offsets.entries), kSlots};
  a.position = position_;
  a.grid = grid_.at<std::uint64_t>(0);
  a.ids = shared_.at<const std::uint64_t>(offsets.ids);
  a.versions = shared_.at<const std::uint64_t>(offsets.versions);
  a.slots = of_table.slots;
  a.capacity = of_table.capacity;
  a.lanes = lanes;
  if (Status status = kernels_.validator(stream, a); !status.ok()) return status;
  Runner runner(&device_, stream);
  HostPlatform platform(nullptr, 0, nullptr);
  const std::uint32_t block_max = std::clamp(2 * kernels_.validator_threads(), kBlockMin, kBlockMax);
  const std::uint32_t block = std::clamp(set.size() / kBlocksWanted, kBlockMin, block_max);
  const RingArguments<HostSpace> ring{shared_.host<std::uint64_t>(offsets.words),
                                      shared_.host<std::uint64_t>(offsets.entries), kSlots};
  Copied source{set, shared_.host<KeyId>(offsets.ids), shared_.host<std::int64_t>(offsets.versions), block,
                runner.has_ended()};
  ValidatorFront<HostPlatform, Copied> front(platform, ring, position_, {.block = block, .front_block = kFrontBlock},
                                             &source);
  *result = front.run(set.size());
  front.end();
  position_ = front.position();
  Status status = runner.join();
  if (status.code() != StatusCode::resource_exhausted) return status;
  return Status(StatusCode::internal, status.message());  // the kernel was launched, and may still run
}

}  // namespace kilokv::engine
