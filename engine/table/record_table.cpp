#include "engine/table/record_table.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint64_t kCapacityMin = 64;
constexpr std::uint64_t kCapacityMax = std::numeric_limits<std::uint32_t>::max() - 1;

}  // namespace

RecordTable::RecordTable(std::size_t expected_records) {
  const std::uint64_t wanted = std::uint64_t{expected_records} * 5 / 4 + 1;
  KILOKV_CHECK(wanted <= kCapacityMax);
  allocate(static_cast<std::uint32_t>(std::max(wanted, kCapacityMin)));
}

void RecordTable::allocate(std::uint32_t capacity) {
  capacity_ = capacity;
  size_max_ = std::size_t{capacity} * 4 / 5;
  slots_ = ZeroedArray<Slot>(std::size_t{capacity} + 1);
  key_refs_ = ZeroedArray<std::uint32_t>(capacity);
  dirty_ = ZeroedArray<std::uint64_t>(std::size_t{capacity} / 64 + 1);
}

void RecordTable::grow() {
  const std::uint32_t old_capacity = capacity_;
  const ZeroedArray<Slot> old_slots = std::move(slots_);
  const ZeroedArray<std::uint32_t> old_refs = std::move(key_refs_);
  const ZeroedArray<std::uint64_t> old_dirty = std::move(dirty_);
  const std::uint64_t wanted = std::uint64_t{old_capacity} * 5 / 4 + 1;
  KILOKV_CHECK(wanted <= kCapacityMax);
  allocate(static_cast<std::uint32_t>(wanted));
  for (std::uint32_t i = 0; i < old_capacity; ++i) {
    if (old_slots[i].id == KeyId{}) continue;
    const std::uint32_t slot = place(old_slots[i].id, old_refs[i]);
    slots_[slot].cell = old_slots[i].cell;
    if ((old_dirty[i / 64] >> (i % 64) & 1) != 0) set_dirty(slot, true);
  }
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
    if (distance(home, i) < distance(gap, i)) continue;  // its run begins behind the gap
    slots_[gap] = slots_[i];
    key_refs_[gap] = key_refs_[i];
    set_dirty(gap, dirty(i));
    gap = i;
  }
  slots_[gap] = Slot{};
  key_refs_[gap] = 0;
  set_dirty(gap, false);
  --size_;
}

std::uint32_t RecordTable::find_dirty(std::uint64_t id_high) const {
  for (std::uint32_t i = TableRef{nullptr, capacity_}.home(id_high); occupied(i); i = next(i)) {
    if (slots_[i].id.high == id_high && dirty(i)) return i;
  }
  return absent_slot();
}

void RecordTable::set_dirty(std::uint32_t slot, bool dirty) {
  const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
  dirty_[slot / 64] = dirty ? dirty_[slot / 64] | bit : dirty_[slot / 64] & ~bit;
}

}  // namespace kilokv::engine
