// The host memory that the strategies with tickets (stm/papers/ticketed.hpp) work on, if they run on the host: what
// they keep between batches, such as the lock words, and the arguments of one batch. Not thread-safe. Keeps its
// capacity, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/exec/run/executor.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

// Fills `ends` with the ends of the batch's precedence classes, as positions. Keeps the capacity of `ends`.
void find_class_ends(const ResolvedBatch& batch, std::vector<std::uint32_t>* ends);

// The names of the counters that report_ticketed() fills.
std::vector<const char*> ticketed_counters();

// Fills the passes and the next version of the results, and the report, from what a run has left. `words`: as in
// TicketedWord. `counts`: of each thread, or of each group of a device.
void report_ticketed(const char* strategy, const BatchHeader& header, std::span<const std::uint64_t> words,
                     std::span<const TicketedCounts> counts, BatchResults* results, ExecutionReport* report);

class TicketedScratch {
 public:
  // Fills the batch's arguments, for a run on `threads` threads. They point into this object, `batch`, `records` and
  // `results`. Requires: the tuning in the arguments is filled; the batch has at most kTicketedTransactionsMax
  // transactions.
  void open(const ResolvedBatch& batch, std::uint32_t threads, std::uint32_t group_width, BatchRecords* records,
            BatchResults* results, TicketedArguments<HostSpace>* arguments);
  // Call it after the run. Fills the passes and the next version of the results, and the report.
  void close(const char* strategy, const ResolvedBatch& batch, BatchResults* results, ExecutionReport* report);

  std::size_t memory_bytes() const;

 private:
  std::vector<std::uint64_t> locks_, clock_, entry_cell_, entry_version_, entry_tag_, words_;
  std::vector<std::uint32_t> class_end_, use_entry_, entry_record_, entry_head_, entry_count_, pass_of_, undecided_;
  std::vector<std::uint8_t> entry_flags_, tries_;
  std::vector<TicketedCounts> counts_;
};

// The further memory that a strategy needs for its own type of arguments. A strategy that derives a type from
// TicketedArguments specializes this class for it.
template <class Arguments>
class OwnScratch;
template <>
class OwnScratch<TicketedArguments<HostSpace>> {
 public:
  // Fills what TicketedScratch::open() has not filled. The arguments point into this object.
  void open(const ResolvedBatch&, const BatchRecords&, std::uint32_t /*threads*/, std::uint32_t /*group_width*/,
            TicketedArguments<HostSpace>*) {}
  // Call it after the run.
  void close(ExecutionReport*) const {}
  std::size_t memory_bytes() const { return 0; }
};
// Arguments that add a tuning, but no memory, say so by `static constexpr bool kHasOwnColumns = false`.
template <class Arguments>
requires(!Arguments::kHasOwnColumns) class OwnScratch<Arguments> : public OwnScratch<TicketedArguments<HostSpace>> {
};

}  // namespace kilokv::engine
