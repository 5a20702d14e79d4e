// atm: transfers between two distinct accounts at a cash machine (the ATM of KILO TM, section 5, an array of structs).
//
// Each of `keys` accounts has a PIN (atmp............, fixed by its number) and a balance (atmb............, 1000 at
// the start). A transfer has FAIL guards PIN == entered and balance >= amount, and two ADDs. One PIN in 100 is entered
// wrongly. The paper's transfers check nothing; here the guards make these reads part of the transaction.
// Invariant: the total of the balances. No balance is below 0. The PINs do not change.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/workloads/bank.hpp"
#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

class Atm {
 public:
  // Requires: keys >= 2.
  Atm(std::uint64_t keys, const DistributionOptions& distribution, std::uint64_t seed);

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      const Transfer transfer = transfers_.draw();
      const std::int64_t entered = pin_of(transfer.source) + (random_.chance(kWrongPinShare) ? 1 : 0);
      sink->begin(0, 0);
      const std::uint32_t pin = sink->key(KeyName("atmp", transfer.source).view());
      const std::uint32_t source = sink->key(KeyName("atmb", transfer.source).view());
      const std::uint32_t target = sink->key(KeyName("atmb", transfer.target).view());
      sink->guard(GuardKind::equal, OnFalse::fail, pin, entered, kNone);
      sink->guard(GuardKind::greater_equal, OnFalse::fail, source, transfer.amount, kNone);
      sink->op(OpKind::add, source, Operand::integer, -transfer.amount);
      sink->op(OpKind::add, target, Operand::integer, transfer.amount);
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  static constexpr double kWrongPinShare = 0.01;
  static std::int64_t pin_of(std::uint64_t account) {
    return static_cast<std::int64_t>(splitmix64(&account) % 10'000);  // of four digits
  }

  std::uint64_t keys_;
  Bank transfers_;
  Random random_;
};

}  // namespace kilokv::engine
