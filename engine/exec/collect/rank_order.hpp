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
  const auto outcome = static_cast<Outcome>(results.outcome[t]);
  if (columns.ran_else(t, outcome)) return {columns.then_end[t], columns.else_end[t]};
  return {columns.then_begin(t), columns.then_end[t]};
}

class RankOrder {
 public:
  // `in_order`: the rank of each transaction is its number in the batch. Requires: `results` are complete, the number
  // of passes included. The memory is at most 16 bytes for each transaction of the largest batch so far.
  void sort(const BatchResults& results, bool in_order);
  // The number of places with a lower rank. Requires: sort(), with `in_order` false.
  std::uint32_t places_before(const BatchResults& results, std::uint32_t rank) const;
  bool is_in_order() const { return in_order_; }
  // The number of places. Each transaction that wrote has one; in the batch's own order, so have the others.
  std::uint32_t places(const BatchResults& results) const {
    return static_cast<std::uint32_t>(in_order_ ? results.wrote.size() : by_rank_.size());
  }
  // Calls f(transaction) for each transaction of the places [first, last) that wrote, in rank order.
  template <class F>
  void for_each(const BatchResults& results, std::uint32_t first, std::uint32_t last, const F& f) const {
    for (std::uint32_t place = first; place < last; ++place) {
      const std::uint32_t t = in_order_ ? place : by_rank_[place];
      if (results.wrote[t] != 0) f(t);
    }
  }
  // The same for the places before `last`, in reverse.
  template <class F>
  void for_each_back(const BatchResults& results, std::uint32_t last, const F& f) const {
    for (std::uint32_t place = last; place-- > 0;) {
      const std::uint32_t t = in_order_ ? place : by_rank_[place];
      if (results.wrote[t] != 0) f(t);
    }
  }
  // The same for all places.
  template <class F>
  void for_each(const BatchResults& results, const F& f) const {
    for_each(results, 0, places(results), f);
  }

 private:
  bool in_order_ = true;
  std::vector<std::uint32_t> by_rank_;
};

}  // namespace kilokv::engine
