// The host's access to records for the interpreter (txn/interpreter.hpp): reads and writes slots in place.
//
// Every write is logged with the cell that it replaced. The entries since begin() undo a transaction. Those that
// replaced a version from before the batch are, one for each record that was written, the batch's before-images. A
// batch that has ranges keeps the index's summaries at its own writes, so that its later ranges see them.
//
// One thread. Keeps its capacity: nothing is allocated in the steady state.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// Whether no key of range i has a version above `since`.
bool range_unchanged(const RecordStore& store, const TransactionColumns& columns, std::uint32_t range, Version since);

class HostAccess {
 public:
  // Prepares for a batch. Requires: `resolver` has resolved `columns`; all arguments outlive the batch.
  void open(const TransactionColumns& columns, const BatchResolver& resolver, RecordStore* store,
            BatchResults* results);

  Cell read(std::uint32_t key) const { return slots_[slot_of_key_[key]].cell; }
  Cell read_of_guard(std::uint32_t key, std::uint32_t) const { return read(key); }
  static constexpr bool stopped() { return false; }
  void write(std::uint32_t key, Cell cell) { write_slot(slot_of_key_[key], cell); }
  void begin() {
    undo_begin_ = log_size_;
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

  static constexpr bool defers(std::uint32_t) { return false; }
  // The operation with this index in the columns is about to run: asks for what a later one needs.
  void ahead(std::uint32_t operation) const {
    const std::uint32_t later = operation + kPrefetchAhead;
    if (later < operations_ && op_kind_[later] < static_cast<std::uint8_t>(OpKind::range_get)) {
      prefetch_for_write(slots_ + slot_of_key_[op_key_[later]]);
    }
  }

  // The writes of the batch, in order, with the cells that they replaced; the before-images are those whose version is
  // below the batch's first.
  std::span<const SlotImage> log() const { return {log_.data(), log_size_}; }
  bool summarized() const { return summarized_; }  // all of them were told to the index
  std::size_t memory_bytes() const {
    return log_.capacity() * sizeof(SlotImage) + replaced_.capacity() * sizeof(OrderedIndex::Newest);
  }

 private:
  static constexpr std::uint32_t kPrefetchAhead = 16;                                      // operations
  static constexpr std::size_t kLogKeptMax = (std::size_t{64} << 20) / sizeof(SlotImage);  // beyond it, as needed

  // Requires: room in the log.
  void write_slot(std::uint32_t slot, Cell cell) {
    if (summarized_) [[unlikely]] {
      summarize(slot, cell);
    }
    log_[log_size_++] = {slot, slots_[slot].cell};
    slots_[slot].cell = cell;
  }
  void summarize(std::uint32_t slot, Cell cell);
  void open_range(std::uint32_t range);
  void add_pair(std::string_view key, Cell cell, Version own);

  Slot* slots_ = nullptr;
  const std::uint32_t* slot_of_key_ = nullptr;
  const std::uint64_t* value_word_ = nullptr;
  const TransactionColumns* columns_ = nullptr;
  RecordStore* store_ = nullptr;
  BatchResults* results_ = nullptr;
  const std::uint8_t* op_kind_ = nullptr;
  const std::uint32_t* op_key_ = nullptr;
  std::uint32_t operations_ = 0;
  std::vector<SlotImage> log_;  // room for every operation's write; the deletes of ranges add their own
  std::size_t log_size_ = 0;
  bool summarized_ = false;
  std::vector<OrderedIndex::Newest> replaced_;  // for each write of the log, if summarized
  std::size_t undo_begin_ = 0;
  std::vector<std::uint32_t> ranges_run_;  // by the running transaction
};

// Access for evaluating a guard outside of a batch: looks every key up.
class LookupAccess {
 public:
  LookupAccess(const RecordStore& store, const TransactionColumns& columns) : store_(store), columns_(columns) {}
  Cell read_of_guard(std::uint32_t key, std::uint32_t) const {
    return store_.table()[store_.table().find(columns_.key_id[key])].cell;
  }
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
