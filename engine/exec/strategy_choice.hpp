// `auto`: which of two strategies that give the same results runs the next batch. For batches of each size, by powers
// of two, it times both, by the transaction, and takes the faster. The slower one is tried again now and then, ever
// more rarely while it stays the slower: two batches in a row, of which the second counts, for the first may pay for
// memory, caches, or what has changed elsewhere meanwhile. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace kilokv::engine {

class StrategyChoice {
 public:
  // Batches of fewer go to strategy 0, untimed: there is nothing to win.
  static constexpr std::size_t kTransactionsMin = 64;

  // Which of 0 and 1 is to run a batch of n transactions.
  std::size_t next(std::size_t n) {
    if (n < kTransactionsMin) return 0;
    Size& size = size_of(n);
    tries_ = size.until_try == 0;
    if (tries_) return 1 - size.faster();
    --size.until_try;
    return size.faster();
  }
  // The batch that next() was asked for was run by this strategy, which may be the other, and took so long.
  void took(std::size_t strategy, std::size_t n, double seconds) {
    if (n < kTransactionsMin) return;
    Size& size = size_of(n);
    const std::size_t before = size.faster();
    if (tries_ && --size.try_left > 0) return;
    double& mean = size.seconds_each[strategy];
    const double each = seconds / static_cast<double>(n);
    // One that was interrupted hardly counts.
    mean = mean == 0 ? each : mean + (std::min(each, 2 * mean) - mean) * kWeight;
    if (!tries_) return;
    size.try_left = kTryBatches;
    size.interval = size.faster() == before ? std::min(2 * size.interval, kIntervalMax) : kIntervalMin;
    size.until_try = size.interval;
  }

 private:
  static constexpr double kWeight = 0.25;
  static constexpr std::uint32_t kTryBatches = 2, kIntervalMin = 64, kIntervalMax = 8192;  // batches

  struct Size {
    std::array<double, 2> seconds_each{};  // 0: not timed yet
    std::uint32_t until_try = 2, interval = kIntervalMin, try_left = kTryBatches;
    std::size_t faster() const { return seconds_each[1] != 0 && seconds_each[1] < seconds_each[0] ? 1 : 0; }
  };

  Size& size_of(std::size_t n) { return sizes_[static_cast<std::size_t>(std::bit_width(n)) % sizes_.size()]; }

  std::array<Size, 32> sizes_{};
  bool tries_ = false;  // the batch at hand
};

}  // namespace kilokv::engine
