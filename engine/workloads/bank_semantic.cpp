#include "engine/workloads/bank_semantic.hpp"

#include <string>

namespace kilokv::engine {

BankSemantic::BankSemantic(std::uint64_t keys, const DistributionOptions& distribution, const SemanticOptions& options,
                           std::uint64_t seed)
    : keys_(keys),
      wait_timeout_us_(options.wait_timeout_us),
      customers_(keys, distribution),
      random_(seed),
      pairs_(options) {}

BankSemantic::Movement BankSemantic::draw(Turn turn) {
  if (turn == Turn::second_half) return half(pairs_.close(), !pairs_.waits_first());
  if (turn != Turn::first_half) return transfer();
  const Pair pair{customers_.draw(&random_), random_.between(1, kBankAmountMax)};
  pairs_.open(pair);
  return half(pair, pairs_.waits_first());
}

BankSemantic::Movement BankSemantic::transfer() {
  Movement movement{kSavings,      kSavings, customers_.draw(&random_), 0, random_.between(1, kBankAmountMax), 0,
                    OnFalse::fail, kReserve};
  do {
    movement.target = customers_.draw(&random_);
  } while (movement.target == movement.source);
  return movement;
}

// The withdrawal is the half that waits.
BankSemantic::Movement BankSemantic::half(const Pair& pair, bool waits) const {
  return {waits ? kChecking : kSavings,
          waits ? kSavings : kChecking,
          pair.customer,
          pair.customer,
          pair.amount,
          pairs_.precedence(waits),
          OnFalse::wait,
          0};
}

void BankSemantic::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t i = 0; i < keys_; ++i) visit({.key = KeyName(kChecking, i).view(), .integer = 0});
  for (std::uint64_t i = 0; i < keys_; ++i) visit({.key = KeyName(kSavings, i).view(), .integer = kBankBalance});
}

InvariantRule BankSemantic::invariant() const {
  const std::int64_t total = static_cast<std::int64_t>(keys_) * kBankBalance;
  return {.statement = "balances sum to " + std::to_string(total) + " and none is below 0",
          .total = total,
          .records = 2 * keys_,
          .integers = true,
          .never_negative = true};
}

}  // namespace kilokv::engine
