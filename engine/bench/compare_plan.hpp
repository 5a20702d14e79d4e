// What `compare` measures, as panels: the figures of a paper, or a sweep of our own (--figures).
//
// A panel is one workload, or a list of workloads, along one axis, with everything else fixed. It has one or more
// graphs. They are measured in turn (compare_run.hpp), because they are compared with each other. For the PR-STM paper
// there is a graph for each order of the semantic pairs: unsorted (the one that waits is sent first), and sorted by the
// application. For contention there is one of uniform accounts and one of a hot account.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/bench/compare_options.hpp"
#include "engine/workloads/workload.hpp"

namespace kilokv::engine::bench {

enum class CompareAxis : std::uint8_t {
  threads,
  records_per_lock,
  semantic_share,
  concurrency_limit,
  keys,
  theta,  // of Zipf's distribution; 0: uniform
  workload,
};
const char* to_string(CompareAxis axis);

enum class CompareGraphKind : std::uint8_t { plain, unsorted, sorted, uniform, hot };
const char* to_string(CompareGraphKind kind);

struct CompareGraph {
  char letter;  // in the paper's figure
  CompareGraphKind kind;
};

struct ComparePanel {
  std::string figure;  // of the paper; or the name of the sweep
  CompareAxis axis;
  std::vector<std::string> workloads;  // one; several only on the axis of workloads
  std::vector<CompareGraph> graphs;
  std::vector<double> values;  // on the axis; workloads: their numbers from 0
  double read_only_share = 0;
  double update_share = 0.5;
  std::uint64_t operations = 1;
  bool has_times = false;              // it also measures where the time of `local` goes
  std::vector<std::string> only = {};  // the strategies that are measured; empty: all

  // The workload of that value of the axis, in that graph.
  std::string workload_at(const CompareGraph& graph, double value) const;
  // "workloads", or the one workload.
  std::string workload_name() const { return workloads.size() == 1 ? workloads.front() : "workloads"; }
  // Such as figure 7A; or the name of the sweep.
  std::string name(char letter) const;
  // The value in a form for people.
  std::string value_name(double value) const;
  const CompareGraph& graph(char letter) const;
};

// One point at which a strategy is measured, with the values of all axes.
struct CompareSetting {
  std::string workload;
  std::uint64_t threads = 1, records_per_lock = 1, concurrency_limit = 0;
  std::uint64_t keys = 0;     // 0: the preset's number
  double semantic_share = 0;  // 0 for a workload without pairs
  double read_only_share = 0;
  double update_share = 0.5;
  std::uint64_t operations = 1;
  double theta = 0;
  bool is_sorted = false;
};

// The panels of the chosen figures and workloads, in the paper's order. Requires: complete() has filled in the options.
std::vector<ComparePanel> compare_panels(const CompareOptions& options);

CompareSetting setting_at(const CompareOptions& options, const ComparePanel& panel, const CompareGraph& graph,
                          double value);

// The workload of that setting, with the size that the options give.
WorkloadOptions workload_at(const CompareOptions& options, const CompareSetting& setting);

// How many batches a repeat takes; 0: as many as its duration allows. The workload `graph` has nothing left to do after
// a few sweeps. There, all repeats together send along each edge once, whatever the strategy.
std::uint64_t batches_at(const CompareOptions& options, const WorkloadOptions& workload);

}  // namespace kilokv::engine::bench
