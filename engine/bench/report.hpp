// How results are shown: a table for people, and one JSON document for programs.
#pragma once

#include <string>
#include <vector>

#include "engine/bench/hand_written.hpp"
#include "engine/bench/json.hpp"
#include "engine/bench/options.hpp"
#include "engine/bench/runner.hpp"

namespace kilokv::engine::bench {

// write_counters(): the counters of all strategies; a strategy that lacks a counter has 0. write_times(): where the
// time of local's stage goes, as an object of shares in percent; nothing if it was not measured.
void write_counters(JsonWriter* json, const ExecutionTotals& of);
void write_times(JsonWriter* json, const ExecutionTotals& of);
// The time of the stages of all batches, for each of `transactions`, as an object of this name.
void write_stages(JsonWriter* json, std::string_view name, const StageTimes& stages, std::uint64_t transactions);

std::string workload_table(const BenchOptions& options, const std::vector<WorkloadReport>& reports);
std::string workload_json(const BenchOptions& options, const std::vector<WorkloadReport>& reports);

std::string baseline_table(const BenchOptions& options, const BaselineReport& report);
std::string baseline_json(const BenchOptions& options, const BaselineReport& report);

}  // namespace kilokv::engine::bench
