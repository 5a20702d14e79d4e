// The keys that expire, and when. Only these keys cost memory here.
//
// The table finds the expiry of a key, and the keys that expire first. Keys that expire at the same time are in the
// order of their ids.
//
// The entries are nodes of a tree, in the order of their times. A hash index finds the entry of a key. A usual hash
// table moves all entries to a larger table at once, which takes seconds with millions of entries. So this one grows by
// linear hashing (Litwin, VLDB 1980): each new key splits one bucket. It shrinks in the same way. So each call of set()
// takes about the same time, however many keys there are.
//
// Thread safety: none.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <tuple>

#include "engine/base/types.hpp"
#include "engine/table/state_hash.hpp"

namespace kilokv::engine {

class ExpiryTable {
 public:
  // The most memory of a key, with what the allocator adds: a node of the tree, and two buckets.
  static constexpr std::size_t kKeyBytes = 80;

  ExpiryTable() = default;
  ExpiryTable(const ExpiryTable&) = delete;  // the buckets refer to the entries
  ExpiryTable& operator=(const ExpiryTable&) = delete;

  bool empty() const { return by_time_.empty(); }
  std::size_t size() const { return by_time_.size(); }
  std::size_t memory_bytes() const { return size() * kKeyBytes; }
  // The hash index has about one bucket for each key, and after deletes up to two.
  std::size_t buckets() const { return buckets_.size(); }

  // When the key expires; 0: never.
  TimeUs find(KeyId id) const {
    if (empty()) return 0;
    const Entry* entry = buckets_[bucket_of(id)];
    while (entry != nullptr && entry->id != id) entry = entry->next;
    return entry == nullptr ? 0 : entry->expires_us;
  }
  // From now on the key expires at this time; 0: never. Returns when it expired before.
  TimeUs set(KeyId id, TimeUs expires_us);

  // The least time at which a key expires; kNever: none does.
  TimeUs next() const { return by_time_.empty() ? kNever : by_time_.begin()->expires_us; }
  // Calls f(id, expires_us) for the first `max` keys that expire at this time or before.
  template <class F>
  void visit_due(TimeUs stamp_us, std::size_t max, const F& f) const {
    for (auto it = by_time_.begin(); it != by_time_.end() && it->expires_us <= stamp_us && max > 0; ++it, --max) {
      f(it->id, it->expires_us);
    }
  }

  // The sum of all shares (state_hash.hpp).
  Wide hash() const { return hash_; }
  Wide compute_hash() const;

 private:
  struct Entry {
    TimeUs expires_us;
    KeyId id;
    mutable const Entry* next = nullptr;  // in its bucket
    friend bool operator<(const Entry& a, const Entry& b) {
      return std::tie(a.expires_us, a.id.high, a.id.low) < std::tie(b.expires_us, b.id.high, b.id.low);
    }
  };

  // The bucket that splits when this one is added, and that gets its entries back when it is removed.
  static std::size_t parent_of(std::size_t bucket) { return bucket - std::bit_floor(bucket); }
  // An id is a keyed hash already.
  std::size_t bucket_of(KeyId id) const {
    const std::size_t bucket = id.low & (std::bit_ceil(buckets_.size()) - 1);
    return bucket < buckets_.size() ? bucket : parent_of(bucket);
  }
  const Entry** link_of(KeyId id);
  void add(KeyId id, TimeUs expires_us);
  void move(const Entry* entry, TimeUs expires_us);
  void remove(const Entry** link);
  void split_a_bucket();
  void merge_a_bucket();

  std::set<Entry> by_time_;
  std::deque<const Entry*> buckets_{nullptr};  // of each the first entry; a deque grows without a move. Never empty
  Wide hash_ = 0;
};

}  // namespace kilokv::engine
