#include "server/storage/disk_space.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::server::storage {
namespace {

constexpr std::uint64_t kCopies = 3;
constexpr std::uint64_t kSessionCopies = 2;
constexpr std::int64_t kSampleAgeUsMax = 100000;
constexpr std::int64_t kRetryAfterUs = 1000000;
// The disk is short of space when less than this is left above the reserve, or less than the reserve once more.
constexpr std::uint64_t kShortBytes = std::uint64_t{16} << 20;

std::int64_t monotonic_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

DiskSpace::DiskSpace(std::uint64_t reserve_bytes, std::function<Sample()> measure)
    : reserve_bytes_(reserve_bytes), measure_(std::move(measure)) {
  this->measure();
}

void DiskSpace::measure() {
  // Reset before the measurement: an append in between counts twice, which is safe, and is never missed.
  appended_bytes_.store(0, std::memory_order_relaxed);
  const Sample sample = measure_();
  free_bytes_.store(sample.free_bytes, std::memory_order_relaxed);
  unflushed_bytes_.store(sample.unflushed_bytes, std::memory_order_relaxed);
  state_bytes_.store(sample.state_bytes, std::memory_order_relaxed);
  compaction_bytes_.store(sample.compaction_bytes, std::memory_order_relaxed);
  session_bytes_.store(sample.session_bytes, std::memory_order_relaxed);
  disk_bytes_.store(sample.disk_bytes, std::memory_order_relaxed);
  measured_at_us_.store(monotonic_us(), std::memory_order_relaxed);
}

void DiskSpace::measure_when_old() {
  if (monotonic_us() - measured_at_us_.load(std::memory_order_relaxed) < kSampleAgeUsMax) return;
  const std::unique_lock lock(measure_mutex_, std::try_to_lock);
  if (lock.owns_lock()) measure();
}

DiskSpace::Need DiskSpace::need(LogUse use, std::uint64_t reserved) const {
  return {.use = use,
          .sample = {.free_bytes = free_bytes(),
                     .unflushed_bytes = unflushed_bytes_.load(std::memory_order_relaxed),
                     .state_bytes = state_bytes_.load(std::memory_order_relaxed),
                     .compaction_bytes = compaction_bytes_.load(std::memory_order_relaxed),
                     .session_bytes = session_bytes_.load(std::memory_order_relaxed)},
          .appended_bytes = appended_bytes_.load(std::memory_order_relaxed),
          .reserved_bytes = reserved};
}

// No sum overflows. --disk-reserve is at most 2^60 (options.cpp). The bytes in buffers, of sessions, of changed state
// and of files are in the memory or on the disks of this machine. Each later number is compared with what is left
// before it is added.
std::uint64_t DiskSpace::fixed_bytes(const Need& need) const {
  const Sample& sample = need.sample;
  const std::uint64_t always = sample.unflushed_bytes + sample.state_bytes + kSessionCopies * sample.session_bytes;
  return need.use == LogUse::new_data ? always + reserve_bytes_ + sample.compaction_bytes : always;
}

std::optional<std::uint64_t> DiskSpace::bytes_for_log(const Need& need) const {
  const std::uint64_t fixed = fixed_bytes(need);
  if (fixed > need.sample.free_bytes) return std::nullopt;
  const std::uint64_t copies = (need.sample.free_bytes - fixed) / kCopies;
  if (need.appended_bytes > copies) return std::nullopt;
  return copies - need.appended_bytes;
}

bool DiskSpace::fits(const Need& need) const {
  const std::optional<std::uint64_t> bytes = bytes_for_log(need);
  return bytes && need.reserved_bytes <= *bytes;
}

std::uint64_t DiskSpace::room(LogUse use) {
  measure_when_old();
  const Need now = need(use, reserved_bytes());
  const std::uint64_t bytes = bytes_for_log(now).value_or(0);
  return bytes - std::min(bytes, now.reserved_bytes);
}

bool DiskSpace::is_short() {
  measure_when_old();
  const Need now = need(LogUse::new_data, reserved_bytes());
  const std::uint64_t fixed = fixed_bytes(now) + std::max(reserve_bytes_, kShortBytes);
  // Half of the rest may be changed state, so that the checkpoint comes before new data is refused.
  return fixed > now.sample.free_bytes || now.sample.state_bytes > now.sample.free_bytes - fixed;
}

bool DiskSpace::can_compact() const {
  const Need now = need(LogUse::reads_and_deletes, 0);
  return fixed_bytes(now) + now.sample.compaction_bytes <= now.sample.free_bytes;
}

Status DiskSpace::refuse(const Need& need, std::uint64_t wanted) const {
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  const bool new_data = need.use == LogUse::new_data;
  const std::uint64_t total = fixed_bytes(need) + kCopies * (need.appended_bytes + need.reserved_bytes);
  std::string sum = text(total) + " bytes needed = ";
  if (new_data) {
    sum += text(reserve_bytes_) + " kept free + " + text(need.sample.compaction_bytes) + " to rewrite files + ";
  }
  sum += text(need.sample.unflushed_bytes) + " in memory buffers + " + text(need.sample.state_bytes) +
         " of changed state + " + text(kSessionCopies) + " x " + text(need.sample.session_bytes) +
         " of stored results + " + text(kCopies) + " x (" + text(need.appended_bytes) + " just written + " +
         text(need.reserved_bytes - wanted) + " for requests accepted before + " + text(wanted) + " for this one)";
  return Status::exhausted(ErrorReason::disk_full,
                           {.field = "disk",
                            .limit = text(need.sample.free_bytes) + " bytes free: make room on the disk",
                            .actual = sum,
                            .setting = new_data ? "--disk-reserve" : ""},
                           kRetryAfterUs);
}

Status DiskSpace::reserve(std::uint64_t bytes, LogUse use) {
  measure_when_old();
  KILOKV_CHECK(bytes < std::numeric_limits<std::uint64_t>::max() / 4);
  const std::uint64_t reserved = reserved_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (fits(need(use, reserved))) return {};
  {
    const std::lock_guard lock(measure_mutex_);
    measure();
  }
  const Need now = need(use, reserved);
  if (fits(now)) return {};
  reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return refuse(now, bytes);
}

// The error names no setting, because no setting makes room at once. It tells the bytes that the sessions hold, because
// a setting bounds these.
Status DiskSpace::check_checkpoint() {
  const std::lock_guard lock(measure_mutex_);
  measure();
  const Need now = need(LogUse::reads_and_deletes, 0);
  const Sample& sample = now.sample;
  const std::uint64_t wanted = fixed_bytes(now);
  if (wanted <= sample.free_bytes) return {};
  return Status::exhausted(
      ErrorReason::disk_full,
      {.field = "disk",
       .limit = std::to_string(sample.free_bytes) + " bytes free: make room on the disk",
       .actual = std::to_string(wanted) + " bytes needed for a checkpoint = " + std::to_string(sample.unflushed_bytes) +
                 " in memory buffers + " + std::to_string(sample.state_bytes) + " of changed state + " +
                 std::to_string(kSessionCopies) + " x " + std::to_string(sample.session_bytes) +
                 " of stored results, which a lower --session-bytes-total-max keeps smaller",
       .setting = ""},
      kRetryAfterUs);
}

void DiskSpace::release(std::uint64_t bytes) {
  const std::uint64_t before = reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  KILOKV_CHECK(before >= bytes);
}

}  // namespace kilokv::server::storage
