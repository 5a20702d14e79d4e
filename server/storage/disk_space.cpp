#include "server/storage/disk_space.hpp"

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
  // Before the look: an append in between counts twice, never not at all.
  appended_bytes_.store(0, std::memory_order_relaxed);
  const Sample sample = measure_();
  free_bytes_.store(sample.free_bytes, std::memory_order_relaxed);
  for_checkpoint_bytes_.store(sample.unflushed_bytes + kSessionCopies * sample.session_bytes,
                              std::memory_order_relaxed);
  measured_at_us_.store(monotonic_us(), std::memory_order_relaxed);
}

void DiskSpace::measure_when_old() {
  if (monotonic_us() - measured_at_us_.load(std::memory_order_relaxed) < kSampleAgeUsMax) return;
  const std::unique_lock lock(measure_mutex_, std::try_to_lock);
  if (lock.owns_lock()) measure();
}

bool DiskSpace::fits(std::uint64_t reserved) const {
  const std::uint64_t taken = reserve_bytes_ + for_checkpoint_bytes_.load(std::memory_order_relaxed);
  const std::uint64_t free = free_bytes_.load(std::memory_order_relaxed);
  if (taken > free) return false;
  const std::uint64_t copies = (free - taken) / kCopies;
  const std::uint64_t appended = appended_bytes_.load(std::memory_order_relaxed);
  return appended <= copies && reserved <= copies - appended;
}

Status DiskSpace::reserve(std::uint64_t bytes) {
  measure_when_old();
  KILOKV_CHECK(bytes < std::numeric_limits<std::uint64_t>::max() / 4);
  const std::uint64_t reserved = reserved_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (fits(reserved)) return {};
  {
    const std::lock_guard lock(measure_mutex_);
    measure();
  }
  if (fits(reserved)) return {};
  reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return Status::exhausted({.field = "disk",
                            .limit = std::to_string(reserve_bytes_) + " bytes kept free",
                            .met = std::to_string(free_bytes()) + " bytes free, " + std::to_string(reserved - bytes) +
                                   " reserved, " + std::to_string(bytes) + " wanted",
                            .knob = "--disk-reserve"},
                           kRetryAfterUs);
}

Status DiskSpace::check_checkpoint() {
  const std::lock_guard lock(measure_mutex_);
  measure();
  const std::uint64_t wanted = for_checkpoint_bytes_.load(std::memory_order_relaxed);
  if (wanted <= free_bytes()) return {};
  return Status::exhausted({.field = "disk",
                            .limit = std::to_string(free_bytes()) + " bytes free",
                            .met = std::to_string(wanted) + " bytes for a checkpoint",
                            .knob = "--session-bytes-total-max"},
                           kRetryAfterUs);
}

void DiskSpace::release(std::uint64_t bytes) {
  const std::uint64_t before = reserved_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  KILOKV_CHECK(before >= bytes);
}

}  // namespace kilokv::server::storage
