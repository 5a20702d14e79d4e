// The deleted keys of the table, lowest version first: the next ones that may be dropped.
//
// An entry is stale if its key was written again. The code that takes an entry checks for this. A key may be deleted
// and written again many times, which would fill the queue. Therefore each new segment makes the queue clean two older
// segments of stale entries, in turn. So the queue stays within a small multiple of the entries that are not stale.
//
// An entry with a lower version than the newest entry goes to a heap. That happens while records are loaded in key
// order.
//
// Thread safety: none.
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
  // The entry with the lowest version; null if there is none.
  const Tombstone* front() const;
  // Removes that entry. Requires: there is one.
  void pop();

  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const;

 private:
  using Segment = std::vector<Tombstone>;
  static constexpr std::size_t kSegmentMax = 1024;

  bool front_is_late() const;
  void clean_next(const IsStale& is_stale);

  std::deque<Segment> segments_;  // in order, none empty
  std::size_t taken_ = 0;         // entries of the first segment that were taken
  std::size_t next_cleaned_ = 0;
  std::vector<Tombstone> late_;  // a heap of entries that came late
  std::size_t size_ = 0;
};

}  // namespace kilokv::engine
