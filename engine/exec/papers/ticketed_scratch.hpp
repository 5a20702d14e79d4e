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

// Passes and next version of the results, and the report, from what a run left: `words` as TicketedWord says, `counts`
// of each thread.
void report_ticketed(const char* strategy, const BatchHeader& header, std::span<const std::uint64_t> words,
                     std::span<const TicketedCounts> counts, BatchResults* results, ExecutionReport* report);

class TicketedScratch {
 public:
  // The batch's arguments for so many threads. They point into this, `batch`, `records` and `results`.
  // Requires: at most kTicketedTransactionsMax transactions.
  TicketedArguments<HostSpace> open(const ResolvedBatch& batch, const TicketedTuning& tuning, std::uint32_t threads,
                                    std::uint32_t group_width, BatchRecords* records, BatchResults* results);
  // Behind the run: passes, next version, and the report.
  void close(const char* strategy, const ResolvedBatch& batch, BatchResults* results, ExecutionReport* report);

  std::size_t memory_bytes() const;

 private:
  std::vector<std::uint64_t> locks_, clock_, entry_cell_, entry_version_, entry_tag_, words_;
  std::vector<std::uint32_t> class_end_, use_entry_, entry_record_, entry_head_, entry_count_, pass_of_, undecided_;
  std::vector<std::uint8_t> entry_flags_, tries_;
  std::vector<TicketedCounts> counts_;
};

}  // namespace kilokv::engine
