// The records that a batch names, each once. They are numbered from 0, in the order in which the keys of the batch
// first name them. A parallel strategy (stm/ordered.hpp) works on copies of their cells, which are close together and
// apart from the table. gather() copies the cells from the table before the batch. The engine writes the table from the
// writes in the results (exec/collect/write_back.hpp).
//
// A device numbers the records itself, and has their cells. Then each key has a number of its own here.
//
// Not thread-safe. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/program.hpp"

namespace kilokv::engine {

class BatchRecords {
 public:
  // The first batch has the epoch after `first_epoch`. Only tests of what happens when epochs run out pass another
  // value than 0.
  explicit BatchRecords(std::uint32_t first_epoch = 0) : epoch_(first_epoch) {}

  // Numbers the records. Requires: `resolver` has resolved `columns`, which have no ranges.
  void number(const TransactionColumns& columns, const BatchResolver& resolver);
  // The same, and gathers their cells.
  void gather(const TransactionColumns& columns, const BatchResolver& resolver, const RecordStore& store);
  // Leaves the numbers to a device.
  void leave(const TransactionColumns& columns);

  std::size_t size() const { return size_; }
  bool are_numbered() const { return are_numbered_; }
  const std::vector<std::uint32_t>& record_of_key() const { return record_of_key_; }  // [k]
  // The one record of all keys that the batch only reads and that have no record. kNone: there is no such key, or
  // a device numbers the records.
  std::uint32_t absent_record() const { return absent_record_; }
  const std::vector<std::uint32_t>& slots() const { return slots_; }  // [d] slot in the table
  std::vector<std::uint64_t>& cells() { return cells_; }              // [2d] word and tag
  const std::vector<std::uint64_t>& cells() const { return cells_; }

  // Whether the table has the cells that are here. Requires: gather() was called.
  [[nodiscard]] bool are_in(const RecordTable& table) const;

  std::size_t memory_bytes() const;

 private:
  // An entry of a hash table from slot to record number. It is free if its epoch is not that of this batch.
  struct Entry {
    std::uint32_t epoch, record;
  };

  std::uint32_t number_of(std::uint32_t slot);

  std::vector<Entry> entries_;  // the size is a power of 2, and at least twice the number of keys
  std::uint32_t epoch_;
  std::uint32_t shift_ = 0;
  std::vector<std::uint32_t> record_of_key_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> cells_;
  std::size_t size_ = 0;
  bool are_numbered_ = false;
  std::uint32_t absent_record_ = kNone;
};

}  // namespace kilokv::engine
