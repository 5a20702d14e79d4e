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
  std::string json;  // file; -: the standard output; empty: none
  std::string html;  // the same
  std::string from;  // file of an earlier run: nothing is measured
  bool help = false;
  std::vector<std::string> given;  // names of the flags that stood there
  // Where empty or 0: complete() fills in what the figures, the preset, or the machine, have.
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
  std::uint64_t keys = 0;  // stays 0 for the size that the preset has for each workload
  std::uint64_t batch_transactions = 0;
  std::uint64_t repeats = 0;
  std::uint64_t verify_batches = 0;
  double duration_seconds = 0;
};

// prstm: figures 7 to 13 of the PR-STM paper; kilo: 6 to 8 of KILO TM's; local: 3 to 5 of GPU-LocalTM's; contention:
// a sweep of our own; workloads: every strategy on every workload.
std::vector<std::string> figure_sets();

std::vector<Flag> compare_flags(CompareOptions* options);

// Fills in what was not given, and puts lists in order. INVALID_ARGUMENT for what does not go together.
Status complete(CompareOptions* options);

}  // namespace kilokv::engine::bench
