// A run's report, for people and for programs. Thread safety: pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/bench/run.hpp"

namespace kilokv::bench {

// The fields are in docs/load-tester.md.
nlohmann::ordered_json to_json(const RunReport& report);
std::string to_text(const RunReport& report);
// A table with one line for each run.
std::string sweep_table(const std::vector<RunReport>& reports);
// The configuration of a run, for its report and for the header of a history.
nlohmann::ordered_json config_json(const RunOptions& options);

}  // namespace kilokv::bench
