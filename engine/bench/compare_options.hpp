// What `kilokv-engine-bench compare` is asked to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/bench/flags.hpp"

namespace kilokv::engine::bench {

struct CompareOptions {
  std::string figures = "prstm";  // one of figure_sets()
  std::string preset = "small";   // or paper
  std::string device = "cpu";
  std::uint64_t seed = 1;
  std::string json;  // file; -: the standard output; empty: no document
  std::string html;  // file; -: the standard output; empty: no page
  std::string from;  // file of an earlier run; empty: measure
  bool help = false;
  std::vector<std::string> given;  // names of the flags that were given
  // Empty or 0: complete() fills in the default of the figures, the preset or the machine.
  std::vector<std::string> strategies;
  std::vector<std::string> workloads;
  std::vector<std::uint64_t> threads;
  std::vector<std::uint64_t> records_per_lock;
  std::vector<double> semantic_shares;
  std::vector<std::uint64_t> concurrency_limits;
  std::vector<std::uint64_t> sizes;
  std::vector<double> thetas;
  std::vector<double> update_shares;
  std::vector<std::uint64_t> operations;
  std::uint64_t keys = 0;  // stays 0 where the preset has a size for each workload
  std::uint64_t batch_transactions = 0;
  std::uint64_t repeats = 0;
  std::uint64_t verify_batches = 0;
  double duration_seconds = 0;
};

// prstm: figures 7 to 13 of the PR-STM paper. kilo: figures 6 to 8 of the KILO TM paper. local: figures 3 to 5 of the
// GPU-LocalTM paper. contention: a sweep of our own. workloads: every strategy on every workload.
std::vector<std::string> figure_sets();

std::vector<Flag> compare_flags(CompareOptions* options);

// Fills in what was not given, and sorts lists. Errors: INVALID_ARGUMENT for values that do not go together.
Status complete(CompareOptions* options);

}  // namespace kilokv::engine::bench
