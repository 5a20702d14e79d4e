#include "engine/exec/run/host_access.hpp"

#include <algorithm>

namespace kilokv::engine {

bool range_unchanged(const RecordStore& store, const TransactionColumns& columns, std::uint32_t range, Version since) {
  bool unchanged = true;
  const auto look = [&](std::uint32_t slot, std::string_view) {
    unchanged = version_of(store.table()[slot].cell.tag) <= since;
    return unchanged;
  };
  store.scan_newer(columns.range_from(range), columns.range_to(range), since, look);
  return unchanged;
}

void HostAccess::open(const TransactionColumns& columns, const BatchResolver& resolver, RecordStore* store,
                      BatchResults* results, Cell* before) {
  slot_of_key_ = resolver.slot_of_key();
  value_word_ = resolver.value_word();
  columns_ = &columns;
  store_ = store;
  results_ = results;
  before_ = before;
  // An assignment of {} would keep the memory of a large batch.
  if (slot_of_pair_.capacity() * sizeof(slot_of_pair_[0]) > kKeptMax) slot_of_pair_ = std::vector<std::uint32_t>();
  if (replaced_.capacity() * sizeof(replaced_[0]) > kKeptMax) replaced_ = std::vector<OrderedIndex::Newest>();
  slot_of_pair_.clear();
  summarized_ = !columns.range_limit.empty();
  if (summarized_) store->catch_up();
  replaced_.clear();
  ranges_run_.clear();
}

void HostAccess::restore(std::uint32_t slot, Cell before) {
  Cell& cell = slots_[slot].cell;
  if (summarized_) {
    store_->forget_summarized(slot, before, cell, replaced_.back());
    replaced_.pop_back();
  }
  cell = before;
}

// Goes backwards, so that a record that was written twice gets its oldest cell back. The operation that runs has
// written nothing.
void HostAccess::undo(std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t i = end; i-- > first;) {
    if ((results_->op_flags[i] & BatchResults::kWrote) == 0) continue;
    if (columns_->op_kind[i] != static_cast<std::uint8_t>(OpKind::delete_range)) {
      restore(slot_of_key_[columns_->op_key[i]], before_[i]);
      continue;
    }
    const std::uint32_t range = columns_->op_key[i];
    for (std::uint32_t pair = results_->range_end[range]; pair-- > results_->range_begin[range];) {
      restore(slot_of_pair_[pair], results_->pair_cell[pair]);
    }
  }
  if (ranges_run_.empty()) return;
  const std::uint32_t pairs = results_->range_begin[ranges_run_.front()];
  for (const std::uint32_t range : ranges_run_) results_->range_begin[range] = results_->range_end[range] = 0;
  slot_of_pair_.resize(pairs);
  results_->pair_cell.resize(pairs);
  results_->pair_flags.resize(pairs);
  results_->pair_key_end.resize(pairs);
  results_->pair_key_bytes.resize(pairs == 0 ? 0 : results_->pair_key_end.back());
}

void HostAccess::summarize(std::uint32_t slot, Cell cell) {
  replaced_.push_back(store_->summarize(slot, slots_[slot].cell, cell));
}

void HostAccess::open_range(std::uint32_t range) {
  ranges_run_.push_back(range);
  results_->range_begin[range] = results_->range_end[range] = static_cast<std::uint32_t>(results_->pair_cell.size());
}

void HostAccess::add_pair(std::uint32_t slot, std::string_view key, Version own) {
  const Cell cell = slots_[slot].cell;
  slot_of_pair_.push_back(slot);
  results_->pair_key_bytes.insert(results_->pair_key_bytes.end(), key.begin(), key.end());
  results_->pair_key_end.push_back(static_cast<std::uint32_t>(results_->pair_key_bytes.size()));
  results_->pair_cell.push_back(cell);
  results_->pair_flags.push_back(version_of(cell.tag) == own ? BatchResults::kOwnWrite : 0);
}

void HostAccess::range_get(std::uint32_t range, Version own, bool reverse) {
  open_range(range);
  std::uint32_t left = columns_->range_limit[range];
  const auto add = [&](std::uint32_t slot, std::string_view key) {
    if (type_of(slots_[slot].cell.tag) == ValueType::absent) return true;
    add_pair(slot, key, own);
    return --left > 0;
  };
  const std::string_view from = columns_->range_from(range), to = columns_->range_to(range);
  reverse ? store_->scan_live_reverse(from, to, add) : store_->scan_live(from, to, add);
  results_->range_end[range] = static_cast<std::uint32_t>(results_->pair_cell.size());
}

bool HostAccess::delete_range(std::uint32_t range, Version own) {
  open_range(range);
  std::uint32_t left = columns_->range_limit[range];
  store_->scan_live(columns_->range_from(range), columns_->range_to(range),
                    [&](std::uint32_t slot, std::string_view key) {
                      if (type_of(slots_[slot].cell.tag) == ValueType::absent) return true;
                      add_pair(slot, key, own);
                      const Cell deleted{0, make_tag(own, ValueType::absent)};
                      summarize(slot, deleted);  // a batch with this operation has ranges
                      slots_[slot].cell = deleted;
                      return --left > 0;
                    });
  results_->range_end[range] = static_cast<std::uint32_t>(results_->pair_cell.size());
  return results_->range_end[range] != results_->range_begin[range];
}

}  // namespace kilokv::engine
