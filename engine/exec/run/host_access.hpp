// Gives the interpreter (txn/interpreter.hpp) access to records on the host. It reads and writes slots in place.
//
// Each operation that writes notes the cell that it replaces. This serves to undo a transaction, and after the batch it
// says what has changed (exec/collect/batch_writes.hpp). If a batch has ranges, each write also updates the summaries
// of the index, so that the later ranges of the batch see it.
//
// For one thread. Keeps its capacity, so that the steady state allocates nothing.
#pragma once

#include <cstdint>
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
  // Prepares for a batch. `before`: gets the cells that operations replace; it has room for all operations. Requires:
  // `resolver` has resolved `columns`, and all arguments outlive the batch.
  void open(const TransactionColumns& columns, const BatchResolver& resolver, RecordStore* store, BatchResults* results,
            Cell* before);

  // What the interpreter gets. It is copied, so that a loop keeps it in registers. Valid until slots move.
  class Run;
  Run run();

  const std::uint32_t* slot_of_pair() const { return slot_of_pair_.data(); }  // [pairs]
  bool summarized() const { return summarized_; }  // the summaries of the index have all writes of the batch
  std::size_t memory_bytes() const {
    return slot_of_pair_.capacity() * sizeof(std::uint32_t) + replaced_.capacity() * sizeof(OrderedIndex::Newest);
  }

 private:
  // Bytes. What a batch with more pairs or writes needs here is given back before the next batch.
  static constexpr std::size_t kKeptMax = std::size_t{32} << 20;

  void forget_ranges() { ranges_run_.clear(); }
  // Takes back the writes of the operations [first, end).
  void undo(std::uint32_t first, std::uint32_t end);
  void range_get(std::uint32_t range, Version own, bool reverse);
  bool delete_range(std::uint32_t range, Version own);
  void restore(std::uint32_t slot, Cell before);
  void summarize(std::uint32_t slot, Cell cell);
  void open_range(std::uint32_t range);
  void add_pair(std::uint32_t slot, std::string_view key, Version own);

  Slot* slots_ = nullptr;
  const std::uint32_t* slot_of_key_ = nullptr;
  const std::uint64_t* value_word_ = nullptr;
  const TransactionColumns* columns_ = nullptr;
  RecordStore* store_ = nullptr;
  BatchResults* results_ = nullptr;
  Cell* before_ = nullptr;                   // [m]
  std::vector<std::uint32_t> slot_of_pair_;  // for each pair of the results
  bool summarized_ = false;
  std::vector<OrderedIndex::Newest> replaced_;  // for each write, if summarized_: what summarize() replaced
  std::vector<std::uint32_t> ranges_run_;       // ranges that the current transaction has run
};

class HostAccess::Run {
 public:
  Cell read(std::uint32_t key) const { return slots_[slot_of_key_[key]].cell; }
  Cell read_of_guard(std::uint32_t key, std::uint32_t) const { return read(key); }
  static constexpr bool stopped() { return false; }
  void write(std::uint32_t key, Cell cell) {
    const std::uint32_t slot = slot_of_key_[key];
    before_[operation_] = slots_[slot].cell;
    if (has_ranges_) [[unlikely]] {
      owner_->summarize(slot, cell);
    }
    slots_[slot].cell = cell;
  }
  void begin(std::uint32_t operation) {
    first_ = operation;
    if (has_ranges_) [[unlikely]] {
      owner_->forget_ranges();
    }
  }
  void undo() { owner_->undo(first_, operation_); }
  bool bytes_equal(Cell cell, std::uint32_t value) const {
    return BlobStore::bytes(cell.word) == owner_->columns_->value(value);
  }
  std::uint64_t value_word(std::uint32_t value) const { return value_word_[value]; }
  bool range_unchanged(std::uint32_t range, Version since) const {
    return engine::range_unchanged(*owner_->store_, *owner_->columns_, range, since);
  }
  void range_get(std::uint32_t range, Version own, bool reverse) { owner_->range_get(range, own, reverse); }
  bool delete_range(std::uint32_t range, Version own) { return owner_->delete_range(range, own); }

  static constexpr bool defers(std::uint32_t) { return false; }
  // The operation with this index in the columns runs next. Prefetches the record of a later one.
  void ahead(std::uint32_t operation) {
    operation_ = operation;
    const std::uint32_t later = operation + kPrefetchAhead;
    if (later < operations_ && !known_uses_range(static_cast<OpKind>(op_kind_[later]))) {
      prefetch_for_write(slots_ + slot_of_key_[op_key_[later]]);
    }
  }

 private:
  friend class HostAccess;
  static constexpr std::uint32_t kPrefetchAhead = 16;  // operations
  explicit Run(HostAccess* owner)
      : owner_(owner),
        slots_(owner->slots_),
        slot_of_key_(owner->slot_of_key_),
        value_word_(owner->value_word_),
        before_(owner->before_),
        op_kind_(owner->columns_->op_kind.data()),
        op_key_(owner->columns_->op_key.data()),
        operations_(static_cast<std::uint32_t>(owner->columns_->op_kind.size())),
        has_ranges_(owner->summarized_) {}

  HostAccess* owner_;
  Slot* slots_;
  const std::uint32_t* slot_of_key_;
  const std::uint64_t* value_word_;
  Cell* before_;
  const std::uint8_t* op_kind_;
  const std::uint32_t* op_key_;
  std::uint32_t operations_;
  std::uint32_t first_ = 0, operation_ = 0;  // of the list that runs, and the one that runs
  bool has_ranges_;
};

inline HostAccess::Run HostAccess::run() {
  slots_ = store_->table().ref().slots;  // new keys may have moved the whole table
  return Run(this);
}

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
    store_.catch_up();
    return engine::range_unchanged(store_, columns_, range, since);
  }

 private:
  const RecordStore& store_;
  const TransactionColumns& columns_;
};

}  // namespace kilokv::engine
