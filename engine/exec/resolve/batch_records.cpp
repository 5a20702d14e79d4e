#include "engine/exec/resolve/batch_records.hpp"

#include <algorithm>
#include <bit>

#include "engine/base/prefetch.hpp"

namespace kilokv::engine {
namespace {

constexpr std::size_t kPrefetchAhead = 16;
constexpr std::size_t kEntriesMin = 64;

}  // namespace

std::uint32_t BatchRecords::number_of(std::uint32_t slot) {
  const std::uint64_t hash = (slot + std::uint64_t{1}) * 0x9E3779B97F4A7C15u;  // Fibonacci hashing
  for (std::size_t i = hash >> shift_;; i = (i + 1) & (entries_.size() - 1)) {
    Entry& entry = entries_[i];
    if (entry.epoch != epoch_) {
      entry = {epoch_, static_cast<std::uint32_t>(slots_.size())};
      slots_.push_back(slot);
      return entry.record;
    }
    if (slots_[entry.record] == slot) return entry.record;
  }
}

void BatchRecords::number(const TransactionColumns& columns, const BatchResolver& resolver) {
  const std::size_t keys = columns.key_id.size();
  if (entries_.size() < 2 * keys || ++epoch_ == 0) {
    entries_.assign(std::bit_ceil(std::max(2 * keys, kEntriesMin)), Entry{0, 0});
    shift_ = 64 - static_cast<std::uint32_t>(std::countr_zero(entries_.size()));
    epoch_ = std::max(epoch_, std::uint32_t{1});  // the entries have epoch 0, so that they are free
  }
  record_of_key_.resize(keys);
  slots_.clear();
  slots_.reserve(keys);
  absent_record_ = kNone;
  const std::uint32_t* const slot_of_key = resolver.slot_of_key();
  for (std::size_t k = 0; k < keys; ++k) {
    record_of_key_[k] = number_of(slot_of_key[k]);
    if (slot_of_key[k] == RecordTable::absent_slot()) absent_record_ = record_of_key_[k];
  }
  size_ = slots_.size();
  are_numbered_ = true;
}

void BatchRecords::gather(const TransactionColumns& columns, const BatchResolver& resolver, const RecordStore& store) {
  number(columns, resolver);
  const RecordTable& table = store.table();
  cells_.reserve(2 * columns.key_id.size());
  cells_.resize(2 * slots_.size());
  for (std::size_t d = 0; d < slots_.size(); ++d) {
    if (d + kPrefetchAhead < slots_.size()) prefetch_for_write(&table[slots_[d + kPrefetchAhead]]);
    const Cell cell = table[slots_[d]].cell;
    cells_[2 * d] = cell.word;
    cells_[2 * d + 1] = cell.tag;
  }
}

void BatchRecords::leave(const TransactionColumns& columns) {
  size_ = columns.key_id.size();
  are_numbered_ = false;
  absent_record_ = kNone;
}

bool BatchRecords::are_in(const RecordTable& table) const {
  bool equal = true;
  for (std::size_t d = 0; d < slots_.size(); ++d) {
    if (d + kPrefetchAhead < slots_.size()) prefetch_for_read(&table[slots_[d + kPrefetchAhead]]);
    equal &= table[slots_[d]].cell == Cell{cells_[2 * d], cells_[2 * d + 1]};
  }
  return equal;
}

std::size_t BatchRecords::memory_bytes() const {
  return entries_.capacity() * sizeof(Entry) + record_of_key_.capacity() * sizeof(std::uint32_t) +
         slots_.capacity() * sizeof(std::uint32_t) + cells_.capacity() * sizeof(std::uint64_t);
}

}  // namespace kilokv::engine
