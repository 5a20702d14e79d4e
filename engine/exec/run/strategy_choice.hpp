// `auto`: chooses the strategy that runs the next batch. Small batches get strategy 0.
//
// Batches are of one kind if they have the same size, by powers of two, and the same contention. For each kind, this
// class measures what a transaction costs with every strategy, and takes the cheapest.
//
// The cost is the time of the batch. Helpers are the other threads that work for a strategy. Where other work waits for
// their cores, their processor time is part of the cost, too. Without that, a server whose clients share its cores
// would become slower: what the engine gains, the clients lose.
//
// A new kind begins with the strategy and the times of a kind that has half or twice its size.
//
// The times of a machine jump: for some batches in a row, a batch may take three times as long. So a strategy is judged
// by the median of its last batches. Another strategy never takes its place for what was measured long ago: it is tried
// first.
//
// A try is four batches of the kind in a row. The first one is not counted, because it may have to pay for memory, for
// caches, or for what has changed elsewhere in the meantime. Four batches of the strategy at hand follow, counted in
// the same way. The tried strategy takes its place if its median is less than both medians of the strategy at hand:
// that from before the try, and that from after it.
//
// Now and then it tries those strategies that were not timed yet, then all others in turn. While the others stay
// slower, tries become rarer. They are so rare that they cost about a hundredth of the time. A try costs what its
// batches take more than the strategy at hand would take for them. A strategy is tried at once when the times that are
// known say that it is clearly cheaper than the strategy at hand. Its time is known anew then, so a try in vain is not
// repeated.
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
#include <utility>
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
    if (kind.try_left == 0 && kind.check_left == 0) plan_for(&kind, busy);
    reason_.tries = kind.try_left > 0;
    reason_.chosen = reason_.tries ? kind.tried : kind.current;
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
    const double factor = (strategy == reason_.chosen ? 1 : kFailedFactor) / static_cast<double>(n);
    const Time each{seconds * factor, helper_seconds * factor};
    if (reason_.tries) {
      kind.try_cost += each.cost(reason_.busy);
      if (kind.try_left-- != kTryBatches) kind.of_tried.add(each);
    } else if (kind.check_left > 0) {
      if (kind.check_left-- != kTryBatches) kind.of_check.add(each);
      if (kind.check_left == 0) end_try(&kind);
    } else {
      kind.of_current.add(each);
      kind.times[kind.current] = kind.of_current.median();
    }
  }

 private:
  // In batches: the length of a try, and the shortest and longest interval between tries.
  static constexpr std::uint32_t kTryBatches = 4, kIntervalMin = 16, kIntervalMax = 8192;
  // The interval before the try of a strategy that was not timed yet, in batches.
  static constexpr std::uint32_t kFirstInterval = 2;
  // A strategy that costs less than this share of the strategy at hand is clearly cheaper.
  static constexpr double kClearlyCheaper = 0.8;
  // If `busy` changes by more than kBusyChange, the next try comes within kIntervalOfChange batches.
  static constexpr double kBusyChange = 0.25;
  static constexpr std::uint32_t kIntervalOfChange = 64;
  // The share of the time that tries may cost. The interval grows until they cost no more, but not beyond
  // kAffordableMax batches.
  static constexpr double kTryShare = 0.01;
  static constexpr std::uint32_t kAffordableMax = 1 << 20;
  // A strategy that could not run a batch counts as slower, by this factor, than the one that ran it.
  static constexpr double kFailedFactor = 10;

  // The last batches that a strategy ran.
  class Recent {
   public:
    void add(Time time) { times_[added_++ % kRecent] = time; }
    std::size_t size() const { return std::min(added_, kRecent); }
    // The median of the wall times, and that of the helpers' times. If two are in the middle, the larger one
    // counts. Both are zero if there is no batch.
    Time median() const {
      return {median_of([](const Time& time) { return time.wall; }),
              median_of([](const Time& time) { return time.helpers; })};
    }
    double least_cost(double busy) const {
      double least = times_[0].cost(busy);
      for (std::size_t i = 1; i < size(); ++i) least = std::min(least, times_[i].cost(busy));
      return least;
    }

   private:
    static constexpr std::size_t kRecent = 8;

    template <typename Part>
    double median_of(Part part) const {
      std::array<double, kRecent> parts{};
      const std::size_t n = size();
      for (std::size_t i = 0; i < n; ++i) parts[i] = part(times_[i]);
      const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(n / 2);
      std::nth_element(parts.begin(), middle, parts.begin() + static_cast<std::ptrdiff_t>(n));
      return *middle;
    }

    std::array<Time, kRecent> times_{};
    std::size_t added_ = 0;
  };

  struct Kind {
    bool is_new = true;
    std::array<Time, kStrategiesMax> times{};  // of each strategy, when it ran last
    std::size_t current = 0;                   // the strategy at hand
    Recent of_current;
    std::uint32_t until_try = kFirstInterval, interval = kIntervalMin;
    std::uint32_t since_try = 0;  // batches since the last try; at most kIntervalMin
    // The try: the batches that are left of it, and of the check after it; the strategy (also of the last try); the
    // times of both; what all batches of the try cost, for each transaction.
    std::uint32_t try_left = 0, check_left = 0;
    std::size_t tried = 0;
    Recent of_tried, of_check;
    double try_cost = 0;
    double planned_busy = 0;  // `busy` when the next try was planned

    std::size_t cheapest(double busy) const {
      std::size_t cheapest = current;
      for (std::size_t i = 0; i < kStrategiesMax; ++i) {
        if (times[i].wall != 0 && times[i].cost(busy) < times[cheapest].cost(busy)) cheapest = i;
      }
      return cheapest;
    }
    void begin_try(std::size_t strategy) {
      tried = strategy;
      try_left = check_left = kTryBatches;
      of_tried = of_check = {};
      try_cost = 0;
    }
  };

  // Begins a try if it is time for one.
  void plan_for(Kind* kind, double busy) {
    if (std::abs(busy - kind->planned_busy) > kBusyChange) {  // a try may turn out otherwise now
      kind->planned_busy = busy;
      kind->until_try = std::min(kind->until_try, kIntervalOfChange);
    }
    const std::size_t cheapest = kind->cheapest(busy);
    if (kind->until_try == 0) {
      kind->begin_try(next_to_try(*kind));
    } else if (kind->since_try == kIntervalMin &&
               kind->times[cheapest].cost(busy) < kClearlyCheaper * kind->times[kind->current].cost(busy)) {
      kind->begin_try(cheapest);
    } else {
      --kind->until_try;
      kind->since_try = std::min(kind->since_try + 1, kIntervalMin);
    }
  }
  // Judges the try, and plans the next one.
  void end_try(Kind* kind) {
    const double busy = reason_.busy;
    const double at_hand = std::min(kind->times[kind->current].cost(busy), kind->of_check.median().cost(busy));
    const double extra = at_hand > 0 ? std::max(kind->try_cost / at_hand - kTryBatches, 0.0) : 0;  // batches
    kind->times[kind->tried] = kind->of_tried.median();
    kind->times[kind->current] = kind->of_check.median();
    if (kind->times[kind->tried].cost(busy) < at_hand) {
      std::swap(kind->current, kind->tried);
      kind->of_current = kind->of_tried;
      kind->interval = kIntervalMin;
    } else {
      kind->of_current = kind->of_check;
      // It is clear only if no batch of the try took less.
      if (kind->of_tried.least_cost(busy) >= at_hand) kind->interval = std::min(2 * kind->interval, kIntervalMax);
    }
    kind->since_try = 0;
    kind->planned_busy = busy;
    kind->until_try =
        std::max(kind->interval, static_cast<std::uint32_t>(std::min<double>(extra / kTryShare, kAffordableMax)));
    if (kind->times[next_to_try(*kind)].wall == 0) kind->until_try = kFirstInterval;
  }
  std::size_t next_to_try(const Kind& kind) const {
    for (std::size_t i = 0; i < strategies_; ++i) {
      if (kind.times[i].wall == 0 && i != kind.current) return i;
    }
    const std::size_t next = (kind.tried + 1) % strategies_;
    return next != kind.current ? next : (next + 1) % strategies_;
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
        kind.current = kinds_[near][contention].current;
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
