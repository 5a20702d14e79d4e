#include "engine/table/record_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
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
constexpr std::size_t records_with_memory(std::size_t capacity) { return capacity * 78 / 100; }
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
  const std::size_t slots = slots_of(std::max(records * 100 / 78 + 1, kCapacityMin)), unit = unit_of(slots);
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

// How many ids before its turn the tags and the slot of an id are asked for.
constexpr std::uint32_t kTagsAhead = 16, kSlotsAhead = 32;

constexpr std::uint32_t kTagsAtOnce = 8;
// The tag of the last slot is read together with those after it.
constexpr std::size_t tags_of(std::size_t slots) { return slots + kTagsAtOnce - 1; }

constexpr std::uint64_t kLowBits = 0x0101010101010101, kHighBits = 0x8080808080808080;

// Bit 8 b + 7 for the first byte b of the word that is 0. Higher bits may be set, too. 0: no byte is 0.
constexpr std::uint64_t first_zero(std::uint64_t word) { return (word - kLowBits) & ~word & kHighBits; }

std::uint64_t eight(const std::uint8_t* tags) {
  std::uint64_t word = 0;
  std::memcpy(&word, tags, sizeof(word));
  return word;
}

// The first slot of the id's probe run that has the id's tag; the absent slot if there is none.
std::uint32_t hint_for(const std::uint8_t* tags, std::uint32_t home, std::uint8_t tag) {
  for (std::uint32_t i = home;; i += kTagsAtOnce) {
    const std::uint64_t word = eight(tags + i);
    const std::uint64_t equal = first_zero(word ^ tag * kLowBits), empty = first_zero(word);
    if ((equal | empty) == 0) continue;
    // The lowest bit decides.
    const bool is_equal = (equal & (empty - 1) & ~empty) != 0;
    return is_equal ? i + static_cast<std::uint32_t>(std::countr_zero(equal)) / 8 : RecordTable::absent_slot();
  }
}

// Addresses for a table of so many records, and for much overflow.
std::size_t slots_reserved(std::size_t records_max) { return records_max * 5 / 3 + (std::size_t{1} << 19); }

}  // namespace

RecordTable::RecordTable(std::size_t expected_records, std::size_t records_max)
    : slots_(slots_reserved(records_max)), tags_(slots_reserved(records_max)), besides_(slots_reserved(records_max)) {
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
  tags_.grow(tags_of(slots));
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
  const auto bytes = [this] { return std::array{slots_.bytes(), tags_.bytes(), besides_.bytes()}; };
  const auto before = bytes();
  take_memory(slots);
  if (slots_.bytes() - before[0] < kAheadBytesMin) return;
  const auto part = [&before](std::size_t column, auto& array) {
    return std::as_writable_bytes(std::span(array.data(), array.size())).subspan(before[column]);
  };
  ahead_.take({part(0, slots_), part(1, tags_), part(2, besides_)});
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
  return slots * (sizeof(Slot) + sizeof(Beside)) + tags_of(slots);
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
  tags_[slot] = tag_of(row.slot.id);
  besides_[slot] = row.beside;
}

std::uint32_t RecordTable::insert(KeyId id, std::uint32_t key_ref) {
  if (size_ >= size_next_) [[unlikely]]
    advance_growth();
  if (growing()) pay_for_growth();
  ++size_;
  const std::uint32_t slot = find_free(id);
  slots_[slot].id = id;
  tags_[slot] = tag_of(id);
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

template <class Home>
void RecordTable::hint_all(std::span<const KeyId> ids, const Home& home, std::uint32_t* slots) const {
  const std::uint8_t* const tags = tags_.data();
  const std::size_t count = ids.size(), ahead = std::min<std::size_t>(kTagsAhead, count);
  for (std::size_t i = 0; i < ahead; ++i) prefetch_for_read(tags + home(ids[i]));
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) prefetch_for_read(tags + home(ids[i + ahead]));
    slots[i] = hint_for(tags, home(ids[i]), tag_of(ids[i]));
  }
}

void RecordTable::hint_all(std::span<const KeyId> ids, std::uint32_t* slots) const {
  if (growing())
    return hint_all(
        ids, [table = ref_](KeyId id) { return table.home(id.high); }, slots);
  hint_all(
      ids, [capacity = ref_.upper](KeyId id) { return 1 + scaled_home(id.high, capacity); }, slots);
}

bool RecordTable::check_hints(std::span<const KeyId> ids, const std::uint32_t* hints, std::uint32_t* slots) const {
  std::array<std::uint32_t, kCheckedMax> wrong;
  const Slot* const table = slots_.data();
  const std::size_t count = ids.size(), ahead = std::min<std::size_t>(kSlotsAhead, count);
  bool has_all = true;
  for (std::size_t i = 0; i < ahead; ++i) prefetch_for_write(table + hints[i]);
  for (std::size_t begin = 0; begin < count; begin += kCheckedMax) {
    const std::size_t end = std::min<std::size_t>(begin + kCheckedMax, count);
    std::uint32_t wrong_count = 0;
    for (std::size_t i = begin; i < end; ++i) {
      if (i + ahead < count) prefetch_for_write(table + hints[i + ahead]);
      slots[i] = hints[i];
      const KeyId held = table[slots[i]].id;
      wrong[wrong_count] = static_cast<std::uint32_t>(i);
      wrong_count += ((held.low ^ ids[i].low) | (held.high ^ ids[i].high)) != 0 ? 1 : 0;
    }
    for (std::uint32_t w = 0; w < wrong_count; ++w) {
      const std::uint32_t i = wrong[w];
      if (slots[i] != absent_slot()) slots[i] = find(ids[i]);
      has_all &= slots[i] != absent_slot();
    }
  }
  return has_all;
}

bool RecordTable::find_all(std::span<const KeyId> ids, std::uint32_t* slots) const {
  bool has_all = true;
  for (std::size_t i = 0; i < ids.size(); i += kCheckedMax) {
    const std::span<const KeyId> some = ids.subspan(i, std::min<std::size_t>(kCheckedMax, ids.size() - i));
    hint_all(some, slots + i);
    has_all &= check_hints(some, slots + i, slots + i);
  }
  return has_all;
}

}  // namespace kilokv::engine
