#include "engine/table/record_table.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

constexpr std::size_t kCapacityMin = 64;
constexpr std::size_t kCapacityMax = std::numeric_limits<std::uint32_t>::max() - (std::size_t{1} << 20);

// Overflow slots. A run that needs more gets more. At a load of 0.86, one of 10^8 tables needs more.
constexpr std::uint32_t kOverflowSlots = 64;
constexpr std::size_t slots_of(std::size_t capacity) { return 1 + capacity + kOverflowSlots; }

// The numbers of records with which a table takes the memory of a growth, with which it grows, and with which it grows
// even if it does not have the memory yet.
constexpr std::size_t records_with_memory(std::size_t capacity) { return capacity * 77 / 100; }
constexpr std::size_t records_of(std::size_t capacity) { return capacity * 4 / 5; }
constexpr std::size_t records_at_most(std::size_t capacity) { return capacity * 41 / 50; }

// A large table has whole huge pages, of slots, and from some size on of what is beside them (base/growing_array.hpp).
constexpr std::size_t kPageSlots = (std::size_t{2} << 20) / sizeof(Slot);
constexpr std::size_t kPagesMin = 64;
constexpr std::size_t kPagesOfBesides = 4;
constexpr std::size_t unit_of(std::size_t slots) {
  if (slots < kPagesMin * kPageSlots) return 1;
  return slots < kPagesMin * kPagesOfBesides * kPageSlots ? kPageSlots : kPagesOfBesides * kPageSlots;
}

// The table takes no more memory until it has more records.
std::size_t capacity_for(std::size_t records) {
  const std::size_t slots = slots_of(std::max(records * 100 / 77 + 1, kCapacityMin)), unit = unit_of(slots);
  return (slots + unit - 1) / unit * unit - slots_of(0);
}

// An eighth more. A growth has ended before the next one takes its memory.
std::size_t next_capacity(std::size_t capacity) {
  const std::size_t wanted = slots_of(capacity * 9 / 8 + 1), unit = unit_of(wanted);
  const std::size_t rounded = wanted / unit * unit;
  return (8 * rounded < 9 * slots_of(capacity) ? rounded + unit : rounded) - slots_of(0);
}

// While the table grows, each insert owes the move of so many slots. A growth then ends before the table has 0.86
// records for each old home. The moves are made in bursts, because a burst reads and writes sequentially.
constexpr std::uint32_t kSlotsPerInsert = 32;
constexpr std::uint32_t kBurstSlots = 2048;

// A thread costs more than the page faults of a smaller growth.
constexpr std::size_t kAheadBytesMin = std::size_t{1} << 20;

// How many ids are looked up side by side. The cache lines of their slots fit into the caches together.
constexpr std::uint32_t kChunkIds = 512;
constexpr std::uint32_t kHomesAhead = 32;
// A round for fewer ids than this costs more than it saves.
constexpr std::uint32_t kRoundIdsMin = 4;

// find() for a few ids. Calls home(id).
template <class Home>
bool find_chunk(const TableRef& whole, const KeyId* ids, std::uint32_t count, std::uint32_t* slots, const Home& home) {
  std::array<std::uint32_t, kChunkIds> open;  // those that are not decided yet
  const Slot* const table = whole.slots;
  const auto ask_for_home = [&](std::uint32_t i) {
    slots[i] = home(ids[i]);
    prefetch_for_write(table + slots[i]);
  };
  const std::uint32_t ahead = std::min(kHomesAhead, count);
  for (std::uint32_t i = 0; i < ahead; ++i) ask_for_home(i);
  std::uint32_t open_count = 0;
  // One probe, without a branch: a hit cannot be predicted, and one wrong prediction costs as much as ten probes. The
  // probe compares only one half of the id. It stops at a slot that has this half, or at an empty slot. The end of
  // find_chunk() checks the whole id. The slot of the next round is prefetched one round ahead.
  const auto probe = [&](std::uint32_t i) {
    const std::uint32_t slot = slots[i];
    const std::uint64_t held = table[slot].id.low;
    const bool goes_on = (held != ids[i].low) & (held != 0);
    slots[i] = slot + static_cast<std::uint32_t>(goes_on);
    prefetch_for_write(table + slots[i]);
    open[open_count] = i;
    open_count += static_cast<std::uint32_t>(goes_on);
  };
  for (std::uint32_t i = 0; i < count - ahead; ++i) {
    ask_for_home(i + ahead);
    probe(i);
  }
  for (std::uint32_t i = count - ahead; i < count; ++i) probe(i);
  while (open_count >= kRoundIdsMin) {
    const std::uint32_t probes = open_count;
    open_count = 0;
    for (std::uint32_t j = 0; j < probes; ++j) probe(open[j]);
  }
  bool has_all = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const KeyId held = table[slots[i]].id;
    if (held.low == ids[i].low && held.high == ids[i].high) [[likely]]
      continue;
    slots[i] = whole.find_from(slots[i], ids[i]);
    has_all &= slots[i] != RecordTable::absent_slot();
  }
  return has_all;
}

// Addresses for a table of so many records, and for much overflow.
std::size_t slots_reserved(std::size_t records_max) { return records_max * 5 / 3 + (std::size_t{1} << 19); }

}  // namespace

RecordTable::RecordTable(std::size_t expected_records, std::size_t records_max)
    : slots_(slots_reserved(records_max)), besides_(slots_reserved(records_max)) {
  const std::size_t capacity = capacity_for(expected_records);
  KILOKV_CHECK(capacity <= kCapacityMax);
  memory_capacity_ = ref_.lower = ref_.upper = static_cast<std::uint32_t>(capacity);
  end_ = static_cast<std::uint32_t>(slots_of(capacity));
  size_next_ = records_with_memory(capacity);
  take_memory(end_);
}

void RecordTable::take_memory(std::size_t slots) {
  ahead_.stop();
  slots_.grow(slots);
  besides_.grow(slots);
  ref_.slots = slots_.data();
}

void RecordTable::advance_growth() {
  if (memory_capacity_ == capacity()) {
    prepare_growth();
    size_next_ = records_of(capacity());
  } else if (!ahead_.is_done() && size_ < records_at_most(capacity())) {
    size_next_ = size_ + capacity() / 1024 + 1;
  } else {
    start_growth();
    size_next_ = records_with_memory(capacity());
  }
}

void RecordTable::prepare_growth() {
  const std::size_t wanted = next_capacity(capacity());
  KILOKV_CHECK(wanted <= kCapacityMax);
  memory_capacity_ = static_cast<std::uint32_t>(wanted);
  const std::size_t slots = slots_of(wanted);
  if (slots <= slots_.size()) return;  // the overflow slots have it already
  const auto bytes = [this] { return std::array{slots_.bytes(), besides_.bytes()}; };
  const auto before = bytes();
  take_memory(slots);
  if (slots_.bytes() - before[0] < kAheadBytesMin) return;
  const auto part = [&before](std::size_t column, auto& array) {
    return std::as_writable_bytes(std::span(array.data(), array.size())).subspan(before[column]);
  };
  ahead_.take({part(0, slots_), part(1, besides_)});
}

void RecordTable::start_growth() {
  KILOKV_CHECK(!growing());
  ahead_.stop();
  not_moved_ = ref_.lower;
  owed_ = 0;
  ref_.upper = memory_capacity_;
  ref_.boundary = std::uint64_t{1} << 32;
  end_ = std::max(end_, static_cast<std::uint32_t>(slots_of(ref_.upper)));
}

void RecordTable::pay_for_growth() {
  owed_ += kSlotsPerInsert;
  if (owed_ < std::min(kBurstSlots, ref_.lower / 16)) return;
  move_down_to(not_moved_ - std::min(owed_, not_moved_));
  owed_ = 0;
}

// Moves the records above this slot, and then the rest of the run in which it is.
void RecordTable::move_down_to(std::uint32_t slot) {
  while (not_moved_ > slot) {
    if (occupied(not_moved_)) {
      move_run();
    } else {
      --not_moved_;
    }
  }
  set_boundary();
  if (!growing()) ref_.lower = ref_.upper;
}

// Moves the run of the highest slot that has not moved. Takes the whole run out of the table, with the part of it that
// has moved already, so that no record is left after a gap.
void RecordTable::move_run() {
  run_.clear();
  for (std::uint32_t i = not_moved_ + 1; occupied(i); ++i) take_out(i);
  for (; occupied(not_moved_); --not_moved_) take_out(not_moved_);
  set_boundary();
  for (const Row& row : run_) put(find_free(row.slot.id), row);
}

void RecordTable::take_out(std::uint32_t slot) {
  run_.push_back(row(slot));
  put(slot, {});
}

// The least hash whose home by the old capacity is above the slots that have not moved.
void RecordTable::set_boundary() { ref_.boundary = ((std::uint64_t{not_moved_} << 32) + ref_.lower - 1) / ref_.lower; }

std::size_t RecordTable::memory_of(std::size_t capacity) {
  const std::size_t slots = slots_of(capacity);
  return slots * (sizeof(Slot) + sizeof(Beside));
}

std::size_t RecordTable::memory_until(std::size_t capacity, std::size_t records) {
  while (records > records_with_memory(capacity)) capacity = next_capacity(capacity);
  return memory_of(capacity);
}

// Returns the slot for a new record with this id.
std::uint32_t RecordTable::find_free(KeyId id) {
  std::uint32_t i = ref_.home(id.high);
  while (occupied(i)) ++i;
  if (i + 1 == end_) {  // the last slot stays empty
    end_ += kOverflowSlots;
    take_memory(std::max<std::size_t>(end_, slots_.size()));
  }
  return i;
}

void RecordTable::put(std::uint32_t slot, const Row& row) {
  slots_[slot] = row.slot;
  besides_[slot] = row.beside;
}

std::uint32_t RecordTable::insert(KeyId id, std::uint32_t key_ref) {
  if (size_ >= size_next_) [[unlikely]]
    advance_growth();
  if (growing()) pay_for_growth();
  ++size_;
  const std::uint32_t slot = find_free(id);
  slots_[slot].id = id;
  besides_[slot].key_ref = key_ref;
  return slot;
}

void RecordTable::erase(std::uint32_t slot) {
  std::uint32_t gap = slot;
  for (std::uint32_t i = gap + 1; occupied(i); ++i) {
    if (ref_.home(slots_[i].id.high) > gap) continue;  // its run begins after the gap
    put(gap, row(i));
    gap = i;
  }
  put(gap, {});
  --size_;
}

bool RecordTable::find_all(std::span<const KeyId> ids, std::uint32_t* slots) const {
  const TableRef table = ref_;
  const auto find_in_chunks = [&](const auto& home) {
    bool has_all = true;
    for (std::size_t i = 0; i < ids.size(); i += kChunkIds) {
      const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(kChunkIds, ids.size() - i));
      has_all &= find_chunk(table, ids.data() + i, count, slots + i, home);
    }
    return has_all;
  };
  if (growing()) return find_in_chunks([table](KeyId id) { return table.home(id.high); });
  return find_in_chunks([capacity = table.upper](KeyId id) { return 1 + scaled_home(id.high, capacity); });
}

}  // namespace kilokv::engine
