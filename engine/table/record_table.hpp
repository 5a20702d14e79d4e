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
// The host keeps more columns beside the slots: key_ref (where the key's bytes are, table/key_arena.hpp), chunk (the
// chunk of the ordered index that has the key), and two marks for the record store, dirty and touched.
//
// A kernel gets a TableRef by value. A device needs only the slots: capacity() + 1 of them, 32-byte aligned, uploaded
// once and then kept there. The other columns never leave the host.
//
// Thread safety: none. Source: linear probing with backward-shift deletion, Knuth vol. 3, 6.4, algorithm R.
#pragma once

#include <bit>
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
  // Prefetches the slot and the marks that are written with it.
  void prefetch_slot(std::uint32_t slot) const {
    prefetch_for_write(slots_.data() + slot);
    prefetch_for_write(marks_.data() + slot / 64);
  }
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
  bool dirty(std::uint32_t slot) const { return (marks_[slot / 64].dirty >> (slot % 64) & 1) != 0; }
  void set_dirty(std::uint32_t slot, bool dirty);
  // A dirty record whose id has this highest quarter; absent_slot() if there is none.
  std::uint32_t find_dirty(std::uint32_t id_highest) const;
  void clear_dirty();

  bool touched(std::uint32_t slot) const { return (marks_[slot / 64].touched >> (slot % 64) & 1) != 0; }
  void touch(std::uint32_t slot);
  // Whether the record is both dirty and touched.
  bool has_marks(std::uint32_t slot) const {
    const Marks& marks = marks_[slot / 64];
    return (marks.dirty & marks.touched) >> (slot % 64) & 1;
  }
  // Calls f(slot) for each touched record. After that, no record is touched.
  template <class F>
  void take_touched(const F& f) {
    for (std::size_t i = 0; i < touched_marks_.size(); ++i) {
      for (; touched_marks_[i] != 0; touched_marks_[i] &= touched_marks_[i] - 1) {
        const std::size_t at = i * 64 + static_cast<std::size_t>(std::countr_zero(touched_marks_[i]));
        for (std::uint64_t& bits = marks_[at].touched; bits != 0; bits &= bits - 1) {
          f(static_cast<std::uint32_t>(at * 64 + static_cast<std::size_t>(std::countr_zero(bits))));
        }
      }
    }
  }

  // The memory of a table with so many slots.
  static std::size_t memory_of(std::size_t capacity);
  // The most memory that a table of `capacity` slots takes until it has room for `records`. While a table grows, the
  // old slots and the new ones are there together.
  static std::size_t memory_until(std::size_t capacity, std::size_t records);

  std::size_t size() const { return size_; }
  std::uint32_t capacity() const { return capacity_; }
  std::size_t memory_bytes() const {
    return slots_.bytes() + key_refs_.bytes() + chunks_.bytes() + marks_.bytes() + touched_marks_.bytes();
  }

 private:
  void allocate(std::uint32_t capacity);
  static std::size_t next_capacity(std::size_t capacity) { return capacity * 5 / 4 + 1; }
  static std::size_t records_of(std::size_t capacity) { return capacity * 4 / 5; }
  void grow();
  void untouch(std::uint32_t slot);
  std::uint32_t place(KeyId id, std::uint32_t key_ref);
  bool find_chunk(const KeyId* ids, std::uint32_t count, std::uint32_t* slots) const;
  std::uint32_t next(std::uint32_t slot) const { return slot + 1 == capacity_ ? 0 : slot + 1; }

  std::uint32_t capacity_ = 0;
  std::size_t size_ = 0;
  std::size_t size_max_ = 0;  // the table grows when it has more records than this
  ZeroedArray<Slot> slots_;   // [capacity + 1]
  ZeroedArray<std::uint32_t> key_refs_, chunks_;
  struct Marks {  // of 64 slots
    std::uint64_t dirty, touched;
  };
  ZeroedArray<Marks> marks_;
  ZeroedArray<std::uint64_t> touched_marks_;  // one bit for each of marks_ that may have a touched slot
};

}  // namespace kilokv::engine
