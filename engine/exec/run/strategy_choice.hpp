// `auto`: which of a few strategies runs the next batch; strategy 0 is what small batches get. For batches of each
// size, by powers of two, and each contention, it times all, by the transaction, and takes the fastest. Another one is
// tried now and then, the ones that were not timed yet first, then in turn, ever more rarely while it stays slower, and
// so rarely that trying costs about a hundredth of the time: two batches in a row, of which the second counts, for the
// first may pay for memory, caches, or what has changed elsewhere meanwhile. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/exec/run/contention.hpp"

namespace kilokv::engine {

class StrategyChoice {
 public:
  // Batches of fewer are for strategy 0, untimed: there is nothing to win.
  static constexpr std::size_t kTransactionsMin = 64;
  static constexpr std::size_t kStrategiesMax = 8;

  // What it knew when it chose.
  struct Reason {
    std::size_t transactions = 0;  // of the batch; 0: none was asked for yet
    Contention contention = Contention::low;
    std::array<double, kStrategiesMax> seconds_each{};  // of batches like it, by strategy; 0: not timed yet
    bool tries = false;                                 // one that may have become the fastest
    std::size_t chosen = 0;

    // With the strategies' names.
    std::string text(const std::vector<std::string>& names) const;
  };

  explicit StrategyChoice(std::size_t strategies = 2) : strategies_(strategies) {
    KILOKV_CHECK(strategies >= 2 && strategies <= kStrategiesMax);
  }

  // Which one is to run a batch of n transactions.
  std::size_t next(std::size_t n, Contention contention) {
    reason_ = {n, contention, {}, false, 0};
    if (n < kTransactionsMin) return 0;
    Kind& kind = kind_at_hand();
    reason_.seconds_each = kind.seconds_each;
    reason_.tries = kind.until_try == 0;
    if (!reason_.tries) --kind.until_try;
    if (reason_.tries && kind.try_left == kTryBatches) kind.tried = next_to_try(kind);
    reason_.chosen = reason_.tries ? kind.tried : kind.fastest();
    return reason_.chosen;
  }
  const Reason& reason() const { return reason_; }
  // The batch that next() was asked for was run by this strategy, and took so long. Another one than was chosen: the
  // chosen one could not run it, which counts as if it had been much slower, so that it is tried again, but rarely.
  void took(std::size_t strategy, double seconds) {
    const std::size_t n = reason_.transactions;
    if (n < kTransactionsMin) return;
    Kind& kind = kind_at_hand();
    const std::size_t before = kind.fastest();
    if (reason_.tries && --kind.try_left > 0) return;
    double& mean = kind.seconds_each[reason_.chosen];
    const double each = seconds / static_cast<double>(n) * (strategy == reason_.chosen ? 1 : kFailedFactor);
    // One that was interrupted hardly counts; tries are rare, so what became faster is believed at once.
    const bool is_news = mean == 0 || (reason_.tries && each < mean);
    mean = is_news ? each : mean + (std::min(each, 2 * mean) - mean) * kWeight;
    if (reason_.tries) plan_try(&kind, before, mean);
  }

 private:
  static constexpr double kWeight = 0.25;
  static constexpr std::uint32_t kTryBatches = 2, kIntervalMin = 64, kIntervalMax = 8192;  // batches
  static constexpr std::uint32_t kFirstInterval = 2;        // before one that was not timed yet
  static constexpr double kTryShare = 0.01;                 // of the time
  static constexpr std::uint32_t kAffordableMax = 1 << 20;  // batches, between tries of what is dearer than all else
  static constexpr double kFailedFactor = 10;

  struct Kind {
    std::array<double, kStrategiesMax> seconds_each{};
    std::uint32_t until_try = kFirstInterval, interval = kIntervalMin, try_left = kTryBatches;
    std::size_t tried = 0;  // last
    std::size_t fastest() const {
      std::size_t fastest = 0;
      for (std::size_t i = 1; i < kStrategiesMax; ++i) {
        if (seconds_each[i] != 0 && seconds_each[i] < seconds_each[fastest]) fastest = i;
      }
      return fastest;
    }
  };

  // Behind the try of one that took `seconds` a transaction.
  void plan_try(Kind* kind, std::size_t before, double seconds) {
    const std::size_t fastest = kind->fastest();
    kind->try_left = kTryBatches;
    kind->interval = fastest == before ? std::min(2 * kind->interval, kIntervalMax) : kIntervalMin;
    const double best = kind->seconds_each[fastest];
    const double affordable = best > 0 ? kTryBatches * (seconds / best) / kTryShare : 0;
    kind->until_try =
        std::max(kind->interval, static_cast<std::uint32_t>(std::min<double>(affordable, kAffordableMax)));
    if (kind->seconds_each[next_to_try(*kind)] == 0) kind->until_try = kFirstInterval;
  }
  std::size_t next_to_try(const Kind& kind) const {
    for (std::size_t i = 1; i < strategies_; ++i) {
      if (kind.seconds_each[i] == 0) return i;
    }
    const std::size_t next = (kind.tried + 1) % strategies_;
    return next != kind.fastest() ? next : (next + 1) % strategies_;
  }

  Kind& kind_at_hand() {
    const auto size = static_cast<std::size_t>(std::bit_width(reason_.transactions)) % kinds_.size();
    return kinds_[size][static_cast<std::size_t>(reason_.contention)];
  }

  std::size_t strategies_;
  std::array<std::array<Kind, kContentions>, 32> kinds_{};
  Reason reason_;  // of the batch at hand
};

}  // namespace kilokv::engine
