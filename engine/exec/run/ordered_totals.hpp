// What the executors of `ordered` on the host and on a device share: the epochs of batches, the arguments of a run, and
// its report.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/first_epochs.hpp"
#include "engine/stm/batch_shape.hpp"
#include "engine/stm/ordered_arguments.hpp"

namespace kilokv::engine {

// Hands out epochs of reservations. Not thread-safe.
class EpochCounter {
 public:
  explicit EpochCounter(std::uint32_t first = 0) : last_(first) {}

  // True: too few epochs are left for a batch of n transactions. Counting then starts again, and the caller must give
  // all reservations their fill again.
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

// The arguments of a batch, without the columns that `ordered` owns. They point into `batch`, `records` and `results`.
OrderedArguments<HostSpace> ordered_arguments(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                                              const OrderedTuning& tuning, const EpochCounter& epochs);

// The names of the counters that report_ordered() fills.
std::vector<const char*> ordered_counters();

// Fills the passes and the next version of the results, and the report, from what a run has left.
void report_ordered(const OrderedArguments<HostSpace>& arguments, const BatchShape& shape, BatchResults* results,
                    ExecutionReport* report);

}  // namespace kilokv::engine
