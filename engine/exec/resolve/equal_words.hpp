// `bytes equal` without bytes: for each constant that such a guard of the batch compares with, the words of all byte
// values in the batch that have its content. A strategy then compares words (stm/ordered.hpp), wherever it runs.
// The values that a record can come to hold within a batch are those that its records hold before it, and its
// constants.
//
// Not thread-safe. Costs nothing where the batch has no such guard. Keeps its capacity but for a map of contents.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/exec/resolve/batch_records.hpp"
#include "engine/exec/resolve/resolver.hpp"
#include "engine/txn/columns.hpp"

namespace kilokv::engine {

class EqualWords {
 public:
  // Requires: `records` has gathered the batch.
  void collect(const TransactionColumns& columns, const BatchResolver& resolver, const BatchRecords& records);

  // Value i: words [begin[i], end[i]), ascending; empty where no guard asks for it.
  const std::vector<std::uint32_t>& begin() const { return begin_; }  // [v]
  const std::vector<std::uint32_t>& end() const { return end_; }      // [v]
  const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  std::vector<std::uint32_t> begin_, end_;
  std::vector<std::uint64_t> words_;
};

}  // namespace kilokv::engine
