// All that the host keeps about records: the table, the bytes of keys, their order, and byte values. It also keeps
// totals up to date: the state hash, the numbers of live records and tombstones, and the dirty records.
//
// During a batch, a strategy writes cells straight into the table's slots. After it, the totals follow
// (exec/collect/bookkeeping.hpp): the hash, the list of changed records (note), and for writes of a rare kind all else
// (settle_rare). end_batch() closes the account of the batch. settle() does all of this for one record.
//
// The index's summaries of versions follow later, so that a load without ranges does not pay for them. catch_up()
// brings them nearer to the records when a range is read. A batch with ranges reports each write at once (summarize).
//
// Thread safety: none, except BlobStore::bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "engine/base/key_hash.hpp"
#include "engine/base/types.hpp"
#include "engine/table/blob_store.hpp"
#include "engine/table/change_list.hpp"
#include "engine/table/expiry_table.hpp"
#include "engine/table/key_arena.hpp"
#include "engine/table/ordered_index.hpp"
#include "engine/table/record_table.hpp"
#include "engine/table/state_hash.hpp"
#include "engine/table/tombstone_queue.hpp"

namespace kilokv::engine {

// A key that gets a record. `id`: the id of the key.
struct NewKey {
  KeyId id;
  std::string_view key;
};

// Bytes of memory. `index`: the key order, the expiries, the queue of tombstones and the list of changed records.
struct StoreMemory {
  std::size_t table = 0, keys = 0, index = 0, values = 0;
  KeyRoom key_room;  // in `keys`
};

class RecordStore {
 public:
  // The most records that the summaries of the index may lag behind. If more have changed, the summaries are unknown,
  // as they are before the first catch_up(). Ranges then look at every key until catch_up() has looked at all chunks.
  static constexpr std::size_t kBehindMax = std::size_t{1} << 20;
  // How many changed records one catch_up() looks at; half of them, if there are more. And how many keys of chunks, if
  // the summaries are unknown.
  static constexpr std::size_t kCaughtUpMax = std::size_t{1} << 16;

  // Only tests pass other bounds.
  RecordStore(const KeyHashSecret& secret, std::size_t expected_records, std::size_t records_max,
              std::size_t behind_max = kBehindMax, std::size_t caught_up_max = kCaughtUpMax)
      : secret_(secret),
        records_max_(records_max),
        behind_max_(behind_max),
        caught_up_max_(caught_up_max),
        table_(expected_records, records_max),
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
  // True: insert() takes this number of keys, if their total length is this number of bytes. False: it may not.
  bool has_room_for(std::size_t keys, std::size_t key_bytes) const {
    return keys <= records_max_ - table_.size() && keys_.has_room_for(keys, key_bytes);
  }
  // The slots of the keys of the last insert(), until slots move. Empty: it moved slots.
  std::span<const std::uint32_t> new_slots() const { return new_slots_; }
  std::size_t records_max() const { return records_max_; }
  // Removes a key. Slot indices move. Requires: its record is settled as absent.
  void remove(std::uint32_t slot);

  // The change of the hash when a record changes from one integer to another.
  static Wide integer_change(KeyId id, Cell before, Cell after) {
    return record_digest(id, after.tag, {after.word, 0}) - record_digest(id, before.tag, {before.word, 0});
  }
  // The same for any change. Requires: the bytes of both cells are readable.
  static Wide change(KeyId id, Cell before, Cell after) { return digest(id, after) - digest(id, before); }
  void add_to_hash(Wide change) { hash_ += change; }

  // Accounts for a write that is not of the usual kind, which replaces an integer by an integer: counts, tombstones,
  // references to byte values, and the live keys of the index. References that are given up are released with `batch`.
  // Call it for each write, in the order of the writes. `summarized`: summarize() has told the index.
  static bool is_usual(Cell before, Cell after) {
    return type_of(before.tag) == ValueType::integer && type_of(after.tag) == ValueType::integer;
  }
  void settle_rare(std::uint32_t slot, Cell before, Cell after, BatchNumber batch, bool summarized);

  // A write that replaces a version below this one has to be noted. Other writes are to records that are noted already.
  Version noted_below() const { return noted_below_; }
  // Requires: before_version < noted_below().
  void note(KeyId id, Version before_version);

  // All writes of a batch are accounted for. `newest`: no record has a higher version. `summarized`: summarize() has
  // reported all of them to the index.
  void end_batch(Version newest, bool summarized);
  // Accounts for the change of one record, which is no part of a batch.
  void settle(std::uint32_t slot, Cell before);

  // Brings the summaries of the index nearer to the records. The work is bounded (kBehindMax, kCaughtUpMax), so it
  // may take several calls. Ranges are exact at any time: while the summaries lag, they look at more keys. Not while a
  // batch runs, because forget_summarized() would take back what this has found. A batch with ranges begins with it.
  void catch_up() const;

  // Reports to the index that the slot's cell changes. Returns what forget_summarized() needs to take that back.
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
  // scan() and scan_live() from the last key to the first.
  template <class F>
  void scan_reverse(std::string_view from, std::string_view to, const F& f) const {
    index_.scan_reverse(from, to, [&](std::uint32_t, std::string_view key) { return f(find(key), key); });
  }
  template <class F>
  void scan_live_reverse(std::string_view from, std::string_view to, const F& f) const {
    index_.scan_live_reverse(from, to, [&](std::uint32_t, std::string_view key) { return f(find(key), key); });
  }
  template <class F>
  void scan_newer(std::string_view from, std::string_view to, Version since, const F& f) const {
    const bool skips = !is_behind();
    scan_wanted(
        from, to, [&](RangeSummary of) { return !skips || of.newest > since; }, f);
  }

  // Removes tombstones with version <= floor, lowest versions first, and calls `dropped` with each key before it is
  // removed. Stops after about `looked_max` tombstones; the tombstones of one version always go together. Returns the
  // version up to which no tombstones are left.
  Version drop_tombstones(Version floor, std::size_t looked_max, const std::function<void(std::string_view)>& dropped);

  // The records that a checkpoint has to look at. take_dirty() calls f(slot) for each record of the oldest entry; there
  // may be none. Requires: dirty_count() is not 0.
  std::size_t dirty_count() const { return dirty_.size(); }
  template <class F>
  void take_dirty(const F& f) {
    table_.for_each_of(dirty_.take(newest_), f);
    choose_noted();
  }
  void clear_dirty() {
    dirty_.clear(newest_);
    choose_noted();
  }

  // A batch sets expiries after it has run (exec/collect/expiries.hpp). Only a live key has one.
  ExpiryTable* expiries() { return &expiries_; }
  const ExpiryTable& expiries() const { return expiries_; }

  std::size_t live() const { return live_; }
  std::size_t tombstones() const { return tombstones_; }
  Hash128 hash() const { return from_wide(hash_ + expiries_.hash()); }
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
  void count(Cell cell, std::size_t one);
  // The summaries may lack versions of records.
  bool is_behind() const { return !knows_changed_ || walk_left_ > 0 || !behind_.empty(); }
  void choose_noted() const;
  Version newest_of(std::uint32_t chunk) const;

  KeyHashSecret secret_;
  std::size_t records_max_, behind_max_, caught_up_max_;
  RecordTable table_;
  KeyArena keys_;
  mutable OrderedIndex index_;  // mutable for its summaries
  BlobStore blobs_;
  ExpiryTable expiries_;
  Wide hash_ = 0;  // of all but the expiries
  std::size_t live_ = 0, tombstones_ = 0;
  // Of the insert() in progress, for each new key: reference, slot and chunk.
  std::vector<std::uint32_t> new_refs_, new_slots_, new_chunks_;
  // Keys that a split moved to another chunk, and their ids and slots.
  std::vector<KeyPlace> moved_;
  std::vector<KeyId> moved_ids_;
  std::vector<std::uint32_t> moved_slots_;
  TombstoneQueue tombstone_queue_;
  std::vector<Tombstone> new_tombstones_;  // of the batch in progress
  Version newest_ = 0;                     // no record has a higher version
  ChangeList dirty_;                       // what a checkpoint has to look at
  // What the summaries of the index lack, and how many chunks are still to be looked at, from chunk 0 on. False: nobody
  // has asked for the summaries yet, or too many records have changed to list them.
  mutable ChangeList behind_;
  mutable bool knows_changed_ = false;
  mutable std::uint32_t walk_left_ = 0;
  mutable bool caught_up_ = false;  // the last catch_up() has left nothing
  mutable Version noted_below_ = 1;
};

}  // namespace kilokv::engine
