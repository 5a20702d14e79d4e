// `auto`: chooses the strategy that runs the next batch. Small batches get strategy 0.
//
// Batches are of one kind if they have the same size, by powers of two, and the same contention. For each kind, this
// class measures what a transaction costs with every strategy, and takes the cheapest.
//
// The cost is the time of the batch. Helpers are the other threads that work for a strategy. Where other work waits for
// their cores, their processor time is part of the cost, too. Without that, a server whose clients share its cores
// would become slower: what the engine gains, the clients lose.
//
// A new kind begins with the times of a kind that has half or twice its size. So it begins with a good strategy.
//
// Now and then it tries another strategy: first those that were not timed yet, then all others in turn. While the
// others stay slower, tries become rarer. They are so rare that they cost about a hundredth of the time. A try is two
// batches in a row, of which only the second tells what the strategy costs. The first one may have to pay for memory,
// for caches, or for what has changed elsewhere in the meantime. A try costs what both batches take more than the
// cheapest strategy would take for them.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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

  // For each transaction, in seconds.
  struct Time {
    double wall = 0;     // 0: not timed yet
    double helpers = 0;  // processor time of the helpers
    // `busy`: the share of the time for which other work waits for a core.
    double cost(double busy) const { return wall + busy * helpers; }
  };

  // What was known when the last choice was made.
  struct Reason {
    std::size_t transactions = 0;  // of the batch; 0: there was no choice yet
    Contention contention = Contention::low;
    double busy = 0;                           // as in next()
    std::array<Time, kStrategiesMax> times{};  // by strategy, for batches of this kind
    bool tries = false;                        // this batch tries a strategy
    std::size_t chosen = 0;

    // The reason in words. `names`: of the strategies.
    std::string text(const std::vector<std::string>& names) const;
  };

  explicit StrategyChoice(std::size_t strategies = 2) : strategies_(strategies) {
    KILOKV_CHECK(strategies >= 2 && strategies <= kStrategiesMax);
  }

  // The strategy that is to run a batch of n transactions. `busy`: the share of the time for which other work waits for
  // a core, 0 to 1.
  std::size_t next(std::size_t n, Contention contention, double busy = 0) {
    reason_ = {n, contention, busy, {}, false, 0};
    if (n < kTransactionsMin) return 0;
    Kind& kind = kind_at_hand();
    reason_.times = kind.times;
    if (std::abs(busy - kind.planned_busy) > kBusyChange) {  // a try may turn out otherwise now
      kind.planned_busy = busy;
      kind.until_try = std::min(kind.until_try, kIntervalOfChange);
    }
    reason_.tries = kind.until_try == 0;
    if (!reason_.tries) --kind.until_try;
    if (reason_.tries && kind.try_left == kTryBatches) kind.tried = next_to_try(kind);
    reason_.chosen = reason_.tries ? kind.tried : kind.cheapest(busy);
    return reason_.chosen;
  }
  const Reason& reason() const { return reason_; }
  // `strategy` ran the batch of the last next(), and took `seconds`. Its helpers used `helper_seconds`. If it is not
  // the chosen one, the chosen one could not run the batch. This counts as if the chosen one had been much slower, so
  // that it is still tried, but rarely.
  void took(std::size_t strategy, double seconds, double helper_seconds = 0) {
    const std::size_t n = reason_.transactions;
    if (n < kTransactionsMin) return;
    Kind& kind = kind_at_hand();
    const std::size_t before = kind.cheapest(reason_.busy);
    const double factor = (strategy == reason_.chosen ? 1 : kFailedFactor) / static_cast<double>(n);
    const Time each{seconds * factor, helper_seconds * factor};
    if (reason_.tries) {
      kind.try_cost += each.cost(reason_.busy);
      if (--kind.try_left > 0) return;
    }
    Time& mean = kind.times[reason_.chosen];
    // A try is rare, so a try that is cheaper replaces the mean at once.
    if (mean.wall == 0 || (reason_.tries && each.cost(reason_.busy) < mean.cost(reason_.busy))) {
      mean = each;
    } else {
      // A very slow batch may have been interrupted, so it counts as at most twice the mean.
      mean.wall += (std::min(each.wall, 2 * mean.wall) - mean.wall) * kWeight;
      const double most = mean.helpers > 0 ? 2 * mean.helpers : each.helpers;
      mean.helpers += (std::min(each.helpers, most) - mean.helpers) * kWeight;
    }
    if (reason_.tries) plan_try(&kind, before);
  }

 private:
  static constexpr double kWeight = 0.25;  // of a new time in the mean
  // In batches: the length of a try, and the shortest and longest interval between tries.
  static constexpr std::uint32_t kTryBatches = 2, kIntervalMin = 16, kIntervalMax = 8192;
  // The interval before the try of a strategy that was not timed yet, in batches.
  static constexpr std::uint32_t kFirstInterval = 2;
  // If `busy` changes by more than kBusyChange, the next try comes within kIntervalOfChange batches.
  static constexpr double kBusyChange = 0.25;
  static constexpr std::uint32_t kIntervalOfChange = 64;
  // The share of the time that tries may cost. The interval grows until they cost no more, but not beyond
  // kAffordableMax batches.
  static constexpr double kTryShare = 0.01;
  static constexpr std::uint32_t kAffordableMax = 1 << 20;
  // A strategy that could not run a batch counts as slower, by this factor, than the one that ran it.
  static constexpr double kFailedFactor = 10;

  struct Kind {
    bool is_new = true;
    std::array<Time, kStrategiesMax> times{};
    std::uint32_t until_try = kFirstInterval, interval = kIntervalMin, try_left = kTryBatches;
    std::size_t tried = 0;    // the strategy of the last try
    double try_cost = 0;      // of its batches, for each transaction, added up
    double planned_busy = 0;  // `busy` when the next try was planned
    std::size_t cheapest(double busy) const {
      std::size_t cheapest = 0;
      for (std::size_t i = 1; i < kStrategiesMax; ++i) {
        if (times[i].wall != 0 && times[i].cost(busy) < times[cheapest].cost(busy)) cheapest = i;
      }
      return cheapest;
    }
  };

  // Plans the next try, after a try. `before`: the strategy that was the cheapest before it.
  void plan_try(Kind* kind, std::size_t before) {
    const std::size_t cheapest = kind->cheapest(reason_.busy);
    kind->try_left = kTryBatches;
    kind->interval = cheapest == before ? std::min(2 * kind->interval, kIntervalMax) : kIntervalMin;
    const double best = kind->times[cheapest].cost(reason_.busy);
    const double extra = best > 0 ? std::max(kind->try_cost / best - kTryBatches, 0.0) : 0;  // batches
    kind->try_cost = 0;
    kind->planned_busy = reason_.busy;
    kind->until_try =
        std::max(kind->interval, static_cast<std::uint32_t>(std::min<double>(extra / kTryShare, kAffordableMax)));
    if (kind->times[next_to_try(*kind)].wall == 0) kind->until_try = kFirstInterval;
  }
  std::size_t next_to_try(const Kind& kind) const {
    for (std::size_t i = 1; i < strategies_; ++i) {
      if (kind.times[i].wall == 0) return i;
    }
    const std::size_t next = (kind.tried + 1) % strategies_;
    return next != kind.cheapest(reason_.busy) ? next : (next + 1) % strategies_;
  }

  Kind& kind_at_hand() {
    const auto size = static_cast<std::size_t>(std::bit_width(reason_.transactions)) % kinds_.size();
    const auto contention = static_cast<std::size_t>(reason_.contention);
    Kind& kind = kinds_[size][contention];
    if (kind.is_new) {
      kind.is_new = false;
      for (const std::size_t near : {size - 1, size + 1}) {
        if (near >= kinds_.size() || kinds_[near][contention].is_new) continue;
        kind.times = kinds_[near][contention].times;
        kind.until_try = kIntervalMin;
      }
    }
    return kind;
  }

  std::size_t strategies_;
  std::array<std::array<Kind, kContentions>, 32> kinds_{};
  Reason reason_;  // of the current batch
};

}  // namespace kilokv::engine
