// From results to what the log carries: every write of a batch, in rank order, whatever strategy ran it.
// Not thread-safe; keeps its capacity.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

class WriteCollector {
 public:
  // `in_order`: ranks are the transactions' own numbers. Requires: `results` are those of `columns`, passes included,
  // and the byte values that they show are readable.
  void collect(const TransactionColumns& columns, const BatchResults& results, bool in_order, WriteColumns* writes);

 private:
  std::vector<std::uint32_t> by_rank_;  // rank -> transaction; kNone: none
};

}  // namespace kilokv::engine
