// The keys that expire, and when. Only these keys cost memory here.
//
// The table finds the expiry of a key, and the keys that expire first. Keys that expire at the same time are in the
// order of their ids. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "engine/base/types.hpp"
#include "engine/table/state_hash.hpp"

namespace kilokv::engine {

class ExpiryTable {
 public:
  // The memory of a key, with what the allocator adds.
  static constexpr std::size_t kKeyBytes = 144;

  bool empty() const { return of_key_.empty(); }
  std::size_t size() const { return of_key_.size(); }
  std::size_t memory_bytes() const { return size() * kKeyBytes; }

  // When the key expires; 0: never.
  TimeUs find(KeyId id) const {
    if (of_key_.empty()) return 0;
    const auto found = of_key_.find(id);
    return found == of_key_.end() ? 0 : found->second;
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
    friend bool operator<(const Entry& a, const Entry& b) {
      return std::tie(a.expires_us, a.id.high, a.id.low) < std::tie(b.expires_us, b.id.high, b.id.low);
    }
  };
  struct KeyIdHash {  // an id is a keyed hash already
    std::size_t operator()(const KeyId& id) const noexcept { return id.low; }
  };

  std::unordered_map<KeyId, TimeUs, KeyIdHash> of_key_;
  std::set<Entry> by_time_;
  Wide hash_ = 0;
};

}  // namespace kilokv::engine
