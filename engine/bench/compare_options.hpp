// What `kilokv-engine-bench compare` is asked to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/bench/flags.hpp"

namespace kilokv::engine::bench {

struct CompareOptions {
  std::string preset = "small";  // or paper
  std::vector<std::string> strategies = {"serial", "ordered", "prstm", "lock", "gpustm"};
  std::vector<std::string> workloads = {"bank-semantic", "vacation", "skiplist", "kmeans", "graph"};
  std::string device = "cpu";
  std::uint64_t seed = 1;
  std::string json;  // file; -: the standard output; empty: none
  std::string html;  // the same
  std::string from;  // file of an earlier run: nothing is measured
  bool help = false;
  std::vector<std::string> given;  // names of the flags that stood there
  // Where empty or 0: complete() fills in what the preset, or the machine, has.
  std::vector<std::uint64_t> threads;
  std::vector<std::uint64_t> records_per_lock;
  std::vector<double> semantic_shares;
  std::uint64_t keys = 0;  // stays 0 for the size that the preset has for each workload
  std::uint64_t batch_transactions = 0;
  std::uint64_t repeats = 0;
  std::uint64_t verify_batches = 0;
  double duration_seconds = 0;
};

std::vector<Flag> compare_flags(CompareOptions* options);

// Fills in what was not given, and puts lists in order. INVALID_ARGUMENT for what does not go together.
Status complete(CompareOptions* options);

}  // namespace kilokv::engine::bench
