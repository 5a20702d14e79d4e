// The records that a batch names, each once. They are numbered from 0, in the order in which the keys of the batch
// first name them. A parallel strategy (stm/ordered.hpp) works on copies of their cells, which are close together and
// apart from the table. gather() copies the cells from the table before the batch. scatter() writes them back after it.
//
// Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
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
  // The first batch has the epoch after `first_epoch`. Only tests of what happens when epochs run out pass another
  // value than 0.
  explicit BatchRecords(std::uint32_t first_epoch = 0) : epoch_(first_epoch) {}

  // Numbers the records and gathers their cells. Requires: `resolver` has resolved `columns`, which have no ranges.
  void gather(const TransactionColumns& columns, const BatchResolver& resolver, const RecordStore& store);

  std::size_t size() const { return slots_.size(); }
  const std::vector<std::uint32_t>& record_of_key() const { return record_of_key_; }  // [k]
  // The one record of all keys that the batch only reads and that have no record. kNone: there is no such key.
  std::uint32_t absent_record() const { return absent_record_; }
  const std::vector<std::uint32_t>& slots() const { return slots_; }  // [d] slot in the table
  std::vector<std::uint64_t>& cells() { return cells_; }              // [2d] word and tag
  const std::vector<std::uint64_t>& cells() const { return cells_; }

  // Replays all writes in rank order over the cells that gather() has found. `before` gets the cell that each of them
  // replaces. A delta among the results (BatchResults::kDelta) becomes the value that the ADD left. False: the writes
  // do not lead to the cells that the strategy left, so that either the writes or the cells are wrong. Call it once,
  // before scatter().
  [[nodiscard]] bool replay(const TransactionColumns& columns, const RankOrder& order, BatchResults* results,
                            Cell* before);

  // Writes the cells that changed to the table. Requires: replay() has returned true.
  void scatter(RecordStore* store) const;

  std::size_t memory_bytes() const;

 private:
  // An entry of a hash table from slot to record number. It is free if its epoch is not that of this batch.
  struct Entry {
    std::uint32_t epoch, record;
  };

  std::uint32_t number(std::uint32_t slot);

  std::vector<Entry> entries_;  // the size is a power of 2, and at least twice the number of keys
  std::uint32_t epoch_;
  std::uint32_t shift_ = 0;
  std::vector<std::uint32_t> record_of_key_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> cells_;
  std::vector<Cell> running_;  // [d] the cells of the table; during replay(), those after the writes so far
  std::uint32_t absent_record_ = kNone;
};

}  // namespace kilokv::engine
