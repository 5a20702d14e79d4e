// The deleted keys of the table by version, lowest first: what may be dropped next.
//
// An entry is stale when its key was written again; whoever takes it finds out. So that a key that is deleted and
// written again and again does not fill the queue, a new segment has two older ones cleaned of stale entries, in turn:
// the queue stays within a small multiple of what is not stale.
//
// What comes with a lower version than the newest entry (while records are loaded in key order) goes to a heap.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "engine/base/types.hpp"

namespace kilokv::engine {

struct Tombstone {
  Version version;
  KeyId id;
};

class TombstoneQueue {
 public:
  using IsStale = std::function<bool(const Tombstone&)>;

  void add(const Tombstone& tombstone, const IsStale& is_stale);
  // The entry with the lowest version; null: there is none.
  const Tombstone* front() const;
  // Requires: there is one.
  void pop();

  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const;

 private:
  using Segment = std::vector<Tombstone>;
  static constexpr std::size_t kSegmentMax = 1024;

  bool front_is_late() const;
  void clean_next(const IsStale& is_stale);

  std::deque<Segment> segments_;  // in order, none empty
  std::size_t taken_ = 0;         // of the first segment
  std::size_t next_cleaned_ = 0;
  std::vector<Tombstone> late_;  // a heap
  std::size_t size_ = 0;
};

}  // namespace kilokv::engine
