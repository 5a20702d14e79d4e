// The records that have changed since somebody last took all of them: a checkpoint, or the summaries of the index.
//
// An entry is the highest quarter of a record's id, in the order in which the records changed first. Records have no
// mark that says whether they are in the list. Their versions say it: a record whose version is above sealed() is in
// the list. So a write has to be noted only if the version that it replaces is at most sealed(). Most writes are known
// by this one comparison, and need no memory of their own.
//
// Whoever takes the entries begins a round: all entries up to now belong to it, and the list is sealed at the newest
// version. So a record that is written during the round is noted again, whether it was taken or not.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "engine/base/types.hpp"

namespace kilokv::engine {

class ChangeList {
 public:
  Version sealed() const { return sealed_; }
  // Requires: a write has replaced a version of at most sealed().
  void note(KeyId id) { ids_.push_back(static_cast<std::uint32_t>(id.high >> 32)); }

  std::size_t size() const { return ids_.size(); }
  bool empty() const { return ids_.empty(); }
  // Takes the oldest entry. `newest`: no record has a higher version. Requires: the list is not empty.
  std::uint32_t take(Version newest) {
    if (round_left_ == 0) {
      round_left_ = ids_.size();
      sealed_ = newest;
    }
    --round_left_;
    const std::uint32_t first = ids_.front();
    ids_.pop_front();
    return first;
  }
  // Drops all entries, as if all were taken now.
  void clear(Version newest) {
    ids_.clear();
    round_left_ = 0;
    sealed_ = newest;
  }

  static constexpr std::size_t kEntryBytes = sizeof(std::uint32_t);
  std::size_t memory_bytes() const { return ids_.size() * kEntryBytes; }

 private:
  std::deque<std::uint32_t> ids_;
  std::size_t round_left_ = 0;  // entries of the round that begins the list
  Version sealed_ = 0;
};

}  // namespace kilokv::engine
