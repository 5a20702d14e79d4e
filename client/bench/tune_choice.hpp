// Which size `kilokv-bench tune` recommends, from the runs of each size. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "client/bench/spread.hpp"

namespace kilokv::bench {

inline constexpr double kGoodEnough = 0.95;     // of the best throughput
inline constexpr double kSpreadMax = 0.15;      // with more, nothing is recommended
inline constexpr std::uint32_t kRoundsMin = 3;  // with fewer, nothing is recommended

// A size with the results of its runs, one of each round.
struct SizeResults {
  std::uint32_t size = 0;
  std::vector<double> per_s;   // committed transactions
  std::vector<double> p99_us;  // of the same runs

  Summary speed() const { return summarize(per_s); }
  double p99() const { return summarize(p99_us).median; }
  std::size_t runs_within(double goal_us) const;
};

struct Choice {
  std::uint32_t size = 0, best = 0;  // the recommended size, and the fastest one
  // The largest spread of a contender, and the contender that has it. A size is a contender if one of its runs reached
  // the wanted share of the median of the best size. The other sizes cannot change the choice.
  double spread = 0;
  std::uint32_t widest = 0;
  bool too_busy = false;  // spread > kSpreadMax
  // The other sizes that could be chosen if each median may be wrong by the spread, in their order.
  std::vector<std::uint32_t> others;
};

// The smallest size with at least `share` of the throughput of the best size. Empty: there are no sizes, or none
// committed anything. Requires: sizes ascend, and all have equally many runs.
std::optional<Choice> choose(const std::vector<SizeResults>& sizes, double share);

// The fastest of the sizes whose median p99 meets the goal. `others` also has the sizes that could be chosen because
// some of the runs met the goal and others did not. Empty: no size meets the goal. Requires: as choose().
std::optional<Choice> choose_within_goal(const std::vector<SizeResults>& sizes, double goal_us);

}  // namespace kilokv::bench
