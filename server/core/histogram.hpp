// Counts how often a value was seen, by its size, for the metrics. Its bounds are fixed when it is made, so that it
// never allocates.
//
// Thread safety: any thread may add and read. A snapshot that is taken meanwhile may lack the last values, and never
// has one twice.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kilokv::server {

class Histogram {
 public:
  static constexpr std::size_t kBoundsMax = 24;

  // `bounds`: ascending, at most kBoundsMax, and they outlive the histogram. A value counts for the first bound that is
  // not less.
  explicit Histogram(std::span<const std::uint64_t> bounds) : bounds_(bounds) {}

  void add(std::uint64_t value) {
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && value > bounds_[bucket]) ++bucket;
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(value, std::memory_order_relaxed);
  }
  // The time from `begin_us` to `now_us`. A clock that seems to go back counts as no time.
  void add_time(std::int64_t begin_us, std::int64_t now_us) {
    add(now_us > begin_us ? static_cast<std::uint64_t>(now_us - begin_us) : 0);
  }

  struct Snapshot {
    std::span<const std::uint64_t> bounds;
    std::array<std::uint64_t, kBoundsMax + 1> counts{};  // of each bound, and of what is more than the last one
    std::uint64_t count = 0, sum = 0;
  };
  Snapshot snapshot() const {
    Snapshot taken;
    taken.bounds = bounds_;
    taken.sum = sum_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i <= bounds_.size(); ++i) {
      taken.counts[i] = counts_[i].load(std::memory_order_relaxed);
      taken.count += taken.counts[i];
    }
    return taken;
  }

 private:
  const std::span<const std::uint64_t> bounds_;
  std::array<std::atomic<std::uint64_t>, kBoundsMax + 1> counts_{};
  std::atomic<std::uint64_t> sum_{0};
};

}  // namespace kilokv::server
