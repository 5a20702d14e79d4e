// A run's report, for people and for programs. Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "client/bench/run.hpp"

namespace kilokv::bench {

const char* encoding_name(const RunOptions& options);  // columns, rows or unary
double committed_per_s(const RunReport& report);       // in the measured part

// JSON, indented: an object for a run, an array for runs. The fields are in docs/load-tester.md.
std::string json_text(const RunReport& report);
std::string json_text(const std::vector<RunReport>& reports);
std::string to_text(const RunReport& report);
// A table with one line for each run.
std::string sweep_table(const std::vector<RunReport>& reports);
// A line for each warning; empty: there is none.
std::string warning_lines(const std::vector<RunReport>& reports, const std::string& indent);
// CSV: a row with the names of the columns, and a row for each run. The columns are in docs/load-tester.md.
std::string csv_text(const std::vector<RunReport>& reports);
// The configuration of a run, as in its report: JSON in one line, for the header of a history.
std::string config_text(const RunOptions& options);

}  // namespace kilokv::bench
