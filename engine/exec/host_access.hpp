// The host's access to records for the interpreter (txn/interpreter.hpp): reads and writes slots in place.
//
// Every write is kept in an undo log until the next transaction begins. The first write of a record in the batch (its
// version is still below the batch's first) also notes its cell before: settled after the batch, once per record, into
// hash, counts and dirty marks, and handed out as before-images.
//
// One thread. Keeps its capacity: nothing is allocated in the steady state.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/exec/resolver.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// A slot and what it held.
struct SlotImage {
  std::uint32_t slot;
  Cell before;
};

// Whether no key of range i has a version above `since`.
bool range_unchanged(const RecordStore& store, const TransactionColumns& columns, std::uint32_t range, Version since);

class HostAccess {
 public:
  // Prepares for a batch. Requires: `resolver` has resolved `columns`; all arguments outlive the batch.
  void open(const BatchHeader& header, const TransactionColumns& columns, const BatchResolver& resolver,
            RecordStore* store, BatchResults* results);

  Cell read(std::uint32_t key) const { return slots_[slot_of_key_[key]].cell; }
  void write(std::uint32_t key, Cell cell) { write_slot(slot_of_key_[key], cell); }
  void begin() {
    undo_.clear();
    first_written_mark_ = first_written_.size();
    if (!ranges_run_.empty()) ranges_run_.clear();
  }
  void undo();
  bool bytes_equal(Cell cell, std::uint32_t value) const {
    return BlobStore::bytes(cell.word) == columns_->value(value);
  }
  std::uint64_t value_word(std::uint32_t value) const { return value_word_[value]; }
  bool range_unchanged(std::uint32_t range, Version since) const {
    return engine::range_unchanged(*store_, *columns_, range, since);
  }
  void range_get(std::uint32_t range, Version own);
  bool delete_range(std::uint32_t range, Version own);

  // Each record that the batch wrote, once, in the order of the first writes.
  const std::vector<SlotImage>& first_written() const { return first_written_; }
  void forget() { first_written_.clear(); }

 private:
  void write_slot(std::uint32_t slot, Cell cell) {
    Cell& current = slots_[slot].cell;
    undo_.push_back({slot, current});
    if (version_of(current.tag) < first_version_) first_written_.push_back({slot, current});
    current = cell;
  }
  void open_range(std::uint32_t range);
  void add_pair(std::string_view key, Cell cell, Version own);

  Slot* slots_ = nullptr;
  const std::uint32_t* slot_of_key_ = nullptr;
  const std::uint64_t* value_word_ = nullptr;
  Version first_version_ = 1;
  const TransactionColumns* columns_ = nullptr;
  RecordStore* store_ = nullptr;
  BatchResults* results_ = nullptr;
  std::vector<SlotImage> undo_;
  std::vector<SlotImage> first_written_;
  std::size_t first_written_mark_ = 0;
  std::vector<std::uint32_t> ranges_run_;  // by the running transaction
};

// Access for evaluating a guard outside of a batch: looks every key up.
class LookupAccess {
 public:
  LookupAccess(const RecordStore& store, const TransactionColumns& columns) : store_(store), columns_(columns) {}
  Cell read(std::uint32_t key) const { return store_.table()[store_.table().find(columns_.key_id[key])].cell; }
  bool bytes_equal(Cell cell, std::uint32_t value) const {
    return BlobStore::bytes(cell.word) == columns_.value(value);
  }
  bool range_unchanged(std::uint32_t range, Version since) const {
    return engine::range_unchanged(store_, columns_, range, since);
  }

 private:
  const RecordStore& store_;
  const TransactionColumns& columns_;
};

}  // namespace kilokv::engine
