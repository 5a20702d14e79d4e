// What the executors of `ordered` on the host and on a device share: the epochs of batches, and the report of a run.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/exec/run/execution_report.hpp"
#include "engine/exec/run/first_epochs.hpp"
#include "engine/stm/ordered_arguments.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// Hands out epochs of reservations. Not thread-safe.
class EpochCounter {
 public:
  explicit EpochCounter(std::uint32_t first = 0) : last_(first) {}

  // True: too few epochs are left for a batch of n transactions. Counting then starts again, and the caller must set
  // all reservations to ~0.
  bool must_restart(std::uint64_t n) {
    if (last_ + ordered_epochs_max(n) <= UINT32_MAX) return false;
    last_ = 0;
    return true;
  }
  std::uint32_t last() const { return static_cast<std::uint32_t>(last_); }
  void use(std::uint64_t rounds) { last_ += rounds; }

 private:
  std::uint64_t last_;
};

// The names of the counters that report_ordered() fills.
std::vector<const char*> ordered_counters();

// Fills the passes and the next version of the results, and the report, from what a run has left. `words`: as in
// OrderedWord. `counts`: of each thread, or of each group of a device.
void report_ordered(const BatchHeader& header, std::span<const std::uint64_t> words,
                    std::span<const OrderedCounts> counts, BatchResults* results, ExecutionReport* report);

}  // namespace kilokv::engine
