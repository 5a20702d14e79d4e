// Gives the interpreter (txn/interpreter.hpp) access to records on the host. It reads and writes slots in place.
//
// Every write is logged with the cell that it replaced. The entries since begin() serve to undo a transaction. The
// entries that replaced a version from before the batch are the before-images: one for each record that was written. If
// a batch has ranges, each write also updates the summaries of the index, so that the later ranges of the batch see it.
//
// For one thread. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/table/record_store.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/kinds.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// Whether no key of the range has a version above `since`.
bool range_unchanged(const RecordStore& store, const TransactionColumns& columns, std::uint32_t range, Version since);

class HostAccess {
 public:
  // Prepares for a batch. Requires: `resolver` has resolved `columns`, and all arguments outlive the batch.
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
  // The operation with this index in the columns runs next. Prefetches the record of a later one.
  void ahead(std::uint32_t operation) const {
    const std::uint32_t later = operation + kPrefetchAhead;
    if (later < operations_ && !known_uses_range(static_cast<OpKind>(op_kind_[later]))) {
      prefetch_for_write(slots_ + slot_of_key_[op_key_[later]]);
    }
  }

  // The writes of the batch, in order, with the cells that they replaced. A replaced cell is a before-image if its
  // version is below the first version of the batch.
  std::span<const SlotImage> log() const { return {log_.data(), log_size_}; }
  bool summarized() const { return summarized_; }  // the summaries of the index have all writes of the log
  std::size_t memory_bytes() const {
    return log_.capacity() * sizeof(SlotImage) + replaced_.capacity() * sizeof(OrderedIndex::Newest);
  }

 private:
  static constexpr std::uint32_t kPrefetchAhead = 16;  // operations
  // Images. A log with more keeps its memory only as long as batches need it.
  static constexpr std::size_t kLogKeptMax = (std::size_t{64} << 20) / sizeof(SlotImage);

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
  std::vector<SlotImage> log_;  // has room for one write of each operation; DELETE_RANGE makes more room
  std::size_t log_size_ = 0;
  bool summarized_ = false;
  std::vector<OrderedIndex::Newest> replaced_;  // for each write of the log, if summarized_: what summarize() replaced
  std::size_t undo_begin_ = 0;
  std::vector<std::uint32_t> ranges_run_;  // ranges that the current transaction has run
};

// Gives access to records outside of a batch, to evaluate a guard. It looks up every key.
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
