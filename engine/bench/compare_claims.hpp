// What the points of `compare` say about claims. Claims of the PR-STM paper, and a promise of this database:
//   prstm/gpustm     above 1 wherever 5% or more of the transactions are semantic (figures 7 to 9)
//   gpustm collapse  unsorted, a few semantic transactions leave gpustm at most half of the throughput that it has
//                    without them (figure 9)
//   unsorted/sorted  at least 0.85 for prstm and ordered: applications do not have to sort
// Claims of the KILO TM and GPU-LocalTM papers, and targets that this database has set itself:
//   kilo/lock        at least 1 on average over the workloads, by the geometric mean (figure 6)
//   local/lock       at least 1 (figures 3 to 5)
//   auto/best        at least 0.9 of the best other strategy, at every point (contention, workloads)
//   hot/uniform      what one hot account leaves of the throughput of `auto`: at least 0.5 for guarded transfers, and
//                    0.9 for deposits
// A ratio is the median of the ratios of the repeats. The two sides of a repeat were measured one soon after the other.
// The ratio of the collapse is between two points, so it is that of their medians.
#pragma once

#include <string>
#include <vector>

#include "engine/bench/compare_run.hpp"

namespace kilokv::engine::bench {

inline constexpr double kSemanticShareMin = 0.05;
inline constexpr double kUnsortedRatioMin = 0.85;
inline constexpr double kCollapsedRatioMax = 0.5;
inline constexpr double kAgainstBestMin = 0.9;
inline constexpr double kHotTransfersMin = 0.5, kHotDepositsMin = 0.9;

struct PanelResult {
  ComparePanel panel;
  std::vector<ComparePoint> points;
};

struct CompareRatio {
  const char* kind;  // a name from the list above
  std::size_t panel = 0;
  char graph = 'A';      // of the numerator
  std::string strategy;  // of the numerator
  double value = 0;      // on the axis
  double semantic_share = 0;
  double ratio = 0;
};

// One line of the last section of the report.
struct CompareClaim {
  std::string claim;
  std::size_t panel = 0;
  char graph = 'A';
  std::string strategy;
  double limit = 0;
  bool at_least = true;                        // whether the limit is a lower one
  double worst = 0, median = 0, worst_at = 0;  // of the ratios; worst_at: where the worst is on the axis
  double mean = 0;                             // the geometric mean
  bool on_average = false;                     // the limit is for the mean, not for the worst
  bool holds() const {
    if (on_average) return mean >= limit;
    return at_least ? worst >= limit : worst <= limit;
  }
};

// The best strategy except `auto` at that point of that graph; null: there is none.
const ComparePoint* best_of(const PanelResult& result, char letter, double value);

// `figures`: as in CompareOptions.
std::vector<CompareRatio> ratios_of(const std::string& figures, const std::vector<PanelResult>& results);
std::vector<CompareClaim> claims_of(const std::string& figures, const std::vector<PanelResult>& results,
                                    const std::vector<CompareRatio>& ratios);

}  // namespace kilokv::engine::bench
