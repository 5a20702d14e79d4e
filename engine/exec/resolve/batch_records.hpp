// The records that a batch names, each once, numbered from 0 in the order in which its keys first name them: what a
// parallel strategy works on (stm/ordered.hpp), close together and apart from the table. Their cells are gathered
// before the batch and scattered behind it.
//
// Not thread-safe. Keeps its capacity: nothing is allocated in the steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/exec/collect/rank_order.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

class BatchRecords {
 public:
  // Counts its batches behind `first_epoch`: not 0 only in tests of what happens when epochs run out.
  explicit BatchRecords(std::uint32_t first_epoch = 0) : epoch_(first_epoch) {}

  // Numbers the records and gathers their cells. Requires: `resolver` has resolved `columns`, which have no ranges.
  void gather(const TransactionColumns& columns, const BatchResolver& resolver, const RecordStore& store);

  std::size_t size() const { return slots_.size(); }
  const std::vector<std::uint32_t>& record_of_key() const { return record_of_key_; }  // [k]
  // The record that stands for all keys that are only read and not there; kNone: there is none such.
  std::uint32_t absent_record() const { return absent_record_; }
  const std::vector<std::uint32_t>& slots() const { return slots_; }  // [d] of the table
  std::vector<std::uint64_t>& cells() { return cells_; }              // [2d] word and tag
  const std::vector<std::uint64_t>& cells() const { return cells_; }

  // Turns the deltas among the results (BatchResults::kDelta) into what each ADD left, by replaying all writes in rank
  // order over the table's cells. False: they do not lead to the cells that the strategy left, so that one of the two
  // is wrong. Before scatter().
  [[nodiscard]] bool settle_deltas(const TransactionColumns& columns, const RankOrder& order, const RecordStore& store,
                                   BatchResults* results);

  // Writes the cells that changed to the table; appends the slots and what they held to `log`. Requires: settled.
  void scatter(RecordStore* store, std::vector<SlotImage>* log) const;

  std::size_t memory_bytes() const;

 private:
  // A number in a hash table by slot; of another batch if the epoch differs.
  struct Entry {
    std::uint32_t epoch, record;
  };

  std::uint32_t number(std::uint32_t slot);

  std::vector<Entry> entries_;  // a power of 2, at least twice the keys
  std::uint32_t epoch_;
  std::uint32_t shift_ = 0;
  std::vector<std::uint32_t> record_of_key_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> cells_;
  std::vector<Cell> running_;  // [d] of settle_deltas
  std::uint32_t absent_record_ = kNone;
};

}  // namespace kilokv::engine
