// Lets a strategy evaluate the guard `bytes equal` without the bytes. For each constant that such a guard of the batch
// compares with, this class finds the words of all byte values in the batch that have the same content. A strategy
// (stm/ordered.hpp) then compares words only, so that it can do so on every platform.
//
// The words are complete: within a batch, a record can only hold a value that one of the batch's records held before
// the batch, or a constant of the batch.
//
// Not thread-safe. Costs nothing if the batch has no such guard. Keeps its capacity, except for a map of contents.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/exec/resolve/resolver.hpp"
#include "engine/table/record_table.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

class EqualWords {
 public:
  // Requires: `resolver` has resolved the batch, and `table` is as before the batch.
  void collect(const TransactionColumns& columns, const BatchResolver& resolver, const RecordTable& table);

  // The words of value i are [begin[i], end[i]) of words(), in ascending order. There are none if no guard compares
  // with the value.
  const std::vector<std::uint32_t>& begin() const { return begin_; }  // [v]
  const std::vector<std::uint32_t>& end() const { return end_; }      // [v]
  const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::vector<std::uint32_t> begin_, end_;
  std::vector<std::uint64_t> words_;
};

}  // namespace kilokv::engine
