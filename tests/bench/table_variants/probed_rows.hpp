// Linear probing in rows that grow in place, slice by slice.
//
// The home of a row is its 32-bit hash scaled to the capacity, so homes keep their order when the capacity grows. While
// the rows move to a greater capacity, those with a hash of at least `boundary` have moved, and the others have not. A
// step takes the highest run that has not moved out of the array, lowers the boundary, and puts the rows back. Their
// new homes are not below their old ones, so they never get in the way of rows that have not moved. A run may hold rows
// of both kinds: a probe needs only that no row between a home and its row is empty.
//
// Row 0 is always empty, and homes start at 1. Runs that pass the last home go on behind it: probes do not wrap around.
//
// Rows: the arrays, and what one row of them is.
//   Row            a row outside of the arrays
//   used(i)        whether a probe goes on behind row i
//   occupied(i)    whether row i holds something (a row with a mark is used, but not occupied)
//   populate(begin, end) takes the memory of rows
//   hash(i), hash_of(row), take(i), put(i, row), move(to, from), clear(i)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/check.hpp"

namespace kilokv::bench {

template <class Rows>
class ProbedRows {
 public:
  using Row = typename Rows::Row;

  ProbedRows(std::uint32_t capacity, std::size_t rows_max) : rows_(rows_max), lower_(capacity), upper_(capacity) {}

  Rows& rows() { return rows_; }
  const Rows& rows() const { return rows_; }
  std::uint32_t capacity() const { return upper_; }

  std::uint32_t home(std::uint32_t hash) const {
    const std::uint64_t capacity = hash >= boundary_ ? upper_ : lower_;
    return 1 + static_cast<std::uint32_t>(hash * capacity >> 32);
  }

  // Returns where it put the row.
  std::uint32_t place(const Row& row) {
    std::uint32_t i = home(Rows::hash_of(row));
    while (rows_.occupied(i)) ++i;
    rows_.put(i, row);
    return i;
  }

  // Moves the rest of the run back. Requires: the row is occupied, and no row is marked.
  void erase_shifting(std::uint32_t gap) {
    for (std::uint32_t i = gap + 1; rows_.occupied(i); ++i) {
      if (home(rows_.hash(i)) > gap) continue;
      rows_.move(gap, i);
      gap = i;
    }
    rows_.clear(gap);
  }

  // Starts to move the rows to this capacity. It may be the old one: that only drops the marks.
  void start_move(std::uint32_t capacity) {
    KILOKV_CHECK(!moving() && capacity >= upper_);
    upper_ = capacity;
    not_moved_ = lower_;
    boundary_ = std::uint64_t{1} << 32;
  }
  void populate(std::uint32_t capacity) { rows_.populate(upper_, std::size_t{capacity} + 1); }
  bool moving() const { return not_moved_ > 0; }
  std::uint32_t not_moved() const { return not_moved_; }

  // Moves this number of rows, and then the rest of the run in which it ended.
  void move_some(std::uint32_t rows) {
    while (moving() && rows > 0) {
      const std::uint32_t last_seen = not_moved_;
      if (rows_.used(not_moved_)) {
        move_run();
      } else {
        --not_moved_;
      }
      rows -= std::min(rows, last_seen - not_moved_);
    }
    set_boundary();
    if (!moving()) lower_ = upper_;
  }

 private:
  // Moves the run that the highest row that has not moved is in.
  void move_run() {
    std::uint32_t first = not_moved_;
    run_.clear();
    for (std::uint32_t i = not_moved_ + 1; rows_.used(i); ++i) take_out(i);
    for (; rows_.used(first); --first) take_out(first);
    not_moved_ = first;
    set_boundary();
    for (const Row& row : run_) place(row);
  }
  void take_out(std::uint32_t i) {
    if (rows_.occupied(i)) run_.push_back(rows_.take(i));
    rows_.clear(i);
  }
  // The least hash whose home at the lower capacity is behind the rows that have not moved.
  void set_boundary() { boundary_ = ((std::uint64_t{not_moved_} << 32) + lower_ - 1) / lower_; }

  Rows rows_;
  std::uint32_t lower_, upper_;  // capacities; differ only while rows move
  std::uint64_t boundary_ = 0;
  std::uint32_t not_moved_ = 0;  // rows from 1 to this one have not moved
  std::vector<Row> run_;
};

}  // namespace kilokv::bench
