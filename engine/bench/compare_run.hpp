// Measures a panel of `compare`: at each value of its axis, every strategy on every graph, each with an engine of its
// own. All of these take turns, once in each repeat, beginning with another one each time, so that a machine that is
// slow for a while is slow for all of them.
//
// Where the time of `local` goes is measured behind all repeats, on an engine of its own: reading the clock costs.
//
// On each engine the referee checks some batches before, and the workload's invariant is checked behind: only between
// is measured. Memory: the tables of all engines of a point at once, strategies x graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/bench/compare_plan.hpp"
#include "engine/bench/runner.hpp"

namespace kilokv::engine::bench {

struct ComparePoint {
  double value = 0;  // along the axis
  CompareGraph graph;
  std::string strategy;
  CompareSetting setting;
  WorkloadReport report;           // all repeats together
  ExecutionTotals timed;           // of local in its figures: of one more run, which tells where the time goes
  std::uint64_t warmed_up = 0;     // transactions before all else
  std::uint64_t verified = 0;      // transactions
  std::vector<double> per_second;  // by repeat: transactions that ended in an outcome of their own
};

// Whether the strategy is one that the panel has.
bool measures(const ComparePanel& panel, const std::string& strategy);

// 0 of none.
double median_of(std::vector<double> values);
double least_of(const std::vector<double>& values);
double most_of(const std::vector<double>& values);

// The points of a panel: by value, then by graph, then by strategy.
using CompareProgress = std::function<void(const ComparePanel& panel, const ComparePoint& point)>;
Result<std::vector<ComparePoint>> measure_panel(const CompareOptions& options, const ComparePanel& panel,
                                                const CompareProgress& progress);

}  // namespace kilokv::engine::bench
