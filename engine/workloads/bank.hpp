// bank: transfers between two distinct accounts drawn from the distribution. Keys acct............ have 16 bytes; the
// balance is 1000 at the start; the amount is 1 to 100. A transfer has a FAIL guard source >= amount, ADD -amount and
// ADD +amount.
//
// Deposits (keys depo............) are such transfers without a guard. So balances may fall below 0, and all conflicts
// are between ADDs, which commute. In the hot variants every transfer touches account 0. Hot transfers (keys
// hott............) go in a random direction and have guards; the hot account starts rich, so that its guard rarely
// fails. Hot deposits (keys hotd............) always go from the other account to the hot one. Each variant has its own
// keys, because balances and possible final states differ; so all variants can run on one database.
// Invariant: the total. In the variants with guards, no balance is below 0.
// Thread safety: one thread for each object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/workloads/distribution.hpp"
#include "engine/workloads/invariant.hpp"
#include "engine/workloads/key_name.hpp"
#include "engine/workloads/random.hpp"
#include "engine/workloads/sink.hpp"

namespace kilokv::engine {

inline constexpr std::int64_t kBankBalance = 1000;
inline constexpr std::int64_t kBankAmountMax = 100;
inline constexpr std::int64_t kHotBalance = 1'000'000'000;

struct BankKind {
  bool guarded = true;
  bool hot = false;
};
inline constexpr BankKind kTransfers{true, false}, kDeposits{false, false}, kHotTransfers{true, true},
    kHotDeposits{false, true};

// One transfer without the limits of a bank. Bank draws it; any writer of transfers can use it.
struct Transfer {
  std::uint64_t source = 0;
  std::uint64_t target = 0;
  std::int64_t amount = 0;
};

class Bank {
 public:
  static constexpr std::string_view prefix(BankKind kind) {
    if (kind.guarded) return kind.hot ? "hott" : "acct";
    return kind.hot ? "hotd" : "depo";
  }

  // Requires: keys >= 2.
  Bank(std::uint64_t keys, const DistributionOptions& distribution, BankKind kind, std::uint64_t seed);

  Transfer draw();

  template <TransactionSink Sink>
  void generate(Sink* sink, std::size_t transactions) {
    for (std::size_t i = 0; i < transactions; ++i) {
      const Transfer transfer = draw();
      sink->begin(0, 0);
      const std::uint32_t source = sink->key(KeyName(prefix(kind_), transfer.source).view());
      const std::uint32_t target = sink->key(KeyName(prefix(kind_), transfer.target).view());
      if (kind_.guarded) {
        sink->guard(GuardKind::greater_equal, OnFalse::fail, source, transfer.amount, kNone);
      }
      sink->op(OpKind::add, source, Operand::integer, -transfer.amount);
      sink->op(OpKind::add, target, Operand::integer, transfer.amount);
      sink->end();
    }
  }

  void for_each_initial(const InitialVisitor& visit) const;
  InvariantRule invariant() const;

 private:
  std::int64_t initial_balance(std::uint64_t account) const;

  std::uint64_t keys_;
  BankKind kind_;
  KeyDistribution accounts_;
  Random random_;
};

}  // namespace kilokv::engine
