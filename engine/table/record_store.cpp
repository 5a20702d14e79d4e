#include "engine/table/record_store.hpp"

#include <algorithm>
#include <limits>

namespace kilokv::engine {

// Every blob has to go by itself.
RecordStore::~RecordStore() {
  blobs_.release_through(std::numeric_limits<BatchNumber>::max());
  for (std::uint32_t slot = 0; slot < table_.end_slot(); ++slot) {
    if (type_of(table_[slot].cell.tag) == ValueType::bytes) blobs_.release(table_[slot].cell.word);
  }
}

bool RecordStore::insert(KeyId id, std::string_view key) {
  if (table_.size() >= records_max_) return false;
  const std::optional<std::uint32_t> ref = keys_.add(key);
  if (!ref) return false;
  const std::uint32_t slot = table_.insert(id, *ref);
  const OrderedIndex::Inserted inserted = index_.insert(*ref);
  table_.set_chunk(slot, inserted.chunk);
  if (inserted.split == OrderedIndex::kNoChunk) return true;
  const Version newest = index_.summary(inserted.split).newest;
  const Version added = take_over(inserted.added);
  index_.summarize(inserted.added, added);
  if (added >= newest) index_.summarize(inserted.split, take_over(inserted.split));
  return true;
}

Version RecordStore::newest_of(std::uint32_t chunk) const {
  Version newest = 0;
  for (const std::uint32_t ref : index_.keys(chunk)) {
    newest = std::max(newest, version_of(table_[find(keys_.view(ref))].cell.tag));
  }
  return newest;
}

// The keys of this chunk came from a split. Notes for each key that it is in this chunk now. Returns their newest
// version.
Version RecordStore::take_over(std::uint32_t chunk) {
  Version newest = 0;
  for (const std::uint32_t ref : index_.keys(chunk)) {
    const std::uint32_t slot = find(keys_.view(ref));
    table_.set_chunk(slot, chunk);
    newest = std::max(newest, version_of(table_[slot].cell.tag));
  }
  return newest;
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
  if (!summarized) count_in_chunk(slot, before, after);
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
  return from_wide(sum);
}

StoreMemory RecordStore::memory() const {
  return {.table = table_.memory_bytes(),
          .keys = keys_.memory_bytes(),
          .index = index_.memory_bytes_of(table_.size()) + tombstone_queue_.size() * sizeof(Tombstone) +
                   dirty_.memory_bytes() + behind_.memory_bytes(),
          .values = blobs_.memory_bytes(),
          .key_room = keys_.room()};
}

std::size_t RecordStore::memory_bytes() const {
  return table_.memory_bytes() + keys_.memory_bytes() + index_.memory_bytes() + blobs_.memory_bytes() +
         tombstone_queue_.memory_bytes() + dirty_.memory_bytes() + behind_.memory_bytes();
}

}  // namespace kilokv::engine
