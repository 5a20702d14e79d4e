// `auto`: which of two strategies that give the same results runs the next batch. It times each, by the transaction,
// and takes the faster; the slower one is tried again now and then, ever more rarely while it stays the slower. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <array>
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
    tries_ = until_try_ == 0;
    if (!tries_) --until_try_;
    return tries_ ? 1 - faster() : faster();
  }
  // The batch that next() was asked for took so long.
  void took(std::size_t strategy, std::size_t n, double seconds) {
    if (n < kTransactionsMin) return;
    const std::size_t before = faster();
    double& mean = seconds_each_[strategy];
    const double each = seconds / static_cast<double>(n);
    // The first try of a strategy pays for its memory: the second one counts. One that was interrupted hardly does.
    mean = times_[strategy]++ < 2 ? each : mean + (std::min(each, 2 * mean) - mean) * kWeight;
    if (!tries_) return;
    if (times_[strategy] < kFirstTries) return;  // again at once
    interval_ = faster() == before ? std::min(2 * interval_, kIntervalMax) : kIntervalMin;
    until_try_ = interval_;
  }

 private:
  static constexpr double kWeight = 0.25;
  static constexpr std::uint32_t kFirstTries = 3, kIntervalMin = 64, kIntervalMax = 8192;  // batches

  std::size_t faster() const { return times_[1] != 0 && seconds_each_[1] < seconds_each_[0] ? 1 : 0; }

  std::array<double, 2> seconds_each_{};
  std::array<std::uint32_t, 2> times_{};
  std::uint32_t until_try_ = 2, interval_ = kIntervalMin;
  bool tries_ = false;
};

}  // namespace kilokv::engine
