// What --baseline compares the engine with: bank transfers as a loop that is written by hand over the engine's record
// table, with nothing of the engine around it. It has one thread, knows the key ids before, and prefetches random
// accesses. It reports nothing: it checks the balance, moves the amount, and stamps the versions. The engine runs
// transfers of the same generator, in turn with the loop. Both are measured by the processor time of their thread, so
// that other programs on the machine disturb them less.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/bench/options.hpp"

namespace kilokv::engine::bench {

struct BaselinePair {
  double strategy_per_second = 0;
  double hand_written_per_second = 0;
  double ratio() const { return strategy_per_second / hand_written_per_second; }
};

struct BaselineReport {
  std::vector<BaselinePair> pairs;
  BaselinePair median() const;  // of each number by itself
  double median_ratio() const;  // of the pairs' ratios
};

// Runs strategy and loop in turn, options.pairs times. Errors: those of the engine; INTERNAL when one of the two broke
// the bank's invariant.
Result<BaselineReport> measure_baseline(const BenchOptions& options);

}  // namespace kilokv::engine::bench
