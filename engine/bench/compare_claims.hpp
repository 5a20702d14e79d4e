// What the points of `compare` say about the claims of the PR-STM paper, and about what this database promises:
//   prstm/gpustm     above 1 wherever 5% or more of the transactions are semantic (figures 7 to 9)
//   gpustm collapse  unsorted, a few semantic transactions leave gpustm at most half of what it does without (figure 9)
//   unsorted/sorted  at least 0.85 for prstm and ordered: nobody has to sort
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

struct PanelResult {
  ComparePanel panel;
  std::vector<ComparePoint> points;
};

struct CompareRatio {
  const char* kind;  // prstm/gpustm or unsorted/sorted
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
  bool holds() const { return at_least ? worst >= limit : worst <= limit; }
};

std::vector<CompareRatio> ratios_of(const std::vector<PanelResult>& results);
std::vector<CompareClaim> claims_of(const std::vector<PanelResult>& results, const std::vector<CompareRatio>& ratios);

}  // namespace kilokv::engine::bench
