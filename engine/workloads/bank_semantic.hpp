// bank-semantic: withdrawals that arrive before the deposits that cover them (the bank of PR-STM, section 4.1).
//
// Each of `keys` customers has a savings account (save............, 1000 at the start) and a checking account
// (chck............, empty). A deposit moves an amount from savings to checking. A withdrawal moves it back. Both have
// a WAIT guard source >= amount. They come in pairs (pairs.hpp) with one customer and amount. The withdrawal is sent
// first, so that it waits for its deposit.
//
// If wait_share is below 1, the other transactions are FAIL-guarded transfers between savings accounts. They leave
// kReserve in the source. Otherwise they would empty some accounts in the long run, and deposits from these accounts
// would wait for ever. A deposit waits only if many pairs of one customer are open. read_only_share of the transactions
// get both balances of a customer and write nothing.
// Invariant: the total. No balance is below 0.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/workloads/bank.hpp"
#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/pairs.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

class BankSemantic {
 public:
  // Requires: keys >= 2, wait_lag >= 1.
  BankSemantic(std::uint64_t keys, const DistributionOptions& distribution, const SemanticOptions& options,
               std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t left = transactions; left > 0; --left) {
      const Turn turn = pairs_.draw(&random_, left);
      if (turn == Turn::reads) {
        read(sink);
      } else {
        write(sink, draw(turn));
      }
    }
  }

  // Appends the second halves of all open pairs.
  template <TransactionSink Sink>
  void close(Sink* sink) {
    while (!pairs_.empty()) write(sink, draw(Turn::second_half));
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  static constexpr std::string_view kSavings = "save", kChecking = "chck";
  static constexpr std::int64_t kReserve = kBankBalance / 2;

  struct Movement {
    std::string_view source_prefix, target_prefix;
    std::uint64_t source = 0, target = 0;
    std::int64_t amount = 0;
    std::uint8_t precedence = 0;
    OnFalse on_false = OnFalse::wait;
    std::int64_t reserve = 0;  // the amount that stays in the source
  };
  struct Pair {
    std::uint64_t customer;
    std::int64_t amount;
  };

  Movement draw(Turn turn);
  Movement transfer();
  Movement half(const Pair& pair, bool waits) const;

  template <TransactionSink Sink>
  void read(Sink* sink) {
    const std::uint64_t customer = customers_.draw(&random_);
    sink->begin(0, 0);
    sink->op(OpKind::get, sink->key(KeyName(kSavings, customer).view()), Operand::integer, 0);
    sink->op(OpKind::get, sink->key(KeyName(kChecking, customer).view()), Operand::integer, 0);
    sink->end();
  }

  template <TransactionSink Sink>
  void write(Sink* sink, const Movement& movement) {
    const bool waits = movement.on_false == OnFalse::wait;
    sink->begin(movement.precedence, waits ? wait_timeout_us_ : 0);
    const std::uint32_t source = sink->key(KeyName(movement.source_prefix, movement.source).view());
    const std::uint32_t target = sink->key(KeyName(movement.target_prefix, movement.target).view());
    sink->guard(GuardKind::greater_equal, movement.on_false, source, movement.amount + movement.reserve, kNone);
    sink->op(OpKind::add, source, Operand::integer, -movement.amount);
    sink->op(OpKind::add, target, Operand::integer, movement.amount);
    sink->end();
  }

  std::uint64_t keys_;
  DurationUs wait_timeout_us_;
  KeyDistribution customers_;
  Random random_;
  OpenPairs<Pair> pairs_;
};

}  // namespace kilokv::engine
