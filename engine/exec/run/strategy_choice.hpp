// `auto`: chooses the strategy that runs the next batch. Small batches get strategy 0.
//
// Batches are of one kind if they have the same size, by powers of two, and the same contention. For each kind, this
// class measures the time per transaction of every strategy, and takes the fastest.
//
// Now and then it tries another strategy: first those that were not timed yet, then all others in turn. While the
// others stay slower, tries become rarer. They are so rare that they cost about a hundredth of the time. A try is two
// batches in a row, of which only the second is timed. The first one may have to pay for memory, for caches, or for
// what has changed elsewhere in the meantime.
//
// Not thread-safe.
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
  // Batches with fewer transactions go to strategy 0, and are not timed: another strategy would gain nothing.
  static constexpr std::size_t kTransactionsMin = 64;
  static constexpr std::size_t kStrategiesMax = 8;

  // What was known when the last choice was made.
  struct Reason {
    std::size_t transactions = 0;  // of the batch; 0: there was no choice yet
    Contention contention = Contention::low;
    std::array<double, kStrategiesMax> seconds_each{};  // by strategy, for batches of this kind; 0: not timed yet
    bool tries = false;                                 // this batch tries a strategy
    std::size_t chosen = 0;

    // The reason in words. `names`: of the strategies.
    std::string text(const std::vector<std::string>& names) const;
  };

  explicit StrategyChoice(std::size_t strategies = 2) : strategies_(strategies) {
    KILOKV_CHECK(strategies >= 2 && strategies <= kStrategiesMax);
  }

  // The strategy that is to run a batch of n transactions.
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
  // `strategy` ran the batch of the last next(), and took `seconds`. If it is not the chosen one, the chosen one could
  // not run the batch. This counts as if the chosen one had been much slower, so that it is still tried, but rarely.
  void took(std::size_t strategy, double seconds) {
    const std::size_t n = reason_.transactions;
    if (n < kTransactionsMin) return;
    Kind& kind = kind_at_hand();
    const std::size_t before = kind.fastest();
    if (reason_.tries && --kind.try_left > 0) return;
    double& mean = kind.seconds_each[reason_.chosen];
    const double each = seconds / static_cast<double>(n) * (strategy == reason_.chosen ? 1 : kFailedFactor);
    // A very slow batch may have been interrupted, so it counts as at most twice the mean. Tries are rare, so a try
    // that is faster replaces the mean at once.
    const bool is_news = mean == 0 || (reason_.tries && each < mean);
    mean = is_news ? each : mean + (std::min(each, 2 * mean) - mean) * kWeight;
    if (reason_.tries) plan_try(&kind, before, mean);
  }

 private:
  static constexpr double kWeight = 0.25;  // of a new time in the mean
  // In batches: the length of a try, and the shortest and longest interval between tries.
  static constexpr std::uint32_t kTryBatches = 2, kIntervalMin = 64, kIntervalMax = 8192;
  // The interval before the try of a strategy that was not timed yet, in batches.
  static constexpr std::uint32_t kFirstInterval = 2;
  // The share of the time that tries may cost. The interval grows until they cost no more, but not beyond
  // kAffordableMax batches.
  static constexpr double kTryShare = 0.01;
  static constexpr std::uint32_t kAffordableMax = 1 << 20;
  // A strategy that could not run a batch counts as slower, by this factor, than the one that ran it.
  static constexpr double kFailedFactor = 10;

  struct Kind {
    std::array<double, kStrategiesMax> seconds_each{};
    std::uint32_t until_try = kFirstInterval, interval = kIntervalMin, try_left = kTryBatches;
    std::size_t tried = 0;  // the strategy of the last try
    std::size_t fastest() const {
      std::size_t fastest = 0;
      for (std::size_t i = 1; i < kStrategiesMax; ++i) {
        if (seconds_each[i] != 0 && seconds_each[i] < seconds_each[fastest]) fastest = i;
      }
      return fastest;
    }
  };

  // Plans the next try, after the try of a strategy that took `seconds` for each transaction. `before`: the strategy
  // that was the fastest before this try.
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
  Reason reason_;  // of the current batch
};

}  // namespace kilokv::engine
