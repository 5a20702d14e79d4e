#include "engine/exec/resolve/resolver.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "engine/txn/kinds.hpp"

namespace kilokv::engine {

bool BatchResolver::insert_missing(const TransactionColumns& columns, RecordStore* store) {
  const std::uint32_t absent = RecordTable::absent_slot();
  for (std::size_t i = 0; i < columns.op_kind.size(); ++i) {
    const std::uint32_t key = columns.op_key[i];
    if (!creates_record(static_cast<OpKind>(columns.op_kind[i])) || slot_of_key_[key] != absent) continue;
    const KeyId id = columns.key_id[key];
    if (store->table().find(id) != absent) continue;  // the batch names the key twice
    if (!store->insert(id, columns.key(key))) return false;
    inserted_.push_back(id);
  }
  return true;
}

void BatchResolver::add_values(const TransactionColumns& columns, BatchNumber batch, RecordStore* store) {
  value_word_.assign(columns.value_end.size(), 0);
  if (value_word_.empty()) return;
  for (std::size_t i = 0; i < columns.op_kind.size(); ++i) {
    if (columns.op_operand[i] != static_cast<std::uint8_t>(Operand::bytes)) continue;
    std::uint64_t& word = value_word_[static_cast<std::size_t>(columns.op_value[i])];
    if (word != 0) continue;
    word = store->blobs().add(columns.value(static_cast<std::size_t>(columns.op_value[i])));
    store->blobs().release_after(batch, word);
  }
}

bool BatchResolver::find_all(const TransactionColumns& columns, const RecordStore& store, std::uint32_t read_set) {
  const std::span<const KeyId> ids(columns.key_id);
  bool has_all = store.table().find_all(ids.subspan(read_set), slot_of_key_.data() + read_set);
  if (read_set == 0) return has_all;
  const auto find = [&](std::uint32_t key) {
    if (key >= read_set) return;
    resolve_key(columns, key, store);
    has_all = has_all && slot_of_key_[key] != RecordTable::absent_slot();
  };
  for (std::size_t g = read_set; g < columns.guard_kind.size(); ++g) {
    if (uses_range(static_cast<GuardKind>(columns.guard_kind[g]))) continue;
    find(columns.guard_key[g]);
    if (columns.guard_other[g] != kNone) find(columns.guard_other[g]);
  }
  for (std::size_t i = 0; i < columns.op_kind.size(); ++i) {
    if (!uses_range(static_cast<OpKind>(columns.op_kind[i]))) find(columns.op_key[i]);
  }
  return has_all;
}

Status BatchResolver::resolve(const TransactionColumns& columns, BatchNumber batch, RecordStore* store,
                              std::uint32_t read_set) {
  inserted_.clear();
  slot_of_key_.resize(columns.key_id.size());
  if (!find_all(columns, *store, read_set)) {
    if (!insert_missing(columns, store)) {
      const std::size_t records = store->table().size() - inserted_.size();
      forget_unwritten(store);
      return Status::exhausted(
          ErrorReason::table_full,
          {"records", std::to_string(store->records_max()) + " records and 16 GiB of keys",
           std::to_string(records) + " records before the new keys of a batch", "--table-records-max"},
          Status::kNoRetry);  // a delete leaves a tombstone, so nothing frees keys soon
    }
    if (!inserted_.empty()) find_all(columns, *store, read_set);
  }
  add_values(columns, batch, store);
  return {};
}

bool BatchResolver::has_unwritten(const RecordStore& store) const {
  return std::any_of(inserted_.begin(), inserted_.end(),
                     [&](KeyId id) { return store.table()[store.table().find(id)].cell.tag == 0; });
}

void BatchResolver::forget_unwritten(RecordStore* store) {
  for (const KeyId id : inserted_) {
    const std::uint32_t slot = store->table().find(id);
    if (store->table()[slot].cell.tag == 0) store->remove(slot);
  }
  inserted_.clear();
}

}  // namespace kilokv::engine
