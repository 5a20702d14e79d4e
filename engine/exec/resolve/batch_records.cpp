#include "engine/exec/resolve/batch_records.hpp"

#include <algorithm>
#include <bit>

#include "engine/base/prefetch.hpp"

namespace kilokv::engine {
namespace {

constexpr std::size_t kPrefetchAhead = 16;
constexpr std::size_t kEntriesMin = 64;

}  // namespace

std::uint32_t BatchRecords::number(std::uint32_t slot) {
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

void BatchRecords::gather(const TransactionColumns& columns, const BatchResolver& resolver, const RecordStore& store) {
  const std::size_t keys = columns.key_id.size();
  if (entries_.size() < 2 * keys || ++epoch_ == 0) {
    entries_.assign(std::bit_ceil(std::max(2 * keys, kEntriesMin)), Entry{0, 0});
    shift_ = 64 - static_cast<std::uint32_t>(std::countr_zero(entries_.size()));
    epoch_ = std::max(epoch_, std::uint32_t{1});  // the entries have epoch 0, so that they are free
  }
  record_of_key_.resize(keys);
  slots_.clear();
  slots_.reserve(keys);
  const std::uint32_t* const slot_of_key = resolver.slot_of_key();
  for (std::size_t k = 0; k < keys; ++k) record_of_key_[k] = number(slot_of_key[k]);

  const RecordTable& table = store.table();
  const std::uint32_t absent = table.absent_slot();
  absent_record_ = kNone;
  cells_.reserve(2 * keys);
  cells_.resize(2 * slots_.size());
  running_.reserve(keys);
  running_.resize(slots_.size());
  for (std::size_t d = 0; d < slots_.size(); ++d) {
    if (d + kPrefetchAhead < slots_.size()) prefetch_for_write(&table[slots_[d + kPrefetchAhead]]);
    const Cell cell = table[slots_[d]].cell;
    cells_[2 * d] = cell.word;
    cells_[2 * d + 1] = cell.tag;
    running_[d] = cell;
    if (slots_[d] == absent) absent_record_ = static_cast<std::uint32_t>(d);
  }
}

bool BatchRecords::replay(const TransactionColumns& columns, const RankOrder& order, BatchResults* results,
                          Cell* before) {
  order.for_each(*results, [&](std::uint32_t t) {
    const OperationRange ran = operations_run(columns, *results, t);
    for (std::uint32_t op = ran.begin; op < ran.end; ++op) {
      std::uint8_t& flags = results->op_flags[op];
      if ((flags & BatchResults::kWrote) == 0) continue;
      Cell& running = running_[record_of_key_[columns.op_key[op]]];
      Cell& cell = results->op_cell[op];
      before[op] = running;
      if ((flags & BatchResults::kDelta) != 0) {
        cell.word += running.word;
        flags = BatchResults::kWrote;
      }
      running = cell;
    }
  });
  bool equal = true;
  for (std::size_t d = 0; d < slots_.size(); ++d) {
    equal &= running_[d].word == cells_[2 * d] && running_[d].tag == cells_[2 * d + 1];
  }
  return equal;
}

void BatchRecords::scatter(RecordStore* store) const {
  Slot* const slots = store->table().ref().slots;
  for (std::size_t d = 0; d < slots_.size(); ++d) {
    if (d + kPrefetchAhead < slots_.size()) prefetch_for_write(slots + slots_[d + kPrefetchAhead]);
    Cell& cell = slots[slots_[d]].cell;
    const Cell left{cells_[2 * d], cells_[2 * d + 1]};
    if (cell.tag != left.tag) cell = left;  // each write gives a new version
  }
}

std::size_t BatchRecords::memory_bytes() const {
  return entries_.capacity() * sizeof(Entry) + record_of_key_.capacity() * sizeof(std::uint32_t) +
         slots_.capacity() * sizeof(std::uint32_t) + cells_.capacity() * sizeof(std::uint64_t) +
         running_.capacity() * sizeof(Cell);
}

}  // namespace kilokv::engine
