// How `compare` shows what it measured: tables for people, one JSON document for programs and for the page.
#pragma once

#include <string>
#include <vector>

#include "engine/bench/compare_claims.hpp"

namespace kilokv::engine::bench {

// The format that the document names at its beginning. --from recognizes it by this.
inline constexpr const char* kCompareFormat = "kilokv-engine-compare-2";

struct CompareReport {
  CompareOptions options;
  std::string command;  // as it was given
  std::string date;     // UTC
  double seconds = 0;   // how long the run took
  std::vector<PanelResult> results;
  std::vector<CompareRatio> ratios;
  std::vector<CompareClaim> claims;
};

std::string compare_table(const CompareReport& report);
std::string compare_json(const CompareReport& report);
// One line about a point, as progress.
std::string point_line(const ComparePanel& panel, const ComparePoint& point);

}  // namespace kilokv::engine::bench
