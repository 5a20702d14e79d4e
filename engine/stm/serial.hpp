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
// Cost: a pass touches only the transactions that it runs. Nothing is allocated. txn/interpreter.hpp says what Access
// is.
#pragma once

#include <cstdint>

#include "engine/txn/interpreter.hpp"
#include "engine/txn/program.hpp"
#include "engine/txn/view.hpp"

namespace kilokv::engine {

// Runs the batch and fills every column of the results. Returns the number of passes (0: empty batch).
// `order`: position -> transaction, or null where they are the same. `waiting`: room for n positions. `expires`: [n],
// as in Engine::execute.
template <class Access>
[[gnu::flatten]] inline std::uint32_t run_serial(BatchView batch, ResultView results, const std::uint8_t* expires,
                                                 const std::uint32_t* order, std::uint32_t* waiting, Access& access) {
  const std::uint32_t n = batch.size;
  if (n == 0) return 0;
  std::uint32_t passes = 0;
  std::uint32_t waiting_count = n;  // before pass 0 all transactions wait, each at its position
  std::uint32_t finished = 0;
  do {
    std::uint32_t still_waiting = 0;
    for (std::uint32_t i = 0; i < waiting_count; ++i) {
      const std::uint32_t position = passes == 0 ? i : waiting[i];
      const std::uint32_t t = order != nullptr ? order[position] : position;
      if (run_transaction(batch, results, access, t, passes * n + position) == Outcome::postponed) {
        waiting[still_waiting++] = position;
      }
    }
    finished = waiting_count - still_waiting;
    waiting_count = still_waiting;
    ++passes;
  } while (waiting_count > 0 && finished > 0 && passes < kWaitPassesMax);
  for (std::uint32_t i = 0; i < waiting_count; ++i) {
    const std::uint32_t position = waiting[i];
    const std::uint32_t t = order != nullptr ? order[position] : position;
    results.rank[t] = passes * n + position;
    if (expires[t] != 0) results.outcome[t] = static_cast<std::uint8_t>(Outcome::wait_expired);
  }
  return passes;
}

}  // namespace kilokv::engine
