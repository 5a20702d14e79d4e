#include "engine/exec/resolve/resolver.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "engine/base/check.hpp"
#include "engine/table/cell_digest.hpp"
#include "engine/txn/kinds.hpp"

namespace kilokv::engine {

namespace {

// All keys that the transactions [first, last) name are before this one.
std::uint32_t end_of_keys(const TransactionColumns& columns, std::uint32_t first, std::uint32_t last) {
  std::uint32_t end = 0;
  const std::uint32_t op_begin = columns.then_begin(first), op_end = columns.else_end[last - 1];
  for (std::uint32_t i = op_begin; i < op_end; ++i) end = std::max(end, columns.op_key[i] + 1);
  for (std::uint32_t g = columns.guard_begin(first); g < columns.guard_end[last - 1]; ++g) {
    end = std::max({end, columns.guard_key[g] + 1, columns.guard_other[g] + 1});  // kNone + 1 is 0
  }
  return end;
}

}  // namespace

bool BatchResolver::insert_missing(const TransactionColumns& columns, RecordStore* store) {
  const std::uint32_t absent = RecordTable::absent_slot();
  new_keys_.clear();
  for (std::size_t i = 0; i < columns.op_kind.size(); ++i) {
    const std::uint32_t key = columns.op_key[i];
    if (!creates_record(static_cast<OpKind>(columns.op_kind[i])) || slot_of_key_[key] != absent) continue;
    new_keys_.add(columns.key_id[key], columns.key(key));
    created_.push_back(key);
  }
  new_keys_.sort();
  // In a batch with ranges, each write is reported to the index, and a range must not look at unwritten records.
  if (store->insert(new_keys_.keys(), columns.range_limit.empty())) return true;
  created_.clear();
  return false;
}

// Finds the slots of new keys, and of keys that inserts moved.
void BatchResolver::find_moved(const TransactionColumns& columns, std::uint32_t absent, const RecordStore& store) {
  const std::span<const std::uint32_t> slots = store.new_slots();
  if (slots.empty()) {
    store.table().find_all(columns.key_id, slot_of_key_.data());
    return;
  }
  for (std::size_t i = 0; i < created_.size(); ++i) slot_of_key_[created_[i]] = slots[new_keys_.positions()[i]];
  for (std::size_t k = 0; k < slot_of_key_.size(); ++k) {
    // A guard or a read may name a new key with a key column of its own.
    if (slot_of_key_[k] == absent) slot_of_key_[k] = store.table().find(columns.key_id[k]);
  }
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
    if (columns.guard_key[g] != kNone) find(columns.guard_key[g]);
    if (columns.guard_other[g] != kNone) find(columns.guard_other[g]);
  }
  for (std::size_t i = 0; i < columns.op_kind.size(); ++i) {
    if (!uses_range(static_cast<OpKind>(columns.op_kind[i]))) find(columns.op_key[i]);
  }
  return has_all;
}

// A slot is in the cache just after it was found. A key without a record has an empty cell, and so has the record that
// it may get.
bool BatchResolver::find_all_digested(const TransactionColumns& columns, const RecordTable& table,
                                      std::uint64_t* digest) {
  constexpr std::size_t kTile = 128;  // keys
  const std::span<const KeyId> ids(columns.key_id);
  bool has_all = true;
  std::uint64_t sum = 0;
  for (std::size_t first = 0, last = 0; first < ids.size(); first = last) {
    last = first + std::min(kTile, ids.size() - first);
    has_all &= table.find_all(ids.subspan(first, last - first), slot_of_key_.data() + first);
    for (std::size_t k = first; k < last; ++k) sum += cell_digest(k, table[slot_of_key_[k]].cell);
  }
  *digest = sum;
  return has_all;
}

Status BatchResolver::create_missing(const TransactionColumns& columns, RecordStore* store, std::uint32_t read_set) {
  if (!insert_missing(columns, store)) {
    return Status::exhausted(
        ErrorReason::table_full,
        {"records", std::to_string(store->records_max()) + " records and 16 GiB of keys",
         std::to_string(store->table().size()) + " records before the new keys of a batch", "--table-records-max"},
        Status::kNoRetry);  // a delete leaves a tombstone, so nothing frees keys soon
  }
  if (read_set > 0) {
    find_all(columns, *store, read_set);
  } else if (!created_.empty()) {
    find_moved(columns, store->table().absent_slot(), *store);
  }
  return {};
}

Status BatchResolver::resolve(const TransactionColumns& columns, BatchNumber batch, RecordStore* store,
                              std::uint32_t read_set, std::uint64_t* digest) {
  open_shares(columns);
  misses_ =
      digest == nullptr ? !find_all(columns, *store, read_set) : !find_all_digested(columns, store->table(), digest);
  if (misses_) {
    if (Status created = create_missing(columns, store, read_set); !created.ok()) return created;
  }
  add_values(columns, batch, store);
  return {};
}

void BatchResolver::open_shares(const TransactionColumns& columns) {
  created_.clear();
  slot_of_key_.resize(columns.key_id.size());
  misses_ = false;
}

void BatchResolver::find_share(const TransactionColumns& columns, const RecordStore& store, std::uint32_t share,
                               std::uint32_t shares) {
  const std::span<const KeyId> ids(columns.key_id);
  const std::size_t first = ids.size() * share / shares, last = ids.size() * (share + 1) / shares;
  if (!store.table().find_all(ids.subspan(first, last - first), slot_of_key_.data() + first)) misses_ = true;
}

Status BatchResolver::finish_shares(const TransactionColumns& columns, BatchNumber batch, RecordStore* store) {
  if (misses_) {
    if (Status created = create_missing(columns, store, 0); !created.ok()) return created;
  }
  add_values(columns, batch, store);
  return {};
}

void BatchResolver::open(const TransactionColumns& columns, BatchNumber batch, RecordStore* store) {
  created_.clear();
  slot_of_key_.resize(columns.key_id.size());
  found_ = 0;
  hints_.close();
  add_values(columns, batch, store);
}

// Transactions mostly name keys in the order of the key columns. Keys are found by tiles of HintFinder.
void BatchResolver::find_for(const TransactionColumns& columns, std::uint32_t first, std::uint32_t last,
                             RecordStore* store) {
  constexpr std::uint32_t kTile = HintFinder::kTileKeys;
  const std::uint32_t wanted = end_of_keys(columns, first, last);
  if (wanted <= found_) return;
  const std::span<const KeyId> ids(columns.key_id);
  const RecordTable& table = store->table();
  const auto size = static_cast<std::uint32_t>(ids.size());
  hints_.pass((wanted + kTile - 1) / kTile);
  bool has_all = true;
  while (found_ < wanted) {
    const std::uint32_t* const hints = hints_.ready(found_ / kTile);
    const std::uint32_t count = std::min(kTile, size - found_);
    const std::span<const KeyId> tile = ids.subspan(found_, count);
    std::uint32_t* const slots = slot_of_key_.data() + found_;
    has_all &= hints != nullptr ? table.check_hints(tile, hints, slots) : table.find_all(tile, slots);
    found_ += count;
  }
  if (has_all) return;
  hints_.stop();
  table.find_all(ids.subspan(found_), slot_of_key_.data() + found_);
  found_ = size;
  KILOKV_CHECK(insert_missing(columns, store));
  if (!created_.empty()) find_moved(columns, RecordTable::absent_slot(), *store);
}

bool BatchResolver::has_unwritten(const RecordStore& store) const {
  return std::any_of(created_.begin(), created_.end(), [&](std::uint32_t key) { return is_unwritten(key, store); });
}

void BatchResolver::forget_unwritten(RecordStore* store) {
  unwritten_.clear();  // by id, because each removal moves slots
  for (const std::uint32_t key : created_) {
    if (is_unwritten(key, *store)) unwritten_.push_back(store->table()[slot_of_key_[key]].id);
  }
  for (const KeyId id : unwritten_) {
    const std::uint32_t slot = store->table().find(id);
    if (slot != store->table().absent_slot()) store->remove(slot);
  }
  created_.clear();
}

}  // namespace kilokv::engine
