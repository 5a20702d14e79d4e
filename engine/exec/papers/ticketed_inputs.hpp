// What the host makes for the batches of the strategies with tickets (stm/papers/ticketed.hpp), whatever they run on:
// the arguments, without the columns that the strategy owns, and the report. Not thread-safe. Keeps its capacity, so
// that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/run/executor.hpp"
#include "engine/stm/batch_shape.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

// Fills `ends` with the ends of the batch's precedence classes, as positions. Keeps the capacity of `ends`.
void find_class_ends(const ResolvedBatch& batch, std::vector<std::uint32_t>* ends);

// The names of the counters that report_ticketed() fills.
std::vector<const char*> ticketed_counters();

// Fills the passes and the next version of the results, and the report, from what a run has left.
void report_ticketed(const char* strategy, const TicketedArguments<HostSpace>& arguments, const BatchShape& shape,
                     BatchResults* results, ExecutionReport* report);

class ClassInputs {
 public:
  // Fills the arguments, for a run on these threads, and returns the shape of the batch. The arguments point into
  // this object, `batch`, `records` and `results`. Requires: only the tuning in the arguments is filled; the batch has
  // at most kTicketedTransactionsMax transactions.
  BatchShape open(const ResolvedBatch& batch, const BatchThreads& threads, BatchRecords* records, BatchResults* results,
                  TicketedArguments<HostSpace>* arguments);
  // Call it after the run. Adds what only this strategy reports.
  void close(const TicketedArguments<HostSpace>&, ExecutionReport*) const {}

  std::size_t memory_bytes() const { return class_end_.capacity() * sizeof(std::uint32_t); }

 private:
  std::vector<std::uint32_t> class_end_;
};

// The inputs for arguments of this type. A strategy that needs more of the host than the classes specializes this class
// for its own type of arguments (local_inputs.hpp).
template <class Arguments>
class TicketedInputs : public ClassInputs {};

}  // namespace kilokv::engine
