// The report of a run or a sweep as one HTML page with plots, for people. The page needs no other file. Its figures are
// those of the JSON report. Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "client/bench/run.hpp"
#include "client/bench/tune_choice.hpp"

namespace kilokv::bench {

struct PageFacts {
  bool is_sweep = false;
  std::string command;  // that made the report, as a person types it
  std::string made_at;  // a date and a time
};

// The runs with the smallest batch size within 5% of the best one, and with the best one, as places in `reports`. There
// is a choice for each combination of the other axes that has several batch sizes. A run that ended badly or early does
// not count.
struct SweepChoice {
  std::size_t chosen = 0, best = 0;
};
std::vector<SweepChoice> choices_of(const std::vector<RunReport>& reports);

// Requires: there is a report.
std::string html_text(const std::vector<RunReport>& reports, const PageFacts& facts);

// The arguments as one line for a shell: an argument is in quotes if a shell would change it.
std::string shell_line(const std::vector<std::string>& arguments);

}  // namespace kilokv::bench
