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
                      BatchResults* results) {
  slots_ = store->table().ref().slots;
  slot_of_key_ = resolver.slot_of_key();
  value_word_ = resolver.value_word();
  columns_ = &columns;
  store_ = store;
  results_ = results;
  op_kind_ = columns.op_kind.data();
  op_key_ = columns.op_key.data();
  operations_ = static_cast<std::uint32_t>(columns.op_kind.size());
  // An assignment of {} would keep the memory of a large batch.
  if (log_.size() > std::max<std::size_t>(kLogKeptMax, operations_)) log_ = std::vector<SlotImage>();
  if (replaced_.capacity() > kLogKeptMax) replaced_ = std::vector<OrderedIndex::Newest>();
  if (log_.size() < operations_) log_.resize(operations_);
  log_size_ = 0;
  summarized_ = !columns.range_limit.empty();
  if (summarized_) store->catch_up();
  replaced_.clear();
  ranges_run_.clear();
}

void HostAccess::undo() {
  for (; log_size_ > undo_begin_; --log_size_) {
    const SlotImage& image = log_[log_size_ - 1];
    Cell& cell = slots_[image.slot].cell;
    if (summarized_) {
      store_->forget_summarized(image.slot, image.before, cell, replaced_.back());
      replaced_.pop_back();
    }
    cell = image.before;
  }
  if (ranges_run_.empty()) return;
  const std::uint32_t pairs = results_->range_begin[ranges_run_.front()];
  for (const std::uint32_t range : ranges_run_) results_->range_begin[range] = results_->range_end[range] = 0;
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

void HostAccess::add_pair(std::string_view key, Cell cell, Version own) {
  results_->pair_key_bytes.insert(results_->pair_key_bytes.end(), key.begin(), key.end());
  results_->pair_key_end.push_back(static_cast<std::uint32_t>(results_->pair_key_bytes.size()));
  results_->pair_cell.push_back(cell);
  results_->pair_flags.push_back(version_of(cell.tag) == own ? BatchResults::kOwnWrite : 0);
}

void HostAccess::range_get(std::uint32_t range, Version own) {
  open_range(range);
  std::uint32_t left = columns_->range_limit[range];
  store_->scan_live(columns_->range_from(range), columns_->range_to(range),
                    [&](std::uint32_t slot, std::string_view key) {
                      const Cell cell = slots_[slot].cell;
                      if (type_of(cell.tag) == ValueType::absent) return true;
                      add_pair(key, cell, own);
                      return --left > 0;
                    });
  results_->range_end[range] = static_cast<std::uint32_t>(results_->pair_cell.size());
}

bool HostAccess::delete_range(std::uint32_t range, Version own) {
  open_range(range);
  std::uint32_t left = columns_->range_limit[range];
  store_->scan_live(columns_->range_from(range), columns_->range_to(range),
                    [&](std::uint32_t slot, std::string_view key) {
                      const Cell cell = slots_[slot].cell;
                      if (type_of(cell.tag) == ValueType::absent) return true;
                      add_pair(key, cell, own);
                      // The deletes so far may have used up the room of later operations. Each of these writes once.
                      if (log_.size() - log_size_ <= operations_) log_.resize(2 * log_.size());
                      write_slot(slot, Cell{0, make_tag(own, ValueType::absent)});
                      return --left > 0;
                    });
  results_->range_end[range] = static_cast<std::uint32_t>(results_->pair_cell.size());
  return results_->range_end[range] != results_->range_begin[range];
}

}  // namespace kilokv::engine
