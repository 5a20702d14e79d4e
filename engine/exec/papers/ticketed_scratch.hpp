// The memory that the strategies with tickets (stm/papers/ticketed.hpp) work on where it is the host's own: what is
// kept between batches, lock words above all, and the arguments of one. Not thread-safe. Keeps its capacity: nothing is
// allocated in the steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/exec/run/executor.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

// The ends of the precedence classes of a batch, as positions. Keeps the capacity of `ends`.
void find_class_ends(const ResolvedBatch& batch, std::vector<std::uint32_t>* ends);

// The names of the counters that report_ticketed() fills.
std::vector<const char*> ticketed_counters();

// Passes and next version of the results, and the report, from what a run left: `words` as TicketedWord says, `counts`
// of each thread.
void report_ticketed(const char* strategy, const BatchHeader& header, std::span<const std::uint64_t> words,
                     std::span<const TicketedCounts> counts, BatchResults* results, ExecutionReport* report);

class TicketedScratch {
 public:
  // Fills the batch's arguments, whose tuning is there, for so many threads. They point into this, `batch`, `records`
  // and `results`. Requires: at most kTicketedTransactionsMax transactions.
  void open(const ResolvedBatch& batch, std::uint32_t threads, std::uint32_t group_width, BatchRecords* records,
            BatchResults* results, TicketedArguments<HostSpace>* arguments);
  // After the run: passes, next version, and the report.
  void close(const char* strategy, const ResolvedBatch& batch, BatchResults* results, ExecutionReport* report);

  std::size_t memory_bytes() const;

 private:
  std::vector<std::uint64_t> locks_, clock_, entry_cell_, entry_version_, entry_tag_, words_;
  std::vector<std::uint32_t> class_end_, use_entry_, entry_record_, entry_head_, entry_count_, pass_of_, undecided_;
  std::vector<std::uint8_t> entry_flags_, tries_;
  std::vector<TicketedCounts> counts_;
};

// The memory that a strategy has beside this for its own Arguments. Whoever derives some specializes it.
template <class Arguments>
class OwnScratch;
template <>
class OwnScratch<TicketedArguments<HostSpace>> {
 public:
  // Fills what of the arguments is not filled yet; they point into this.
  void open(const ResolvedBatch&, const BatchRecords&, std::uint32_t /*threads*/, std::uint32_t /*group_width*/,
            TicketedArguments<HostSpace>*) {}
  // After the run.
  void close(ExecutionReport*) const {}
  std::size_t memory_bytes() const { return 0; }
};

}  // namespace kilokv::engine
