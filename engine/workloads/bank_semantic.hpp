// bank-semantic: withdrawals that arrive before the deposits that cover them (the semantic conflicts of PR-STM).
//
// Each of `keys` customers has a savings account (save............, 1000 at the start) and a checking account
// (chck............, empty). A deposit moves an amount from savings to checking, a withdrawal moves it back; both have
// a WAIT guard source >= amount. They come in pairs of one customer and amount, and the withdrawal is sent first, so
// that it waits for its deposit. The rest, where wait_share is below 1, are FAIL-guarded transfers between savings
// accounts. A deposit waits too when transfers have emptied its savings, so that every guard of a pair is a WAIT guard.
//
// Orders: `withdrawals_first`, the conflict; `precedence`, the same arrival, but deposits carry precedence 0 and
// withdrawals 1, so that the server sorts them; `deposits_first`, the client sorted them: the same set without a
// conflict.
// Pairs are closed within one generate() call (of an even number; a last odd one is a transfer), unless across_calls is
// set: then up to wait_lag pairs stay open from call to call, as between the requests of a client.
// Invariant: the total; no balance is below 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

enum class PairOrder : std::uint8_t { withdrawals_first, precedence, deposits_first };

struct BankSemanticOptions {
  double wait_share = 1.0;         // of the transactions that are halves of pairs; the rest are plain transfers
  std::uint32_t wait_lag = 64;     // withdrawals sent before the deposit of the first one; at least 1
  DurationUs wait_timeout_us = 0;  // 0: a withdrawal waits within its batch only
  PairOrder order = PairOrder::withdrawals_first;
  bool across_calls = false;
};

class BankSemantic {
 public:
  // Requires: keys >= 2, wait_lag >= 1.
  BankSemantic(std::uint64_t keys, const DistributionOptions& distribution, const BankSemanticOptions& options,
               std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t left = transactions; left > 0; --left) write(sink, draw(left));
  }

  // The second halves of all pairs that are still open.
  template <TransactionSink Sink>
  void close(Sink* sink) {
    while (open_count_ != 0) write(sink, second_half());
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  enum class Kind : std::uint8_t { transfer, first_half, second_half };
  struct Movement {
    std::string_view source_prefix, target_prefix;
    std::uint64_t source = 0, target = 0;
    std::int64_t amount = 0;
    std::uint8_t precedence = 0;
    OnFalse on_false = OnFalse::wait;
  };
  struct OpenPair {
    std::uint64_t customer;
    std::int64_t amount;
  };

  Movement draw(std::size_t left);  // the next transaction, with `left` to come in this call, itself included
  Kind draw_kind(std::size_t left);
  Movement transfer();
  Movement second_half();  // of the oldest open pair
  Movement half(const OpenPair& pair, bool is_deposit) const;

  template <TransactionSink Sink>
  void write(Sink* sink, const Movement& movement) {
    const bool waits = movement.on_false == OnFalse::wait;
    sink->begin(movement.precedence, waits ? options_.wait_timeout_us : 0);
    const std::uint32_t source = sink->key(KeyName(movement.source_prefix, movement.source).view());
    const std::uint32_t target = sink->key(KeyName(movement.target_prefix, movement.target).view());
    sink->guard(GuardKind::greater_equal, movement.on_false, source, movement.amount, kNone);
    sink->op(OpKind::add, source, Operand::integer, -movement.amount);
    sink->op(OpKind::add, target, Operand::integer, movement.amount);
    sink->end();
  }

  std::uint64_t keys_;
  BankSemanticOptions options_;
  KeyDistribution customers_;
  Random random_;
  std::vector<OpenPair> open_;  // a ring of wait_lag
  std::size_t open_first_ = 0, open_count_ = 0;
};

}  // namespace kilokv::engine
