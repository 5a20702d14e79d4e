// Gives the interpreter (txn/interpreter.hpp) access to records in place, where several threads run a batch. One object
// serves one thread.
//
// Each operation that writes notes the cell that it replaces, as with HostAccess (host_access.hpp). Batches with ranges
// do not run here. Thread safety: the strategy makes sure that no other thread uses a record that this one writes.
#pragma once

#include <cstdint>

#include "engine/base/prefetch.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/concept.hpp"
#include "engine/table/blob_store.hpp"
#include "engine/table/record_table.hpp"
#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

template <Platform P>
class SlotAccess {
 public:
  // Plain pointers, for all threads of a batch.
  struct Batch {
    Slot* slots;
    const TransactionColumns* columns;
    const BatchResults* results;
    const std::uint32_t* slot_of_key;
    const std::uint64_t* value_word;
    const std::uint8_t* defers;  // [m] 1: an ADD whose delta is added later
    Cell* before;                // [m]
  };
  SlotAccess(P& platform, const Batch& batch)
      : p_(&platform),
        slots_(batch.slots),
        slot_of_key_(batch.slot_of_key),
        value_word_(batch.value_word),
        before_(batch.before),
        columns_(batch.columns),
        results_(batch.results),
        may_defer_(batch.defers),
        op_key_(batch.columns->op_key.data()),
        operations_(static_cast<std::uint32_t>(batch.columns->op_key.size())) {}

  Cell cell(std::uint32_t slot) const {
    const Cell* const cell = &slots_[slot].cell;
    return {p_->get(&cell->word), p_->get(&cell->tag)};
  }
  void put(std::uint32_t slot, Cell cell) {
    p_->put(&slots_[slot].cell.word, cell.word);
    p_->put(&slots_[slot].cell.tag, cell.tag);
  }
  void defer(bool some) { defers_ = some ? may_defer_ : nullptr; }

  Cell read(std::uint32_t key) const { return cell(slot_of_key_[key]); }
  Cell read_of_guard(std::uint32_t key, std::uint32_t) const { return read(key); }
  static constexpr bool stopped() { return false; }
  // A younger adder may have been here before, and its version stays.
  void write(std::uint32_t key, Cell cell) {
    const std::uint32_t slot = slot_of_key_[key];
    const Cell before = this->cell(slot);
    before_[operation_] = before;
    put(slot, {cell.word, version_of(before.tag) > version_of(cell.tag) ? before.tag : cell.tag});
  }
  void begin(std::uint32_t operation) { first_ = operation; }
  // Goes backwards, so that a record that was written twice gets its oldest cell back. The operation that runs has
  // written nothing.
  void undo() {
    for (std::uint32_t i = operation_; i-- > first_;) {
      if (results_->op_flags[i] == BatchResults::kWrote) put(slot_of_key_[op_key_[i]], before_[i]);
    }
  }
  void ahead(std::uint32_t operation) {
    operation_ = operation;
    const std::uint32_t later = operation + kPrefetchAhead;
    if (later < operations_) prefetch_for_write(slots_ + slot_of_key_[op_key_[later]]);
  }
  bool defers(std::uint32_t operation) const { return defers_ != nullptr && p_->get(defers_ + operation) != 0; }
  std::uint64_t value_word(std::uint32_t value) const { return value_word_[value]; }
  bool bytes_equal(Cell cell, std::uint32_t value) const {
    return BlobStore::bytes(cell.word) == columns_->value(value);
  }
  bool range_unchanged(std::uint32_t, Version) const { return false; }
  void range_get(std::uint32_t, Version, bool) {}
  bool delete_range(std::uint32_t, Version) { return false; }

 private:
  static constexpr std::uint32_t kPrefetchAhead = 16;  // operations

  P* p_;
  Slot* slots_;
  const std::uint32_t* slot_of_key_;
  const std::uint64_t* value_word_;
  Cell* before_;
  const TransactionColumns* columns_;
  const BatchResults* results_;
  const std::uint8_t* defers_ = nullptr;
  const std::uint8_t* may_defer_;
  const std::uint32_t* op_key_;
  std::uint32_t operations_;
  std::uint32_t first_ = 0, operation_ = 0;  // of the list that runs, and the one that runs
};

}  // namespace kilokv::engine
