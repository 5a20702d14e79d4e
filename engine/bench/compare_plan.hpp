// What `compare` measures: the figures 7 to 13 of the PR-STM paper (section 4), as panels.
//
// A panel is one workload along one axis, all read/write or 20% read-only. It has a graph of the paper for each order
// of the semantic pairs: unsorted (who waits is sent first) and sorted by the application; a workload without pairs has
// one graph. What a panel compares is measured in turn (compare_run.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/bench/compare_options.hpp"
#include "engine/workloads/workload.hpp"

namespace kilokv::engine::bench {

enum class CompareAxis : std::uint8_t { threads, records_per_lock, semantic_share };
const char* to_string(CompareAxis axis);

struct CompareGraph {
  char letter;  // in the paper's figure
  bool is_sorted;
};

struct ComparePanel {
  int figure;  // of the paper
  std::string workload;
  CompareAxis axis;
  double read_only_share;
  std::vector<CompareGraph> graphs;
  std::vector<double> values;  // along the axis
};

// unsorted or sorted; "no pairs" of a workload that has none.
const char* order_name(const ComparePanel& panel, char letter);

// Where a strategy is measured, all axes said.
struct CompareSetting {
  std::uint64_t threads = 1, records_per_lock = 1;
  double semantic_share = 0;  // 0 for a workload without pairs
  double read_only_share = 0;
  bool is_sorted = false;
};

// The panels of the chosen workloads, in the paper's order. Requires: complete() options.
std::vector<ComparePanel> compare_panels(const CompareOptions& options);

CompareSetting setting_at(const CompareOptions& options, const ComparePanel& panel, const CompareGraph& graph,
                          double value);

// The workload of that setting, in the size that the options ask for.
WorkloadOptions workload_at(const CompareOptions& options, const ComparePanel& panel, const CompareSetting& setting);

// How many batches a repeat takes; 0: as many as its duration allows. `graph` comes to rest after a few sweeps: there
// all repeats together send along each edge once, whatever the strategy.
std::uint64_t batches_at(const CompareOptions& options, const WorkloadOptions& workload);

}  // namespace kilokv::engine::bench
