// The transactions of a batch that wrote, in rank order. The log is written in this order, and so is all else that
// follows the serial order. Not thread-safe. Keeps its capacity.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/txn/columns.hpp"
#include "engine/txn/results.hpp"

namespace kilokv::engine {

// The operations of one transaction that ran: those of its then-list, or those of its else-list.
struct OperationRange {
  std::uint32_t begin, end;
};
inline OperationRange operations_run(const TransactionColumns& columns, const BatchResults& results, std::uint32_t t) {
  const bool in_else = results.outcome[t] == static_cast<std::uint8_t>(Outcome::guard_failed);
  if (in_else) return {columns.then_end[t], columns.else_end[t]};
  return {columns.then_begin(t), columns.then_end[t]};
}

class RankOrder {
 public:
  // `in_order`: the rank of each transaction is its number in the batch. Requires: `results` are complete, the number
  // of passes included. The memory is at most 16 bytes for each transaction of the largest batch so far.
  void sort(const BatchResults& results, bool in_order);
  bool is_in_order() const { return in_order_; }
  // Calls f(transaction) for each transaction that wrote, in rank order.
  template <class F>
  void for_each(const BatchResults& results, const F& f) const {
    if (!in_order_) {
      for (const std::uint32_t t : by_rank_) f(t);
      return;
    }
    const auto n = static_cast<std::uint32_t>(results.wrote.size());
    for (std::uint32_t t = 0; t < n; ++t) {
      if (results.wrote[t] != 0) f(t);
    }
  }

 private:
  bool in_order_ = true;
  std::vector<std::uint32_t> by_rank_;
};

}  // namespace kilokv::engine
