// What `compare` measures, as panels: the figures of a paper, or a sweep of our own (--figures).
//
// A panel is one workload, or a list of them, along one axis, with all else fixed. It has one graph or more, which are
// measured in turn (compare_run.hpp), since what is compared is between them: a graph of the PR-STM paper for each
// order of the semantic pairs, unsorted (who waits is sent first) and sorted by the application; one of uniform
// accounts and one of a hot account.
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
  std::string figure;  // of the paper; or what the sweep is
  CompareAxis axis;
  std::vector<std::string> workloads;  // one, but along the axis of workloads
  std::vector<CompareGraph> graphs;
  std::vector<double> values;  // along the axis; workloads: their numbers from 0
  double read_only_share = 0;
  double update_share = 0.5;
  std::uint64_t operations = 1;
  bool has_times = false;              // and where the time of `local` goes
  std::vector<std::string> only = {};  // those of the strategies that are measured; empty: all

  // Which one is at that place of the axis, under that graph.
  std::string workload_at(const CompareGraph& graph, double value) const;
  // Of all: "workloads", or the one.
  std::string workload_name() const { return workloads.size() == 1 ? workloads.front() : "workloads"; }
  // figure 7A; or what the sweep is.
  std::string name(char letter) const;
  // The value as people read it.
  std::string value_name(double value) const;
  const CompareGraph& graph(char letter) const;
};

// Where a strategy is measured, all axes said.
struct CompareSetting {
  std::string workload;
  std::uint64_t threads = 1, records_per_lock = 1, concurrency_limit = 0;
  std::uint64_t keys = 0;     // 0: as the preset has it
  double semantic_share = 0;  // 0 for a workload without pairs
  double read_only_share = 0;
  double update_share = 0.5;
  std::uint64_t operations = 1;
  double theta = 0;
  bool is_sorted = false;
};

// The panels of the chosen figures and workloads, in the paper's order. Requires: complete() options.
std::vector<ComparePanel> compare_panels(const CompareOptions& options);

CompareSetting setting_at(const CompareOptions& options, const ComparePanel& panel, const CompareGraph& graph,
                          double value);

// The workload of that setting, in the size that the options ask for.
WorkloadOptions workload_at(const CompareOptions& options, const CompareSetting& setting);

// How many batches a repeat takes; 0: as many as its duration allows. `graph` comes to rest after a few sweeps: there
// all repeats together send along each edge once, whatever the strategy.
std::uint64_t batches_at(const CompareOptions& options, const WorkloadOptions& workload);

}  // namespace kilokv::engine::bench
