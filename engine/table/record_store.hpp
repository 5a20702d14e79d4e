// Everything about records that the host keeps, as one: the table, the bytes of keys, their order, byte values, and
// what is counted along: state hash, live records and tombstones, and which records are dirty.
//
// A strategy writes cells straight into the table's slots during a batch; settle() is then called once for each record
// that was written, with its cell before, and brings everything else up to date.
//
// Thread safety: none, except BlobStore::bytes. On a device: the table's Ref alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string_view>

#include "engine/base/key_hash.hpp"
#include "engine/base/types.hpp"
#include "engine/table/blob_store.hpp"
#include "engine/table/key_arena.hpp"
#include "engine/table/ordered_index.hpp"
#include "engine/table/record_table.hpp"
#include "engine/table/state_hash.hpp"

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
  // or above are left out. Requires: of each record at most one image that is not.
  void settle(std::span<const SlotImage> images, Version ignored_from, BatchNumber batch);

  // Calls f(slot, key) for the records of [from, to) in key order until it returns false; deleted and never written
  // ones included.
  template <class F>
  void scan(std::string_view from, std::string_view to, const F& f) const {
    index_.scan(from, to, [&](std::uint32_t, std::string_view key) { return f(find(key), key); });
  }

  // Removes tombstones with version <= floor, calling `dropped` with each key first.
  void drop_tombstones(Version floor, const std::function<void(std::string_view)>& dropped);

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
  static Wide digest(KeyId id, Cell cell) {
    const bool bytes = type_of(cell.tag) == ValueType::bytes;
    return record_digest(id, cell.tag, bytes ? BlobStore::content_hash(cell.word) : Hash128{cell.word, 0});
  }
  void settle_kind(Cell before, Cell after, BatchNumber batch);
  void count(Cell cell, std::size_t one);

  KeyHashSecret secret_;
  std::size_t records_max_;
  RecordTable table_;
  KeyArena keys_;
  OrderedIndex index_;
  BlobStore blobs_;
  Wide hash_ = 0;
  std::size_t live_ = 0, tombstones_ = 0;
  // High halves of the ids of dirty records, in the order in which they became dirty: half an id finds the record (of
  // two that share it, and are dirty, each has an entry). One whose record is gone is skipped when its turn comes.
  std::deque<std::uint64_t> dirty_;
  std::size_t dirty_count_ = 0;
};

}  // namespace kilokv::engine
