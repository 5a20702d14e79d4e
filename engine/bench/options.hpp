// What kilokv-engine-bench is asked to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/bench/flags.hpp"
#include "engine/engine.hpp"
#include "engine/workloads/workload.hpp"

namespace kilokv::engine::bench {

struct BenchOptions {
  std::string device = "cpu";
  std::string strategy = "auto";
  std::string order = "fixed";
  std::string workload = "bank";  // or all
  std::string preset = "small";   // the sizes of Workload::kinds(): small or paper
  std::uint64_t keys = 0;         // 0: as many as the preset has
  DistributionOptions distribution;
  std::uint64_t threads = 0;  // 0: one for each core
  SettingTexts settings;      // of strategies
  std::uint64_t batch_transactions = 1024;
  std::uint64_t batches = 0;      // 0: by duration
  std::uint64_t batches_min = 1;  // that a run takes however long they last
  double duration_seconds = 2;
  std::uint64_t warmup_batches = 0;
  std::uint64_t seed = 1;
  SemanticOptions semantic;
  std::uint64_t wait_lag = 64;
  std::uint64_t payload_bytes = 100;
  std::uint64_t operations = 1;
  double update_share = 0.5;
  TpccOptions tpcc;
  bool no_ranges = false;
  bool verify = false;
  bool baseline = false;
  std::uint64_t pairs = 5;  // of the baseline
  bool json = false;
  bool version = false;
  bool help = false;
};

// The flags that set `options`; their defaults are the values that stand there now.
std::vector<Flag> bench_flags(BenchOptions* options);

// For --help: a line for each strategy.
std::string describe_strategies();

// What the engine is told.
EngineOptions engine_options_of(const BenchOptions& options);

// INVALID_ARGUMENT for what the flags cannot check one by one.
Status check_options(const BenchOptions& options);

// The workloads to run: one, or with `all` every one, bank under uniform and under zipf:0.99. Of `all`, one that takes
// fewer keys or operations than asked for gets as many as it takes, and those that are nothing without ranges go with
// no_ranges.
std::vector<WorkloadOptions> selected_workloads(const BenchOptions& options);

}  // namespace kilokv::engine::bench
