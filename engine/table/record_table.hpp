// The record table: key id -> slot of 32 bytes (id, word, version and type).
//
// Open addressing with linear probing. The home of an id is its hash (the highest 32 bits) scaled to the capacity
// (multiply and shift), so any capacity works. Homes are slots 1 to the capacity. A run that passes the last home goes
// on in the overflow slots after it: probes do not wrap around. Erasing shifts the rest of the run back, so there are
// no markers for erased records.
//
// find_all() looks at the tags of a run, eight at once. A slot with the right tag may have another id. So find_all()
// then compares the whole id.
//
// The table grows by an eighth when it has 0.8 records for each home. It grows in place, in small slices: each insert
// pays for the move of a few slots. Records move from the highest slot downward. Homes keep their order and never get
// lower, so moved records do not get in the way of the others. A boundary hash says which records have moved: those
// with a hash of at least the boundary have their home by the new capacity, and the others by the old one. At no time
// are there two copies of a column. Before the table grows, a thread takes the memory that the growth will need
// (platform/memory_ahead.hpp). The growth waits for the thread until the table has 0.82 records for each home.
//
// Invariants: no slot between a home and the record's slot is empty. Slot 0 and the last slot never have a key. All
// bits of slot 0 are zero. It stands for every key that is not in the table, so that readers need no branch. Slot
// indices are stable until the next insert or erase.
//
// The host keeps more beside the slots: a tag, which is one byte of the id; key_ref (where the key's bytes are,
// table/key_arena.hpp), and chunk (the chunk of the ordered index that has the key).
//
// Thread safety: none. Source: linear probing with backward-shift deletion, Knuth vol. 3, 6.4, algorithm R.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/growing_array.hpp"
#include "engine/base/host_device.hpp"
#include "engine/base/prefetch.hpp"
#include "engine/base/types.hpp"
#include "engine/platform/memory_ahead.hpp"

namespace kilokv::engine {

struct alignas(32) Slot {
  KeyId id;
  Cell cell;
};
static_assert(sizeof(Slot) == 32);

// The place of an id among `capacity` places. Takes the high half of the id. A device's table uses it as it is.
KILOKV_HOST_DEVICE inline std::uint32_t scaled_home(std::uint64_t id_high, std::uint32_t capacity) {
  return static_cast<std::uint32_t>(((id_high >> 32) * capacity) >> 32);
}

// A trivially copyable view of the slots, which finds records.
struct TableRef {
  Slot* slots = nullptr;
  // The capacity by which records have their home if they have not moved, and if they have. The two differ only while
  // the table grows.
  std::uint32_t lower = 0, upper = 0;
  std::uint64_t boundary = 0;  // records with at least this hash have moved

  std::uint32_t home(std::uint64_t id_high) const {
    return 1 + scaled_home(id_high, id_high >> 32 >= boundary ? upper : lower);
  }
  // Index of the id's slot; 0 (the absent slot) if it has none.
  std::uint32_t find(KeyId id) const { return find_from(home(id.high), id); }
  // As find(), but starts at slot i, which is any slot of the id's probe run.
  std::uint32_t find_from(std::uint32_t i, KeyId id) const {
    for (;; ++i) {
      const Slot& slot = slots[i];
      if (slot.id.low == id.low && slot.id.high == id.high) return i;
      if ((slot.id.low | slot.id.high) == 0) return 0;
    }
  }
};

class RecordTable {
 public:
  // Makes room for `expected_records`; the table grows only when it has more. It reserves addresses for `records_max`,
  // up to which it grows in place.
  explicit RecordTable(std::size_t expected_records, std::size_t records_max = kRecordsReserved);

  TableRef ref() const { return ref_; }
  std::uint32_t find(KeyId id) const { return ref_.find(id); }
  // find() for many ids at once: fills slots[0, ids.size()). Returns whether all of them have a slot.
  bool find_all(std::span<const KeyId> ids, std::uint32_t* slots) const;
  // The two halves of find_all(). hint_all() looks at tags only, so it may run while other threads write cells. The
  // hint is the absent slot if the id has no slot. Any other hint may be wrong. check_hints() makes slots of hints, and
  // returns whether all ids have one. Requires: no record was inserted or erased between the two.
  void hint_all(std::span<const KeyId> ids, std::uint32_t* slots) const;
  bool check_hints(std::span<const KeyId> ids, const std::uint32_t* hints, std::uint32_t* slots) const;
  void prefetch_slot(std::uint32_t slot) const { prefetch_for_write(slots_.data() + slot); }
  static constexpr std::uint32_t absent_slot() { return 0; }

  // Adds a record with an all-zero cell. Every slot may move. Requires: the id is not in the table and not all zeros.
  std::uint32_t insert(KeyId id, std::uint32_t key_ref);
  // Removes a record. Slots after it move. Requires: the slot holds a record.
  void erase(std::uint32_t slot);

  Slot& operator[](std::uint32_t slot) { return slots_[slot]; }
  const Slot& operator[](std::uint32_t slot) const { return slots_[slot]; }
  bool occupied(std::uint32_t slot) const { return slots_[slot].id != KeyId{}; }
  // All records are in slots below this one.
  std::uint32_t end_slot() const { return end_; }

  std::uint32_t key_ref(std::uint32_t slot) const { return besides_[slot].key_ref; }
  std::uint32_t chunk(std::uint32_t slot) const { return besides_[slot].chunk; }
  void set_chunk(std::uint32_t slot, std::uint32_t chunk) { besides_[slot].chunk = chunk; }
  // Calls f(slot) for each record whose id has this highest quarter.
  template <class F>
  void for_each_of(std::uint32_t id_highest, const F& f) const {
    for (std::uint32_t i = ref_.home(std::uint64_t{id_highest} << 32); occupied(i); ++i) {
      if (slots_[i].id.high >> 32 == id_highest) f(i);
    }
  }

  // The memory of a table of this capacity.
  static std::size_t memory_of(std::size_t capacity);
  // The most memory that a table takes until it has room for `records`, if it has the memory of this capacity now.
  static std::size_t memory_until(std::size_t capacity, std::size_t records);

  std::size_t size() const { return size_; }
  // The number of homes. While the table grows, the number that it will have then.
  std::uint32_t capacity() const { return ref_.upper; }
  // The capacity for which the table has the memory. The table takes the memory of a growth before it grows.
  std::uint32_t memory_capacity() const { return memory_capacity_; }
  bool growing() const { return not_moved_ > 0; }
  std::size_t memory_bytes() const { return slots_.bytes() + tags_.bytes() + besides_.bytes(); }

 private:
  static constexpr std::size_t kRecordsReserved = std::size_t{1} << 31;

  struct Beside {
    std::uint32_t key_ref, chunk;
  };
  // All that the table has of a record.
  struct Row {
    Slot slot;
    Beside beside;
  };

  // check_hints() looks at this number of ids, and then corrects the wrong hints among them.
  static constexpr std::uint32_t kCheckedMax = 512;

  // 0 only for an empty slot. Other bits of the id choose the home.
  static std::uint8_t tag_of(KeyId id) {
    const auto tag = static_cast<std::uint8_t>(id.low);
    return tag == 0 && (id.low | id.high) != 0 ? 1 : tag;
  }
  template <class Home>
  void hint_all(std::span<const KeyId> ids, const Home& home, std::uint32_t* slots) const;
  void take_memory(std::size_t slots);
  void advance_growth();
  void prepare_growth();
  void start_growth();
  void pay_for_growth();
  void move_down_to(std::uint32_t slot);
  void move_run();
  void take_out(std::uint32_t slot);
  void set_boundary();
  std::uint32_t find_free(KeyId id);
  void put(std::uint32_t slot, const Row& row);
  Row row(std::uint32_t slot) const { return {slots_[slot], besides_[slot]}; }

  TableRef ref_;
  std::uint32_t end_ = 0;
  std::uint32_t memory_capacity_ = 0;
  std::size_t size_ = 0;
  std::size_t size_next_ = 0;  // with so many records, the table takes the next step of a growth

  std::uint32_t not_moved_ = 0;  // slots from 1 to this one have not moved; 0: the table does not grow
  std::uint32_t owed_ = 0;       // slots that inserts have to move
  std::vector<Row> run_;         // of move_run()

  GrowingArray<Slot> slots_;
  GrowingArray<std::uint8_t> tags_;
  GrowingArray<Beside> besides_;
  MemoryAhead ahead_;  // ends before the columns
};

}  // namespace kilokv::engine
