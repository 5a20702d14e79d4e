// `auto`: which of two strategies that give the same results runs the next batch. For batches of each size, by powers
// of two, and each contention, it times both, by the transaction, and takes the faster. The slower one is tried again
// now and then, ever more rarely while it stays the slower: two batches in a row, of which the second counts, for the
// first may pay for memory, caches, or what has changed elsewhere meanwhile. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/exec/contention.hpp"

namespace kilokv::engine {

class StrategyChoice {
 public:
  // Batches of fewer are for strategy 0, untimed: there is nothing to win.
  static constexpr std::size_t kTransactionsMin = 64;

  // What it knew when it chose.
  struct Reason {
    std::size_t transactions = 0;  // of the batch; 0: none was asked for yet
    Contention contention = Contention::low;
    std::array<double, 2> seconds_each{};  // of batches like it, by strategy; 0: not timed yet
    bool tries = false;                    // the slower one, which may have become the faster
    std::size_t chosen = 0;

    // With the strategies' names.
    std::string text(const std::array<const char*, 2>& names) const;
  };

  // Which of 0 and 1 is to run a batch of n transactions.
  std::size_t next(std::size_t n, Contention contention) {
    reason_ = {n, contention, {}, false, 0};
    if (n < kTransactionsMin) return 0;
    Kind& kind = kind_at_hand();
    reason_.seconds_each = kind.seconds_each;
    reason_.tries = kind.until_try == 0;
    if (!reason_.tries) --kind.until_try;
    reason_.chosen = reason_.tries ? 1 - kind.faster() : kind.faster();
    return reason_.chosen;
  }
  const Reason& reason() const { return reason_; }
  // The batch that next() was asked for was run by this strategy, which may be the other, and took so long.
  void took(std::size_t strategy, double seconds) {
    const std::size_t n = reason_.transactions;
    if (n < kTransactionsMin) return;
    Kind& kind = kind_at_hand();
    const std::size_t before = kind.faster();
    if (reason_.tries && --kind.try_left > 0) return;
    double& mean = kind.seconds_each[strategy];
    const double each = seconds / static_cast<double>(n);
    // One that was interrupted hardly counts.
    mean = mean == 0 ? each : mean + (std::min(each, 2 * mean) - mean) * kWeight;
    if (!reason_.tries) return;
    kind.try_left = kTryBatches;
    kind.interval = kind.faster() == before ? std::min(2 * kind.interval, kIntervalMax) : kIntervalMin;
    kind.until_try = kind.interval;
  }

 private:
  static constexpr double kWeight = 0.25;
  static constexpr std::uint32_t kTryBatches = 2, kIntervalMin = 64, kIntervalMax = 8192;  // batches

  struct Kind {
    std::array<double, 2> seconds_each{};
    std::uint32_t until_try = 2, interval = kIntervalMin, try_left = kTryBatches;
    std::size_t faster() const { return seconds_each[1] != 0 && seconds_each[1] < seconds_each[0] ? 1 : 0; }
  };

  Kind& kind_at_hand() {
    const auto size = static_cast<std::size_t>(std::bit_width(reason_.transactions)) % kinds_.size();
    return kinds_[size][static_cast<std::size_t>(reason_.contention)];
  }

  std::array<std::array<Kind, kContentions>, 32> kinds_{};
  Reason reason_;  // of the batch at hand
};

}  // namespace kilokv::engine
