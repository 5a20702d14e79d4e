// The memory that `ordered` works on where it is the host's own: what is kept between batches, and the arguments of
// one. Not thread-safe. Keeps its capacity: nothing is allocated in the steady state.
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

  // The batch's arguments for so many threads. They point into this, `batch`, `records` and `results`.
  OrderedArguments<HostSpace> open(const ResolvedBatch& batch, OrderedTuning tuning, std::uint32_t threads,
                                   std::uint32_t group_width, BatchRecords* records, BatchResults* results);
  // After the run: passes, next version, and the report. Errors: INTERNAL, the run has given the batch up.
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
