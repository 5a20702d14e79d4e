// The host memory that `ordered` works on, if it runs on the host: what it keeps between batches, and the arguments of
// one batch. Not thread-safe. The vectors keep their capacity. So in the steady state no memory is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/ordered_totals.hpp"
#include "engine/stm/ordered_arguments.hpp"

namespace kilokv::engine {

class OrderedScratch {
 public:
  explicit OrderedScratch(FirstEpochs first = {}) : epochs_(first.reservations) {}

  // The arguments of the batch, for a run on `threads` threads. They point into this object, `batch`, `records` and
  // `results`.
  OrderedArguments<HostSpace> open(const ResolvedBatch& batch, OrderedTuning tuning, std::uint32_t threads,
                                   std::uint32_t group_width, BatchRecords* records, BatchResults* results);
  // Call it after the run. Fills the passes and the next version of the results, and the report. INTERNAL: the run has
  // given up the batch. Then do not use this object again. An epoch is the number of a round, and each reservation
  // carries one. After the failed run, reservations may carry later epochs than epochs_ has counted. The next batch
  // could take them for its own.
  [[nodiscard]] Status close(const ResolvedBatch& batch, BatchResults* results, ExecutionReport* report);

  std::size_t memory_bytes() const;

 private:
  std::vector<std::uint64_t> reservations_, delta_sums_, undo_, words_;
  std::vector<std::uint8_t> op_adds_;
  std::vector<std::uint32_t> pass_of_, chain_of_, undecided_;
  std::vector<OrderedCounts> counts_;
  EpochCounter epochs_;
};

}  // namespace kilokv::engine
