// Measures a panel of `compare`. At each value of its axis it measures every strategy on every graph, each with an
// engine of its own. All of these take turns, once in each repeat, and each repeat begins with another one. So when the
// machine is slow for a while, it is slow for all of them.
//
// Where the time of `local` goes is measured after all repeats, on an engine of its own, because reading the clock
// costs time.
//
// On each engine the referee checks some batches before the measurement, and the workload's invariant is checked after
// it. Memory: the tables of all engines of a point at once, which are strategies x graphs.
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
  double value = 0;  // on the axis
  CompareGraph graph;
  std::string strategy;
  CompareSetting setting;
  WorkloadReport report;           // all repeats together
  ExecutionTotals timed;           // `local` in its figures: one more run, which measures where the time goes
  std::uint64_t warmed_up = 0;     // transactions before the verified ones
  std::uint64_t verified = 0;      // transactions
  std::vector<double> per_second;  // by repeat: transactions that ended in an outcome of their own
};

// Whether the panel has the strategy.
bool measures(const ComparePanel& panel, const std::string& strategy);

// Each is 0 for no values.
double median_of(std::vector<double> values);
double least_of(const std::vector<double>& values);
double most_of(const std::vector<double>& values);

// The points of a panel: by value, then by graph, then by strategy.
using CompareProgress = std::function<void(const ComparePanel& panel, const ComparePoint& point)>;
Result<std::vector<ComparePoint>> measure_panel(const CompareOptions& options, const ComparePanel& panel,
                                                const CompareProgress& progress);

}  // namespace kilokv::engine::bench
