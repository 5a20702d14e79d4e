// `serial`: runs a batch literally as the specification says (docs/transactions.md, section 7), on one thread. All
// other strategies are compared with it.
//
// The transactions have positions 0 to n - 1 by (precedence, arrival). Pass 0 runs them one by one. A transaction whose
// deciding guard is a false WAIT guard is postponed, and has no effect. Each further pass runs the postponed ones
// again, in the same order. A pass is the last one
//   - if no transaction is postponed after it;
//   - if it has finished none (so if pass 0 finishes none, there is no second pass);
//   - if it is pass number kWaitPassesMax, pass 0 included.
//
// The rank of a finished transaction is pass x n + position. The rank of one that is still postponed is passes x n +
// position.
//
// A transaction that is still postponed then, and whose deadline has come, expires. If one of them has
// expire_runs_else, there is one more pass: the pass of last tries. It runs all those whose deadline has come, with or
// without expire_runs_else, in the same order. One that still has to wait expires, and its else-operations run if it
// has expire_runs_else. Their ranks are passes x n + position, where `passes` does not count this pass.
//
// Cost: a pass touches only the transactions that it runs. Nothing is allocated. txn/interpreter.hpp says what Access
// is.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/txn/interpreter.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {

// Fills the results that the transactions at the positions [first, last) have if they commit and write in the first
// pass.
inline void fill_usual(std::uint32_t first, std::uint32_t last, const std::uint32_t* order, const ResultView& results) {
  if (order != nullptr) {
    for (std::uint32_t position = first; position < last; ++position) {
      const std::uint32_t t = order[position];
      results.outcome[t] = static_cast<std::uint8_t>(Outcome::committed);
      results.failed_in[t] = static_cast<std::uint8_t>(FailedIn::none);
      results.failed_index[t] = kNone;
      results.wrote[t] = 1;
      results.guard_cell[t] = Cell{};
      results.rank[t] = position;
    }
    return;
  }
  const std::uint32_t n = last - first;
  std::fill_n(results.outcome + first, n, static_cast<std::uint8_t>(Outcome::committed));
  std::fill_n(results.failed_in + first, n, static_cast<std::uint8_t>(FailedIn::none));
  std::fill_n(results.failed_index + first, n, kNone);
  std::fill_n(results.wrote + first, n, std::uint8_t{1});
  std::fill_n(results.guard_cell + first, n, Cell{});
  for (std::uint32_t position = first; position < last; ++position) results.rank[position] = position;
}

// A batch that runs serially. The caller runs the first pass in parts, so that it can do other work for each part while
// the part is in the nearest cache. An Access is passed as a copy: no other code has its address, so its pointers stay
// in registers.
class SerialRun {
 public:
  // `order`: position -> transaction, or null where they are the same. `waiting`: room for as many positions as the
  // batch has transactions.
  SerialRun(const BatchView& batch, const ResultView& results, const std::uint32_t* order, std::uint32_t* waiting)
      : batch_(batch), results_(results), order_(order), waiting_(waiting) {}

  // Runs the positions [first, last) in the first pass. Fills every column of their results. The positions of all calls
  // follow each other, from 0 to the end of the batch.
  template <class Access>
  [[gnu::flatten]] void run_first(std::uint32_t first, std::uint32_t last, Access access) {
    fill_usual(first, last, order_, results_);
    std::uint32_t still_waiting = waiting_count_;
    for (std::uint32_t position = first; position < last; ++position) {
      const std::uint32_t t = order_ != nullptr ? order_[position] : position;
      if (run_transaction<true>(batch_, results_, access, t, position) == Outcome::postponed) {
        waiting_[still_waiting++] = position;
      }
    }
    waiting_count_ = still_waiting;
  }

  // Says that others have run the first pass. The first `count` of `waiting` are the positions that wait, in order.
  void skip_first(std::uint32_t count) { waiting_count_ = count; }

  // Runs the other passes. Returns the number of passes, the first one and that of last tries included (0: empty
  // batch). `expires`: [n], as in Engine::execute. `expire_runs_else`: [n], as in TransactionColumns.
  template <class Access>
  [[gnu::flatten]] std::uint32_t finish(const std::uint8_t* expires, const std::uint8_t* expire_runs_else,
                                        Access access) {
    const std::uint32_t n = batch_.size;
    if (n == 0) return 0;
    std::uint32_t passes = 1;
    std::uint32_t finished = n - waiting_count_;
    while (waiting_count_ > 0 && finished > 0 && passes < kWaitPassesMax) {
      std::uint32_t still_waiting = 0;
      for (std::uint32_t i = 0; i < waiting_count_; ++i) {
        const std::uint32_t position = waiting_[i];
        if (run_transaction<true>(batch_, results_, access, transaction(position), passes * n + position) ==
            Outcome::postponed) {
          waiting_[still_waiting++] = position;
        }
      }
      finished = waiting_count_ - still_waiting;
      waiting_count_ = still_waiting;
      ++passes;
    }
    bool has_last_tries = false;
    for (std::uint32_t i = 0; i < waiting_count_; ++i) {
      const std::uint32_t t = transaction(waiting_[i]);
      results_.rank[t] = passes * n + waiting_[i];
      if (expires[t] == 0) continue;
      results_.outcome[t] = static_cast<std::uint8_t>(Outcome::wait_expired);
      has_last_tries |= expire_runs_else[t] != 0;
    }
    if (!has_last_tries) return passes;
    run_last_tries(expires, expire_runs_else, passes * n, access);
    return passes + 1;
  }

 private:
  template <class Access>
  [[gnu::noinline]] void run_last_tries(const std::uint8_t* expires, const std::uint8_t* expire_runs_else,
                                        std::uint32_t first_rank, Access access) {
    for (std::uint32_t i = 0; i < waiting_count_; ++i) {
      const std::uint32_t position = waiting_[i], t = transaction(position), rank = first_rank + position;
      if (expires[t] == 0) continue;
      if (expire_runs_else[t] != 0) {
        run_transaction<true, true>(batch_, results_, access, t, rank);
      } else if (run_transaction<true>(batch_, results_, access, t, rank) == Outcome::postponed) {
        results_.outcome[t] = static_cast<std::uint8_t>(Outcome::wait_expired);
      }
    }
  }
  std::uint32_t transaction(std::uint32_t position) const { return order_ != nullptr ? order_[position] : position; }

  BatchView batch_;
  ResultView results_;
  const std::uint32_t* order_;
  std::uint32_t* waiting_;  // the positions that wait, in order
  std::uint32_t waiting_count_ = 0;
};

}  // namespace kilokv::engine
