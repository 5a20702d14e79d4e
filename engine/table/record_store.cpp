#include "engine/table/record_store.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace kilokv::engine {

// Every blob has to go by itself.
RecordStore::~RecordStore() {
  blobs_.release_through(std::numeric_limits<BatchNumber>::max());
  for (std::uint32_t slot = 0; slot < table_.end_slot(); ++slot) {
    if (type_of(table_[slot].cell.tag) == ValueType::bytes) blobs_.release(table_[slot].cell.word);
  }
}

// The index comes before the table, so that each new record gets its chunk while its slot is near.
bool RecordStore::insert(std::span<const NewKey> keys, bool listed) {
  constexpr std::size_t kAhead = 16;
  if (keys.size() > records_max_ - table_.size() || !add_keys(keys)) return false;
  new_chunks_.resize(keys.size());
  moved_.clear();
  index_.insert(new_refs_, listed, new_chunks_.data(), &moved_);
  take_over(moved_);
  const std::uint32_t capacity = table_.capacity();
  const bool was_growing = table_.growing();
  new_slots_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) table_.prefetch_slot(table_.ref().home(keys[i + kAhead].id.high));
    new_slots_[i] = table_.insert(keys[i].id, new_refs_[i]);
    table_.set_chunk(new_slots_[i], new_chunks_[i]);
  }
  if (was_growing || table_.growing() || table_.capacity() != capacity) new_slots_.clear();  // slots may have moved
  return true;
}

Version RecordStore::newest_of(std::uint32_t chunk) const {
  Version newest = 0;
  for (const std::uint32_t ref : index_.keys(chunk)) {
    newest = std::max(newest, version_of(table_[find(keys_.view(ref))].cell.tag));
  }
  return newest;
}

// Puts the bytes of all these keys into the arena, or of none.
bool RecordStore::add_keys(std::span<const NewKey> keys) {
  new_refs_.clear();
  for (const NewKey& key : keys) {
    const std::optional<std::uint32_t> ref = keys_.add(key.key);
    if (!ref) {
      for (const std::uint32_t added : new_refs_) keys_.remove(added);
      return false;
    }
    new_refs_.push_back(*ref);
  }
  return true;
}

// Notes for keys that a split moved that they are in another chunk now, and tells the index their versions.
void RecordStore::take_over(std::span<const KeyPlace> moved) {
  constexpr std::size_t kAhead = 16;
  moved_ids_.resize(moved.size());
  moved_slots_.resize(moved.size());
  for (std::size_t i = 0; i < moved.size(); ++i) {
    if (i + kAhead < moved.size()) keys_.prefetch(moved[i + kAhead].key_ref);
    moved_ids_[i] = hash_key(keys_.view(moved[i].key_ref), secret_);
  }
  table_.find_all(moved_ids_, moved_slots_.data());
  for (std::size_t i = 0; i < moved.size(); ++i) {
    table_.set_chunk(moved_slots_[i], moved[i].chunk);
    index_.raise(moved[i].chunk, version_of(table_[moved_slots_[i]].cell.tag));
  }
}

void RecordStore::remove(std::uint32_t slot) {
  const std::uint32_t ref = table_.key_ref(slot);
  count(table_[slot].cell, static_cast<std::size_t>(-1));
  hash_ -= digest(table_[slot].id, table_[slot].cell);
  table_.erase(slot);
  index_.erase(ref);
  keys_.remove(ref);
}

void RecordStore::count(Cell cell, std::size_t one) {
  if (type_of(cell.tag) != ValueType::absent) {
    live_ += one;
  } else if (cell.tag != 0) {
    tombstones_ += one;
  }
}

// A tombstone that the batch itself has replaced is not queued.
void RecordStore::settle_rare(std::uint32_t slot, Cell before, Cell after, BatchNumber batch, bool summarized) {
  if (!summarized && is_listed(before) != is_listed(after)) set_listed(slot, is_listed(after));
  count(before, static_cast<std::size_t>(-1));
  count(after, 1);
  if (!is_live(after) && after.tag != before.tag && table_[slot].cell.tag == after.tag) {
    new_tombstones_.push_back({version_of(after.tag), table_[slot].id});
  }
  if (type_of(after.tag) == ValueType::bytes) blobs_.retain(after.word);
  if (type_of(before.tag) == ValueType::bytes) blobs_.release_after(batch, before.word);
}

void RecordStore::note(KeyId id, Version before_version) {
  if (before_version <= dirty_.sealed()) dirty_.note(id);
  if (!knows_changed_ || before_version > behind_.sealed()) return;
  if (behind_.size() < behind_max_) return behind_.note(id);
  knows_changed_ = false;
  walk_left_ = 0;
  behind_.clear(newest_);
  choose_noted();
}

void RecordStore::choose_noted() const {
  noted_below_ = std::max(dirty_.sealed(), knows_changed_ ? behind_.sealed() : 0) + 1;
}

void RecordStore::end_batch(Version newest, bool summarized) {
  newest_ = std::max(newest_, newest);
  if (!new_tombstones_.empty()) queue_tombstones();
  if (!summarized || !caught_up_) return;
  behind_.clear(newest_);
  choose_noted();
}

void RecordStore::settle(std::uint32_t slot, Cell before) {
  const KeyId id = table_[slot].id;
  const Cell after = table_[slot].cell;
  hash_ += change(id, before, after);
  if (!is_usual(before, after)) settle_rare(slot, before, after, 0, false);
  if (version_of(before.tag) < noted_below_) note(id, version_of(before.tag));
  end_batch(version_of(after.tag), false);
}

void RecordStore::catch_up() const {
  if (!knows_changed_) {
    knows_changed_ = true;
    behind_.clear(newest_);
    walk_left_ = index_.chunk_numbers();
  }
  const std::size_t changed = behind_.size();
  for (std::size_t left = changed <= caught_up_max_ ? changed : changed / 2; left > 0; --left) {
    table_.for_each_of(behind_.take(newest_), [this](std::uint32_t slot) {
      index_.raise(table_.chunk(slot), version_of(table_[slot].cell.tag));
    });
  }
  for (std::size_t looked = 0; walk_left_ > 0 && looked < caught_up_max_; --walk_left_) {
    const std::uint32_t chunk = walk_left_ - 1;
    index_.raise(chunk, newest_of(chunk));
    looked += index_.keys(chunk).size();
  }
  choose_noted();
  caught_up_ = !is_behind();
}

// Sorts by version, because a record that was written twice has its place in `images` from its first write.
void RecordStore::queue_tombstones() {
  const auto older = [](const Tombstone& a, const Tombstone& b) { return a.version < b.version; };
  if (!std::is_sorted(new_tombstones_.begin(), new_tombstones_.end(), older)) {
    std::sort(new_tombstones_.begin(), new_tombstones_.end(), older);
  }
  const TombstoneQueue::IsStale is_stale = [this](const Tombstone& t) {
    return !is_tombstone(table_.find(t.id), t.version);
  };
  for (const Tombstone& tombstone : new_tombstones_) tombstone_queue_.add(tombstone, is_stale);
  new_tombstones_.clear();
}

Version RecordStore::drop_tombstones(Version floor, std::size_t looked_max,
                                     const std::function<void(std::string_view)>& dropped) {
  Version last = 0;
  for (std::size_t looked = 0;; ++looked) {
    const Tombstone* const front = tombstone_queue_.front();
    if (front == nullptr || front->version > floor) return floor;
    if (looked >= looked_max && front->version > last) return front->version - 1;
    last = front->version;
    const std::uint32_t slot = table_.find(front->id);
    tombstone_queue_.pop();
    if (!is_tombstone(slot, last)) continue;
    if (dropped) dropped(key(slot));
    remove(slot);
  }
}

Hash128 RecordStore::compute_hash() const {
  Wide sum = 0;
  for (std::uint32_t slot = 0; slot < table_.end_slot(); ++slot) {
    sum += digest(table_[slot].id, table_[slot].cell);
  }
  return from_wide(sum + expiries_.compute_hash());
}

// The lists count as if all records had changed. So a record that changes needs no more memory than was counted for it.
StoreMemory RecordStore::memory() const {
  const std::size_t records = table_.size();
  const std::size_t lists = std::max(dirty_.size(), records) + std::max(behind_.size(), std::min(records, behind_max_));
  return {.table = table_.memory_bytes(),
          .keys = keys_.memory_bytes(),
          .index = index_.memory_bytes_of(records) + expiries_.memory_bytes() +
                   tombstone_queue_.size() * sizeof(Tombstone) + lists * ChangeList::kEntryBytes,
          .values = blobs_.memory_bytes(),
          .key_room = keys_.room()};
}

std::size_t RecordStore::memory_bytes() const {
  return table_.memory_bytes() + keys_.memory_bytes() + index_.memory_bytes() + blobs_.memory_bytes() +
         expiries_.memory_bytes() + tombstone_queue_.memory_bytes() + dirty_.memory_bytes() + behind_.memory_bytes();
}

}  // namespace kilokv::engine
