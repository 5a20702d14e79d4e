// All that the host keeps about records: the table, the bytes of keys, their order, and byte values. It also keeps
// totals up to date: the state hash, the numbers of live records and tombstones, and the dirty records.
//
// During a batch, a strategy writes cells straight into the table's slots. Then settle() is called once for each record
// that was written, with the cell before the batch, and brings the rest up to date. The index's summaries of versions
// are the exception: settle() only marks the record as touched, so that a load without ranges does not pay for them.
// catch_up() brings the summaries up to date when a range is read. A batch with ranges reports each write at once
// instead (summarize).
//
// Thread safety: none, except BlobStore::bytes. A device gets only the table's TableRef.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/base/types.hpp"
#include "engine/table/blob_store.hpp"
#include "engine/table/key_arena.hpp"
#include "engine/table/ordered_index.hpp"
#include "engine/table/record_table.hpp"
#include "engine/table/state_hash.hpp"
#include "engine/table/tombstone_queue.hpp"

namespace kilokv::engine {

// A slot, and the cell that it held before the batch.
struct SlotImage {
  std::uint32_t slot;
  Cell before;
};

// A key that gets a record. `id`: the id of the key.
struct NewKey {
  KeyId id;
  std::string_view key;
};

// Bytes of memory. `index`: the key order, the queue of tombstones and the list of changed records.
struct StoreMemory {
  std::size_t table = 0, keys = 0, index = 0, values = 0;
  KeyRoom key_room;  // in `keys`
};

class RecordStore {
 public:
  // Bound on touched records. When a range is first read, the index learns of all of them, which takes about a second
  // at this bound. Once the bound is reached, each further write updates the index at once (a bank transfer then takes
  // 2.5 times as long).
  static constexpr std::size_t kTouchedMax = std::size_t{1} << 24;

  // Only tests pass another bound than kTouchedMax.
  RecordStore(const KeyHashSecret& secret, std::size_t expected_records, std::size_t records_max,
              std::size_t touched_max = kTouchedMax)
      : secret_(secret),
        records_max_(records_max),
        touched_max_(touched_max),
        table_(expected_records),
        index_(&keys_) {}

  ~RecordStore();
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  RecordTable& table() { return table_; }
  const RecordTable& table() const { return table_; }
  BlobStore& blobs() { return blobs_; }
  const KeyHashSecret& secret() const { return secret_; }

  std::uint32_t find(std::string_view key) const { return table_.find(hash_key(key, secret_)); }
  std::string_view key(std::uint32_t slot) const { return keys_.view(table_.key_ref(slot)); }

  // Adds keys that were never written. False: the table or the arena is full, and nothing has changed. Requires: the
  // keys are in key order, each once, and not in the table. Slot indices move. `listed`: the index counts them as live
  // from now on, so that the first write need not tell it. Otherwise summarize() must report all writes to them. A key
  // that stays unwritten must be removed before the next batch.
  bool insert(std::span<const NewKey> keys, bool listed);
  bool insert(KeyId id, std::string_view key) {
    const NewKey one{id, key};
    return insert({&one, 1}, true);
  }
  // The slots of the keys of the last insert(), until slots move. Empty: it moved slots.
  std::span<const std::uint32_t> new_slots() const { return new_slots_; }
  std::size_t records_max() const { return records_max_; }
  // Removes a key. Slot indices move. Requires: its record is settled as absent.
  void remove(std::uint32_t slot);

  // Accounts for the changes of records from the cells in `images` to the cells in their slots: hash, counts, dirty
  // marks, and references to byte values. References that are given up are released with `batch`. Images with version
  // `ignored_from` or above are left out. Requires: each record has at most one image that is not left out.
  // `summarized`: summarize() has reported all of these changes to the index.
  void settle(std::span<const SlotImage> images, Version ignored_from, BatchNumber batch, bool summarized);
  // The same in two steps, so that each can be measured: all but the hash, then the hash.
  void settle_without_hash(std::span<const SlotImage> images, Version ignored_from, BatchNumber batch, bool summarized);
  void settle_hash(std::span<const SlotImage> images, Version ignored_from);

  // Brings the index's summaries up to date. The work is bounded (kTouchedMax).
  void catch_up() const {
    if (touched_count_ > 0) tell_touched();
  }

  // Reports to the index that the slot's cell changes. Returns what forget_summarized() needs to take that back.
  // Requires: catch_up() was called after the last settle().
  OrderedIndex::Newest summarize(std::uint32_t slot, Cell before, Cell after) {
    const std::uint32_t chunk = table_.chunk(slot);
    const OrderedIndex::Newest newest = index_.newest(chunk);
    index_.raise(chunk, version_of(after.tag));
    if (is_live(before) != is_live(after)) set_listed(slot, is_live(after));
    return newest;
  }
  // Takes back the newest summarize() that was not taken back yet.
  void forget_summarized(std::uint32_t slot, Cell before, Cell after, OrderedIndex::Newest newest) {
    const std::uint32_t chunk = table_.chunk(slot);
    if (is_live(before) != is_live(after)) set_listed(slot, is_live(before));
    index_.restore(chunk, newest);
  }

  // Calls f(slot, key) for the records of [from, to) in key order, until f returns false. Deleted and never written
  // records are included.
  template <class F>
  void scan(std::string_view from, std::string_view to, const F& f) const {
    scan_wanted(
        from, to, [](RangeSummary) { return true; }, f);
  }
  // As scan(), but only for records that are live (scan_live), or without most of those that are not newer than `since`
  // (scan_newer).
  template <class F>
  void scan_live(std::string_view from, std::string_view to, const F& f) const {
    index_.scan_live(from, to, [&](std::uint32_t, std::string_view key) { return f(find(key), key); });
  }
  template <class F>
  void scan_newer(std::string_view from, std::string_view to, Version since, const F& f) const {
    catch_up();
    scan_wanted(
        from, to, [since](RangeSummary of) { return of.newest > since; }, f);
  }

  // Removes tombstones with version <= floor, lowest versions first, and calls `dropped` with each key before it is
  // removed. Stops after about `looked_max` tombstones; the tombstones of one version always go together. Returns the
  // version up to which no tombstones are left.
  Version drop_tombstones(Version floor, std::size_t looked_max, const std::function<void(std::string_view)>& dropped);

  // Takes the dirty record that became dirty first, and returns its slot. The record is then no longer dirty. Returns
  // absent_slot() if no record is dirty.
  std::uint32_t take_dirty();
  std::size_t dirty_count() const { return dirty_count_; }
  void clear_dirty();

  std::size_t live() const { return live_; }
  std::size_t tombstones() const { return tombstones_; }
  Hash128 hash() const { return from_wide(hash_); }
  Hash128 compute_hash() const;
  std::size_t memory_bytes() const;
  // The same, by what it is for. Takes constant time.
  StoreMemory memory() const;

 private:
  static Wide digest(KeyId id, Cell cell) {
    const bool bytes = type_of(cell.tag) == ValueType::bytes;
    return record_digest(id, cell.tag, bytes ? BlobStore::content_hash(cell.word) : Hash128{cell.word, 0});
  }
  template <class Wanted, class F>
  void scan_wanted(std::string_view from, std::string_view to, const Wanted& wanted, const F& f) const {
    index_.scan(from, to, wanted, [&](std::uint32_t, std::string_view key) { return f(find(key), key); });
  }
  static bool is_live(Cell cell) { return type_of(cell.tag) != ValueType::absent; }
  // Whether the index counts a record with this cell as live, outside of batches with ranges.
  static bool is_listed(Cell cell) { return cell.tag == 0 || is_live(cell); }
  void set_listed(std::uint32_t slot, bool listed) {
    index_.set_live(table_.chunk(slot), table_.key_ref(slot), listed);
  }
  bool is_tombstone(std::uint32_t slot, Version version) const {
    return table_[slot].cell.tag == make_tag(version, ValueType::absent);
  }
  void queue_tombstones();
  bool add_keys(std::span<const NewKey> keys);
  void take_over(std::span<const KeyPlace> moved);
  void touch(std::uint32_t slot);
  void tell_touched() const;
  void mark(std::uint32_t slot, bool summarized);
  template <bool kHashes>
  void settle_images(std::span<const SlotImage> images, Version ignored_from, BatchNumber batch, bool summarized);
  void settle_kind(KeyId id, Cell before, Cell after, BatchNumber batch);
  void count(Cell cell, std::size_t one);

  KeyHashSecret secret_;
  std::size_t records_max_, touched_max_;
  mutable RecordTable table_;  // mutable for its touched marks
  KeyArena keys_;
  mutable OrderedIndex index_;             // mutable for its summaries
  mutable std::size_t touched_count_ = 0;  // records with the mark
  BlobStore blobs_;
  Wide hash_ = 0;
  std::size_t live_ = 0, tombstones_ = 0;
  // Of the insert() in progress, for each new key: reference, slot and chunk.
  std::vector<std::uint32_t> new_refs_, new_slots_, new_chunks_;
  // Keys that a split moved to another chunk, and their ids and slots.
  std::vector<KeyPlace> moved_;
  std::vector<KeyId> moved_ids_;
  std::vector<std::uint32_t> moved_slots_;
  TombstoneQueue tombstone_queue_;
  std::vector<Tombstone> new_tombstones_;  // of the settle() in progress
  // The highest quarters of the ids of dirty records, in the order in which the records became dirty. A quarter finds
  // its record. If two dirty records share a quarter, each has an entry. An entry whose record is gone is skipped.
  std::deque<std::uint32_t> dirty_;
  std::size_t dirty_count_ = 0;
};

}  // namespace kilokv::engine
