// The record table: key id -> slot of 32 bytes (id, word, version and type).
//
// Open addressing with linear probing. The home of an id is its high half scaled to the capacity (multiply and shift),
// so that any capacity will do: the table grows by a quarter, its load stays between 0.64 and 0.8, and since homes keep
// their order a rehash reads and writes sequentially. Erasing shifts the run behind the gap back: no markers.
//
// Invariants: every probe run from a home to its slot has no empty slot in it; the slot at index capacity() has no key
// and all zero bits, for ever: it stands for every key that is not in the table, so that readers need no branch.
// Slot indices are stable until the next insert or erase.
//
// Host columns beside the slots: key_ref (where the key's bytes are, table/key_arena.hpp) and a dirty mark.
//
// TableRef is what a kernel gets by value; on a device it needs the slots alone (capacity() + 1 of them, 32-byte
// aligned, uploaded once and then kept there): the host columns never leave the host.
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

// Trivially copyable view of the slots; usable on any platform.
struct TableRef {
  Slot* slots = nullptr;
  std::uint32_t capacity = 0;

  KILOKV_HOST_DEVICE std::uint32_t home(std::uint64_t id_high) const {
    return static_cast<std::uint32_t>(((id_high >> 32) * capacity) >> 32);
  }
  // Index of the id's slot; `capacity` (the absent slot) if it has none.
  KILOKV_HOST_DEVICE std::uint32_t find(KeyId id) const { return find_from(home(id.high), id); }
  // The same, from any slot i of the id's probe run on.
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
  // Room for `expected_records` before it first grows.
  explicit RecordTable(std::size_t expected_records);

  TableRef ref() { return {slots_.data(), capacity_}; }
  std::uint32_t find(KeyId id) const { return const_cast<RecordTable*>(this)->ref().find(id); }
  // find() for many ids at once: fills slots[0, ids.size()); whether all of them have a slot. The probes of different
  // ids run side by side, in rounds, so that none waits for another's memory or for a branch that cannot be predicted.
  bool find_all(std::span<const KeyId> ids, std::uint32_t* slots) const;
  // The slot and its dirty mark.
  void prefetch_slot(std::uint32_t slot) const {
    prefetch_for_write(slots_.data() + slot);
    prefetch_for_write(dirty_.data() + slot / 64);
  }
  std::uint32_t absent_slot() const { return capacity_; }

  // Adds a record with an all-zero cell; may grow, which moves every slot.
  // Requires: the id is not in the table and not all zeros.
  std::uint32_t insert(KeyId id, std::uint32_t key_ref);
  // Moves slots behind it. Requires: the slot holds a record.
  void erase(std::uint32_t slot);

  Slot& operator[](std::uint32_t slot) { return slots_[slot]; }
  const Slot& operator[](std::uint32_t slot) const { return slots_[slot]; }
  bool occupied(std::uint32_t slot) const { return slots_[slot].id != KeyId{}; }

  std::uint32_t key_ref(std::uint32_t slot) const { return key_refs_[slot]; }
  bool dirty(std::uint32_t slot) const { return (dirty_[slot / 64] >> (slot % 64) & 1) != 0; }
  void set_dirty(std::uint32_t slot, bool dirty);
  // A dirty record whose id has this high half; absent_slot() if there is none.
  std::uint32_t find_dirty(std::uint64_t id_high) const;
  void clear_dirty() { dirty_ = ZeroedArray<std::uint64_t>(dirty_.size()); }

  std::size_t size() const { return size_; }
  std::uint32_t capacity() const { return capacity_; }
  std::size_t memory_bytes() const { return slots_.bytes() + key_refs_.bytes() + dirty_.bytes(); }

 private:
  void allocate(std::uint32_t capacity);
  void grow();
  std::uint32_t place(KeyId id, std::uint32_t key_ref);
  void find_chunk(const KeyId* ids, std::uint32_t count, std::uint32_t* slots) const;
  std::uint32_t next(std::uint32_t slot) const { return slot + 1 == capacity_ ? 0 : slot + 1; }

  std::uint32_t capacity_ = 0;
  std::size_t size_ = 0;
  std::size_t size_max_ = 0;  // grows beyond it
  ZeroedArray<Slot> slots_;   // [capacity + 1]
  ZeroedArray<std::uint32_t> key_refs_;
  ZeroedArray<std::uint64_t> dirty_;  // one bit per slot
};

}  // namespace kilokv::engine
