// Everything about records that the host keeps, as one: the table, the bytes of keys, their order, byte values, and
// what is counted along: state hash, live records and tombstones, and which records are dirty.
//
// A strategy writes cells straight into the table's slots during a batch; settle() is then called once for each record
// that was written, with its cell before, and brings everything else up to date, but for the index's summaries of
// versions: for these it only marks the record as touched, so that who has no ranges does not pay for them. They are
// brought up to date when a range is looked at (catch_up). A batch that has ranges tells each write at once
// (summarize).
//
// Thread safety: none, except BlobStore::bytes. On a device: the table's Ref alone.
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

// A slot and what it held.
struct SlotImage {
  std::uint32_t slot;
  Cell before;
};

class RecordStore {
 public:
  RecordStore(const KeyHashSecret& secret, std::size_t expected_records, std::size_t records_max)
      : secret_(secret), records_max_(records_max), table_(expected_records), index_(&keys_) {}

  RecordTable& table() { return table_; }
  const RecordTable& table() const { return table_; }
  BlobStore& blobs() { return blobs_; }
  const KeyHashSecret& secret() const { return secret_; }

  std::uint32_t find(std::string_view key) const { return table_.find(hash_key(key, secret_)); }
  std::string_view key(std::uint32_t slot) const { return keys_.view(table_.key_ref(slot)); }

  // Adds a key that was never written. False: the table or the arena is full, nothing changed.
  // Requires: `id` is the key's and not in the table. Slot indices move.
  bool insert(KeyId id, std::string_view key);
  // Forgets a key. Slot indices move. Requires: its record is settled as absent.
  void remove(std::uint32_t slot);

  // Accounts for the changes of records from what `images` hold to what their slots hold now: hash, counts, dirty
  // marks, references to byte values (those given up are released with `batch`). Images whose version is `ignored_from`
  // or above are left out. Requires: of each record at most one image that is not; `summarized`: all of the changes
  // were told to the index.
  void settle(std::span<const SlotImage> images, Version ignored_from, BatchNumber batch, bool summarized);

  // Brings the index's summaries up to date: bounded work.
  void catch_up() const {
    if (touched_count_ > 0) tell_touched();
  }

  // Tells the index that the slot's cell changes. Requires: catch_up() after the last settle(). Returns what is needed
  // to take that back.
  OrderedIndex::Newest summarize(std::uint32_t slot, Cell before, Cell after) {
    const std::uint32_t chunk = table_.chunk(slot);
    const OrderedIndex::Newest newest = index_.newest(chunk);
    index_.raise(chunk, version_of(after.tag));
    count_in_chunk(chunk, before, after);
    return newest;
  }
  // Takes back the last call that was not taken back yet.
  void forget_summarized(std::uint32_t slot, Cell before, Cell after, OrderedIndex::Newest newest) {
    const std::uint32_t chunk = table_.chunk(slot);
    count_in_chunk(chunk, after, before);
    index_.restore(chunk, newest);
  }

  // Calls f(slot, key) for the records of [from, to) in key order until it returns false; deleted and never written
  // ones included.
  template <class F>
  void scan(std::string_view from, std::string_view to, const F& f) const {
    scan_wanted(
        from, to, [](RangeSummary) { return true; }, f);
  }
  // The same, but most of the records that are not live, or not newer than `since`, are passed over.
  template <class F>
  void scan_live(std::string_view from, std::string_view to, const F& f) const {
    scan_wanted(
        from, to, [](RangeSummary of) { return of.live > 0; }, f);
  }
  template <class F>
  void scan_newer(std::string_view from, std::string_view to, Version since, const F& f) const {
    catch_up();
    scan_wanted(
        from, to, [since](RangeSummary of) { return of.newest > since; }, f);
  }

  // Removes tombstones with version <= floor, calling `dropped` with each key first, lowest versions first, until about
  // `looked_max` are looked at: those of one version all go at once. Returns the version up to which there are none.
  Version drop_tombstones(Version floor, std::size_t looked_max, const std::function<void(std::string_view)>& dropped);

  // First in, first out: the next dirty record's slot, no longer dirty; absent_slot() if there is none.
  std::uint32_t take_dirty();
  std::size_t dirty_count() const { return dirty_count_; }
  void clear_dirty();

  std::size_t live() const { return live_; }
  std::size_t tombstones() const { return tombstones_; }
  Hash128 hash() const { return from_wide(hash_); }
  Hash128 compute_hash() const;
  std::size_t memory_bytes() const;

 private:
  // Touched records. Telling the index of that many takes a second or so, once, when a range is looked at for the first
  // time; where more are written meanwhile, each further write pays at once (a bank transfer then takes 2.5 times as
  // long).
  static constexpr std::size_t kTouchedMax = std::size_t{1} << 24;

  static Wide digest(KeyId id, Cell cell) {
    const bool bytes = type_of(cell.tag) == ValueType::bytes;
    return record_digest(id, cell.tag, bytes ? BlobStore::content_hash(cell.word) : Hash128{cell.word, 0});
  }
  template <class Wanted, class F>
  void scan_wanted(std::string_view from, std::string_view to, const Wanted& wanted, const F& f) const {
    index_.scan(from, to, wanted, [&](std::uint32_t, std::string_view key) { return f(find(key), key); });
  }
  static bool is_live(Cell cell) { return type_of(cell.tag) != ValueType::absent; }
  void count_in_chunk(std::uint32_t chunk, Cell before, Cell after) {
    if (is_live(before) != is_live(after)) index_.add_live(chunk, is_live(after) ? 1 : -1);
  }
  bool is_tombstone(std::uint32_t slot, Version version) const {
    return table_[slot].cell.tag == make_tag(version, ValueType::absent);
  }
  void queue_tombstones();
  RangeSummary take_over(std::uint32_t chunk);
  void touch(std::uint32_t slot);
  void tell_touched() const;
  void mark(std::uint32_t slot, bool summarized);
  Wide settle_kind(KeyId id, Cell before, Cell after, BatchNumber batch);
  void count(Cell cell, std::size_t one);

  KeyHashSecret secret_;
  std::size_t records_max_;
  mutable RecordTable table_;  // its touched marks
  KeyArena keys_;
  mutable OrderedIndex index_;  // its summaries
  mutable std::size_t touched_count_ = 0;
  BlobStore blobs_;
  Wide hash_ = 0;
  std::size_t live_ = 0, tombstones_ = 0;
  TombstoneQueue tombstone_queue_;
  std::vector<Tombstone> new_tombstones_;  // of the settle() that runs
  // Highest quarters of the ids of dirty records, in the order in which they became dirty: a quarter finds the record
  // (of two that share it, and are dirty, each has an entry). One whose record is gone is skipped when its turn comes.
  std::deque<std::uint32_t> dirty_;
  std::size_t dirty_count_ = 0;
};

}  // namespace kilokv::engine
