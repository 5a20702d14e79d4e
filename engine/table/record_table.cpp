#include "engine/table/record_table.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint64_t kCapacityMin = 64;
constexpr std::uint64_t kCapacityMax = std::numeric_limits<std::uint32_t>::max() - 1;

// How many ids are looked up side by side. The cache lines of their slots fit into the caches together.
constexpr std::uint32_t kChunkIds = 512;
constexpr std::uint32_t kHomesAhead = 32;
// A round for fewer ids than this costs more than it saves.
constexpr std::uint32_t kRoundIdsMin = 4;

}  // namespace

RecordTable::RecordTable(std::size_t expected_records) {
  const std::uint64_t wanted = std::uint64_t{expected_records} * 5 / 4 + 1;
  KILOKV_CHECK(wanted <= kCapacityMax);
  allocate(static_cast<std::uint32_t>(std::max(wanted, kCapacityMin)));
}

void RecordTable::allocate(std::uint32_t capacity) {
  capacity_ = capacity;
  size_max_ = records_of(capacity);
  slots_ = ZeroedArray<Slot>(std::size_t{capacity} + 1);
  key_refs_ = ZeroedArray<std::uint32_t>(capacity);
  chunks_ = ZeroedArray<std::uint32_t>(capacity);
}

void RecordTable::grow() {
  const std::uint32_t old_capacity = capacity_;
  const ZeroedArray<Slot> old_slots = std::move(slots_);
  const ZeroedArray<std::uint32_t> old_refs = std::move(key_refs_);
  const ZeroedArray<std::uint32_t> old_chunks = std::move(chunks_);
  const std::uint64_t wanted = next_capacity(old_capacity);
  KILOKV_CHECK(wanted <= kCapacityMax);
  allocate(static_cast<std::uint32_t>(wanted));
  for (std::uint32_t i = 0; i < old_capacity; ++i) {
    if (old_slots[i].id == KeyId{}) continue;
    const std::uint32_t slot = place(old_slots[i].id, old_refs[i]);
    slots_[slot].cell = old_slots[i].cell;
    chunks_[slot] = old_chunks[i];
  }
}

std::size_t RecordTable::memory_of(std::size_t capacity) {
  return (capacity + 1) * sizeof(Slot) + 2 * capacity * sizeof(std::uint32_t);
}

std::size_t RecordTable::memory_until(std::size_t capacity, std::size_t records) {
  std::size_t most = memory_of(capacity);
  while (records > records_of(capacity)) {
    const std::size_t old = memory_of(capacity);
    capacity = next_capacity(capacity);
    most = old + memory_of(capacity);
  }
  return most;
}

std::uint32_t RecordTable::place(KeyId id, std::uint32_t key_ref) {
  std::uint32_t i = ref().home(id.high);
  while (occupied(i)) i = next(i);
  slots_[i].id = id;
  key_refs_[i] = key_ref;
  return i;
}

std::uint32_t RecordTable::insert(KeyId id, std::uint32_t key_ref) {
  if (size_ == size_max_) grow();
  ++size_;
  return place(id, key_ref);
}

void RecordTable::erase(std::uint32_t slot) {
  const auto distance = [this](std::uint32_t from, std::uint32_t to) {
    return to >= from ? to - from : to + (capacity_ - from);
  };
  std::uint32_t gap = slot;
  for (std::uint32_t i = next(gap); occupied(i); i = next(i)) {
    const std::uint32_t home = ref().home(slots_[i].id.high);
    if (distance(home, i) < distance(gap, i)) continue;  // its run begins after the gap
    slots_[gap] = slots_[i];
    key_refs_[gap] = key_refs_[i];
    chunks_[gap] = chunks_[i];
    gap = i;
  }
  slots_[gap] = Slot{};
  key_refs_[gap] = 0;
  chunks_[gap] = 0;
  --size_;
}

bool RecordTable::find_all(std::span<const KeyId> ids, std::uint32_t* slots) const {
  bool has_all = true;
  for (std::size_t i = 0; i < ids.size(); i += kChunkIds) {
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(kChunkIds, ids.size() - i));
    has_all &= find_chunk(ids.data() + i, count, slots + i);
  }
  return has_all;
}

bool RecordTable::find_chunk(const KeyId* ids, std::uint32_t count, std::uint32_t* slots) const {
  std::array<std::uint32_t, kChunkIds> open;  // those that are not decided yet
  const Slot* const table = slots_.data();
  const std::uint32_t capacity = capacity_;
  const TableRef home_of{nullptr, capacity};
  const auto ask_for_home = [&](std::uint32_t i) {
    slots[i] = home_of.home(ids[i].high);
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
    const std::uint32_t next = slot + static_cast<std::uint32_t>(goes_on);
    slots[i] = next == capacity ? 0 : next;
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
  const TableRef whole = const_cast<RecordTable*>(this)->ref();
  bool has_all = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const KeyId held = table[slots[i]].id;
    if (held.low == ids[i].low && held.high == ids[i].high) [[likely]]
      continue;
    slots[i] = whole.find_from(slots[i], ids[i]);
    has_all &= slots[i] != capacity;
  }
  return has_all;
}

}  // namespace kilokv::engine
