// The books of a batch that has run: the writes for the log, in rank order, and the totals of the record store.
//
// All of this follows from the columns of the batch (batch_writes.hpp), the same for every strategy. The hash needs no
// record: each write adds its own change, and the changes of several writes to one record add up. So nothing here looks
// at a slot, except for writes of a rare kind.
//
// Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/collect/batch_writes.hpp"
#include "engine/exec/run/stage_clock.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

class Bookkeeping {
 public:
  // Fills `collected`, and brings the totals of the store up to date. `summarized`: the index knows all writes. If the
  // clock measures, each stage has a loop of its own; otherwise one loop does all. Requires: the byte values in the
  // results are readable.
  void keep(const BatchWrites& writes, bool summarized, StageClock* clock, RecordStore* store, WriteColumns* collected);

  std::size_t memory_bytes() const { return (noted_.capacity() + rare_.capacity()) * sizeof(std::uint32_t); }

 private:
  class Log;
  template <bool kCollects, bool kNotes, bool kHashes>
  bool keep_usual(const BatchWrites& writes, std::uint32_t first, std::uint32_t last, Log* log);
  template <bool kCollects, bool kNotes, bool kHashes>
  void keep_any(const BatchWrites& writes, std::uint32_t t, Log* log);
  template <bool kCollects, bool kNotes, bool kHashes>
  void walk(const BatchWrites& writes, Log* log);
  void settle(const BatchWrites& writes, bool summarized, RecordStore* store);
  void settle_deleted(const BatchWrites& writes, std::uint32_t t, std::uint32_t range, bool summarized,
                      RecordStore* store);

  Version noted_below_ = 0;
  Wide hash_ = 0;
  std::vector<std::uint32_t> noted_;  // operations whose records have to be noted
  std::vector<std::uint32_t> rare_;   // transactions that have a write of a rare kind
};

}  // namespace kilokv::engine
