// The record table: key id -> slot of 32 bytes (id, word, version and type).
//
// Open addressing with linear probing. The home of an id is its high half scaled to the capacity (multiply and shift),
// so any capacity works. The table grows by a quarter, and its load stays between 0.64 and 0.8. A rehash reads and
// writes sequentially, because homes keep their order. Erasing shifts the rest of the run back, so there are no markers
// for erased records.
//
// Invariants: no probe run from a home to its slot has an empty slot in it. The slot at index capacity() never has a
// key, and all its bits are zero. It stands for every key that is not in the table, so that readers need no branch.
// Slot indices are stable until the next insert or erase.
//
// The host keeps two more columns beside the slots: key_ref (where the key's bytes are, table/key_arena.hpp), and chunk
// (the chunk of the ordered index that has the key).
//
// A kernel gets a TableRef by value. A device needs only the slots: capacity() + 1 of them, 32-byte aligned, uploaded
// once and then kept there. The other columns never leave the host.
//
// Thread safety: none. Source: linear probing with backward-shift deletion, Knuth vol. 3, 6.4, algorithm R.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/host_device.hpp"
#include "engine/base/prefetch.hpp"
#include "engine/base/types.hpp"
#include "engine/base/zeroed_array.hpp"

namespace kilokv::engine {

struct alignas(32) Slot {
  KeyId id;
  Cell cell;
};
static_assert(sizeof(Slot) == 32);

// A trivially copyable view of the slots, for every platform.
struct TableRef {
  Slot* slots = nullptr;
  std::uint32_t capacity = 0;

  KILOKV_HOST_DEVICE std::uint32_t home(std::uint64_t id_high) const {
    return static_cast<std::uint32_t>(((id_high >> 32) * capacity) >> 32);
  }
  // Index of the id's slot; `capacity` (the absent slot) if it has none.
  KILOKV_HOST_DEVICE std::uint32_t find(KeyId id) const { return find_from(home(id.high), id); }
  // As find(), but starts at slot i, which is any slot of the id's probe run.
  KILOKV_HOST_DEVICE std::uint32_t find_from(std::uint32_t i, KeyId id) const {
    while (true) {
      const Slot& slot = slots[i];
      if (slot.id.low == id.low && slot.id.high == id.high) return i;
      if ((slot.id.low | slot.id.high) == 0) return capacity;
      if (++i == capacity) i = 0;
    }
  }
};

class RecordTable {
 public:
  // Makes room for `expected_records`; the table grows only when it has more.
  explicit RecordTable(std::size_t expected_records);

  TableRef ref() { return {slots_.data(), capacity_}; }
  std::uint32_t find(KeyId id) const { return const_cast<RecordTable*>(this)->ref().find(id); }
  // find() for many ids at once: fills slots[0, ids.size()). Returns whether all of them have a slot. The probes of
  // different ids run side by side, in rounds, so that no probe waits for the memory of another, or for a branch that
  // cannot be predicted.
  bool find_all(std::span<const KeyId> ids, std::uint32_t* slots) const;
  void prefetch_slot(std::uint32_t slot) const { prefetch_for_write(slots_.data() + slot); }
  std::uint32_t absent_slot() const { return capacity_; }

  // Adds a record with an all-zero cell. The table may grow, which moves every slot. Requires: the id is not in the
  // table and not all zeros.
  std::uint32_t insert(KeyId id, std::uint32_t key_ref);
  // Removes a record. Slots after it move. Requires: the slot holds a record.
  void erase(std::uint32_t slot);

  Slot& operator[](std::uint32_t slot) { return slots_[slot]; }
  const Slot& operator[](std::uint32_t slot) const { return slots_[slot]; }
  bool occupied(std::uint32_t slot) const { return slots_[slot].id != KeyId{}; }

  std::uint32_t key_ref(std::uint32_t slot) const { return key_refs_[slot]; }
  std::uint32_t chunk(std::uint32_t slot) const { return chunks_[slot]; }
  void set_chunk(std::uint32_t slot, std::uint32_t chunk) { chunks_[slot] = chunk; }
  // Calls f(slot) for each record whose id has this highest quarter.
  template <class F>
  void for_each_of(std::uint32_t id_highest, const F& f) const {
    const std::uint32_t home = TableRef{nullptr, capacity_}.home(std::uint64_t{id_highest} << 32);
    for (std::uint32_t i = home; occupied(i); i = next(i)) {
      if (slots_[i].id.high >> 32 == id_highest) f(i);
    }
  }

  // The memory of a table with so many slots.
  static std::size_t memory_of(std::size_t capacity);
  // The most memory that a table of `capacity` slots takes until it has room for `records`. While a table grows, the
  // old slots and the new ones are there together.
  static std::size_t memory_until(std::size_t capacity, std::size_t records);

  std::size_t size() const { return size_; }
  std::uint32_t capacity() const { return capacity_; }
  std::size_t memory_bytes() const { return slots_.bytes() + key_refs_.bytes() + chunks_.bytes(); }

 private:
  void allocate(std::uint32_t capacity);
  static std::size_t next_capacity(std::size_t capacity) { return capacity * 5 / 4 + 1; }
  static std::size_t records_of(std::size_t capacity) { return capacity * 4 / 5; }
  void grow();
  std::uint32_t place(KeyId id, std::uint32_t key_ref);
  bool find_chunk(const KeyId* ids, std::uint32_t count, std::uint32_t* slots) const;
  std::uint32_t next(std::uint32_t slot) const { return slot + 1 == capacity_ ? 0 : slot + 1; }

  std::uint32_t capacity_ = 0;
  std::size_t size_ = 0;
  std::size_t size_max_ = 0;  // the table grows when it has more records than this
  ZeroedArray<Slot> slots_;   // [capacity + 1]
  ZeroedArray<std::uint32_t> key_refs_, chunks_;
};

}  // namespace kilokv::engine
