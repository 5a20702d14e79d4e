// What the points of `compare` say about the claims of the PR-STM paper, and about what this database promises:
//   prstm/gpustm     above 1 wherever 5% or more of the transactions are semantic (figures 7 to 9)
//   gpustm collapse  unsorted, a few semantic transactions leave gpustm at most half of what it does without (figure 9)
//   unsorted/sorted  at least 0.85 for prstm and ordered: nobody has to sort
// of those of the KILO TM and GPU-LocalTM papers, and of the targets that this database has set itself:
//   kilo/lock        at least 1 on average of the workloads, by the geometric mean (figure 6)
//   local/lock       at least 1 (figures 3 to 5)
//   auto/best        at least 0.9 of the best other strategy, at every point (contention, workloads)
//   hot/uniform      what one hot account leaves of the throughput of `auto`: at least 0.5 of guarded transfers, 0.9 of
//                    deposits
// A ratio is the median of those of the repeats, whose two sides were measured one soon after the other; that of the
// collapse, between two points, is of their medians.
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
  const char* kind;  // as above
  std::size_t panel = 0;
  char graph = 'A';      // of the numerator
  std::string strategy;  // of the numerator
  double value = 0;      // along the axis
  double semantic_share = 0;
  double ratio = 0;
};

// One line of the closing section.
struct CompareClaim {
  std::string claim;
  std::size_t panel = 0;
  char graph = 'A';
  std::string strategy;
  double limit = 0;
  bool at_least = true;                        // the limit is a lower one
  double worst = 0, median = 0, worst_at = 0;  // of the ratios; where the worst is, along the axis
  double mean = 0;                             // geometric
  bool on_average = false;                     // the limit is one of the mean
  bool holds() const {
    if (on_average) return mean >= limit;
    return at_least ? worst >= limit : worst <= limit;
  }
};

// The best strategy but `auto` at that point of that graph; null: there is none.
const ComparePoint* best_of(const PanelResult& result, char letter, double value);

// `figures`: as CompareOptions has it.
std::vector<CompareRatio> ratios_of(const std::string& figures, const std::vector<PanelResult>& results);
std::vector<CompareClaim> claims_of(const std::string& figures, const std::vector<PanelResult>& results,
                                    const std::vector<CompareRatio>& ratios);

}  // namespace kilokv::engine::bench
