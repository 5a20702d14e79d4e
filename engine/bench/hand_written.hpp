// The yardstick of --baseline: bank transfers as a loop written by hand over the engine's record table, with nothing
// of the engine around it: one thread, key ids known before, random access prefetched; it reports nothing, checks the
// balance, moves the amount and stamps the versions. The engine runs transfers of the same generator, in turn with it.
// Both are measured by the processor time of their thread, so that what else runs on the machine disturbs them less.
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
  BaselinePair median() const;  // of each figure alone
  double median_ratio() const;  // of the pairs' ratios
};

// Alternates strategy and loop, options.pairs times. Errors: those of the engine; INTERNAL when one of them broke the
// bank's invariant.
Result<BaselineReport> measure_baseline(const BenchOptions& options);

}  // namespace kilokv::engine::bench
