#include "engine/table/record_store.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace kilokv::engine {

// Every blob has to go by itself.
RecordStore::~RecordStore() {
  blobs_.release_through(std::numeric_limits<BatchNumber>::max());
  for (std::uint32_t slot = 0; slot < table_.capacity(); ++slot) {
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
  new_slots_.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) table_.prefetch_slot(table_.ref().home(keys[i + kAhead].id.high));
    new_slots_[i] = table_.insert(keys[i].id, new_refs_[i]);
    table_.set_chunk(new_slots_[i], new_chunks_[i]);
  }
  if (table_.capacity() != capacity) new_slots_.clear();  // slots moved
  return true;
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
  if (table_.dirty(slot)) --dirty_count_;
  if (table_.touched(slot)) --touched_count_;
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

// The slow part of settle(), without the hash: a record appears, is deleted, changes its type, or holds bytes.
void RecordStore::settle_kind(KeyId id, Cell before, Cell after, BatchNumber batch) {
  count(before, static_cast<std::size_t>(-1));
  count(after, 1);
  if (!is_live(after) && after.tag != before.tag) new_tombstones_.push_back({version_of(after.tag), id});
  if (type_of(after.tag) == ValueType::bytes) blobs_.retain(after.word);
  if (type_of(before.tag) == ValueType::bytes) blobs_.release_after(batch, before.word);
}

// Marks a record as touched. If as many records as allowed are touched already, updates the index at once instead.
void RecordStore::touch(std::uint32_t slot) {
  if (touched_count_ == touched_max_) return index_.raise(table_.chunk(slot), version_of(table_[slot].cell.tag));
  table_.touch(slot);
  ++touched_count_;
}

void RecordStore::tell_touched() const {
  table_.take_touched(
      [this](std::uint32_t slot) { index_.raise(table_.chunk(slot), version_of(table_[slot].cell.tag)); });
  touched_count_ = 0;
}

void RecordStore::mark(std::uint32_t slot, bool summarized) {
  if (!summarized && !table_.touched(slot)) touch(slot);
  if (table_.dirty(slot)) return;
  table_.set_dirty(slot, true);
  dirty_.push_back(static_cast<std::uint32_t>(table_[slot].id.high >> 32));
  ++dirty_count_;
}

// Nearly every write replaces an integer by an integer, in a record that already has its marks. All other cases are
// function calls, so that this loop keeps its sums in registers.
template <bool kHashes>
void RecordStore::settle_images(std::span<const SlotImage> images, Version ignored_from, BatchNumber batch,
                                bool summarized) {
  constexpr std::size_t kPrefetchAhead = 16;
  const Slot* const slots = table_.ref().slots;
  Wide hash = hash_;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (i + kPrefetchAhead < images.size()) table_.prefetch_slot(images[i + kPrefetchAhead].slot);
    const std::uint32_t slot = images[i].slot;
    const Cell before = images[i].before;
    if (version_of(before.tag) >= ignored_from) continue;
    const Slot& now = slots[slot];
    const Cell after = now.cell;
    if (type_of(before.tag) == ValueType::integer && type_of(after.tag) == ValueType::integer) [[likely]] {
      if (kHashes)
        hash += record_digest(now.id, after.tag, {after.word, 0}) - record_digest(now.id, before.tag, {before.word, 0});
    } else {
      if (!summarized && is_listed(before) != is_listed(after)) set_listed(slot, is_listed(after));
      if (kHashes) hash += digest(now.id, after) - digest(now.id, before);
      settle_kind(now.id, before, after, batch);
    }
    if (!table_.has_marks(slot)) [[unlikely]] {
      mark(slot, summarized);
    }
  }
  hash_ = hash;
  if (!new_tombstones_.empty()) queue_tombstones();
}

void RecordStore::settle(std::span<const SlotImage> images, Version ignored_from, BatchNumber batch, bool summarized) {
  settle_images<true>(images, ignored_from, batch, summarized);
}
void RecordStore::settle_without_hash(std::span<const SlotImage> images, Version ignored_from, BatchNumber batch,
                                      bool summarized) {
  settle_images<false>(images, ignored_from, batch, summarized);
}

void RecordStore::settle_hash(std::span<const SlotImage> images, Version ignored_from) {
  for (const SlotImage& image : images) {
    if (version_of(image.before.tag) >= ignored_from) continue;
    const Slot& now = table_[image.slot];
    hash_ += digest(now.id, now.cell) - digest(now.id, image.before);
  }
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

std::uint32_t RecordStore::take_dirty() {
  while (!dirty_.empty()) {
    const std::uint32_t slot = table_.find_dirty(dirty_.front());
    dirty_.pop_front();
    if (slot == table_.absent_slot()) continue;
    table_.set_dirty(slot, false);
    --dirty_count_;
    return slot;
  }
  return table_.absent_slot();
}

void RecordStore::clear_dirty() {
  dirty_.clear();
  dirty_count_ = 0;
  table_.clear_dirty();
}

Hash128 RecordStore::compute_hash() const {
  Wide sum = 0;
  for (std::uint32_t slot = 0; slot < table_.capacity(); ++slot) {
    sum += digest(table_[slot].id, table_[slot].cell);
  }
  return from_wide(sum);
}

StoreMemory RecordStore::memory() const {
  return {.table = table_.memory_bytes(),
          .keys = keys_.memory_bytes(),
          .index = index_.memory_bytes_of(table_.size()) + tombstone_queue_.size() * sizeof(Tombstone) +
                   dirty_.size() * sizeof(std::uint32_t),
          .values = blobs_.memory_bytes(),
          .key_room = keys_.room()};
}

std::size_t RecordStore::memory_bytes() const {
  return table_.memory_bytes() + keys_.memory_bytes() + index_.memory_bytes() + blobs_.memory_bytes() +
         tombstone_queue_.memory_bytes() + dirty_.size() * sizeof(std::uint32_t);
}

}  // namespace kilokv::engine
