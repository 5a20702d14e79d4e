// Pairs: two transactions, of which one waits for the other, as semantic conflicts arise in PR-STM. The transaction
// that waits is sent first. The other one follows up to wait_lag transactions later.
//
// Orders: `withdrawals_first` is the conflict. `precedence` has the same arrival, but the transaction that is waited
// for has precedence 0, and the one that waits has 1, so that the server sorts them. In `deposits_first` the client has
// sorted them: the same set without a conflict.
//
// Pairs are closed within one generate() call; a transaction that is left over is a plain one. If across_calls is set,
// up to wait_lag pairs stay open from call to call, as between the requests of a client.
//
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/types.hpp"
#include "engine/workloads/random.hpp"

namespace kilokv::engine {

enum class PairOrder : std::uint8_t { withdrawals_first, precedence, deposits_first };

struct SemanticOptions {
  double wait_share = 1.0;      // of the transactions that write: halves of pairs; the others are plain, and never wait
  double read_only_share = 0;   // of all transactions
  std::uint32_t wait_lag = 64;  // waiting transactions that are sent before the first one's second half; at least 1
  DurationUs wait_timeout_us = 0;  // 0: within its batch only
  PairOrder order = PairOrder::withdrawals_first;
  bool across_calls = false;
};

// The kind of the next transaction.
enum class Turn : std::uint8_t { reads, plain, first_half, second_half };

// The pairs whose second half is still to be sent, oldest first. Also decides which kind of transaction comes next.
template <class Pair>
class OpenPairs {
 public:
  // Requires: wait_lag >= 1.
  explicit OpenPairs(const SemanticOptions& options) : options_(options), open_(options.wait_lag) {}

  // Draws the kind of the next transaction. `left`: transactions to come in this call, with the next one. After
  // first_half the caller calls open(), after second_half close().
  Turn draw(Random* random, std::size_t left) const {
    const bool must_close = !options_.across_calls && left <= count_;
    if (must_close) return Turn::second_half;
    if (options_.read_only_share > 0 && random->chance(options_.read_only_share)) return Turn::reads;
    if (!random->chance(options_.wait_share)) return Turn::plain;
    if (count_ == open_.size()) return Turn::second_half;
    const bool can_close = options_.across_calls || left >= count_ + 2;
    if (can_close) return Turn::first_half;
    return count_ > 0 ? Turn::second_half : Turn::plain;
  }

  void open(const Pair& pair) { open_[(first_ + count_++) % open_.size()] = pair; }
  // Removes the oldest pair. Requires: !empty().
  Pair close() {
    const Pair pair = open_[first_];
    first_ = (first_ + 1) % open_.size();
    --count_;
    return pair;
  }
  bool empty() const { return count_ == 0; }

  bool waits_first() const { return options_.order != PairOrder::deposits_first; }
  // The precedence of the half that waits, or of the other half.
  std::uint8_t precedence(bool waits) const { return options_.order == PairOrder::precedence && waits ? 1 : 0; }

 private:
  SemanticOptions options_;
  std::vector<Pair> open_;  // a ring of wait_lag
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace kilokv::engine
