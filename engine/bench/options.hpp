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
  std::string workload = "bank";  // a name, or all
  std::string preset = "small";   // the sizes of Workload::kinds(): small or paper
  std::uint64_t keys = 0;         // 0: the preset's number
  DistributionOptions distribution;
  std::uint64_t threads = 0;  // 0: one for each core
  SettingTexts settings;      // of the strategies
  std::uint64_t batch_transactions = 1024;
  std::uint64_t batches = 0;      // 0: by duration
  std::uint64_t batches_min = 1;  // a run takes at least this many, however long they last
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
  bool batch_times = false;
  bool baseline = false;
  std::uint64_t pairs = 5;  // for --baseline
  bool json = false;
  bool version = false;
  bool help = false;
};

// The flags that set `options`. Their defaults are the current values of `options`.
std::vector<Flag> bench_flags(BenchOptions* options);

// For --help: a line for each strategy.
std::string describe_strategies();

// The options of the engine that follow from these.
EngineOptions engine_options_of(const BenchOptions& options);

// Errors: INVALID_ARGUMENT for what the flags cannot check one by one.
Status check_options(const BenchOptions& options);

// The workloads to run. With `all` this is every workload, and bank twice: under uniform and under zipf:0.99. If one of
// `all` takes fewer keys or operations than were asked for, it gets as many as it takes. With no_ranges, workloads that
// need ranges are left out.
std::vector<WorkloadOptions> selected_workloads(const BenchOptions& options);

}  // namespace kilokv::engine::bench
