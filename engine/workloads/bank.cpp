#include "engine/workloads/bank.hpp"

#include <string>

namespace kilokv::engine {

Bank::Bank(std::uint64_t keys, const DistributionOptions& distribution, BankKind kind, std::uint64_t seed)
    : keys_(keys), kind_(kind), accounts_(keys, distribution), random_(seed) {}

Transfer Bank::draw() {
  Transfer transfer;
  transfer.amount = random_.between(1, kBankAmountMax);
  transfer.source = kind_.hot ? 0 : accounts_.draw(&random_);
  do {
    transfer.target = accounts_.draw(&random_);
  } while (transfer.target == transfer.source);
  const bool towards_hot = kind_.hot && (!kind_.guarded || (random_.next() >> 63) != 0);
  if (towards_hot) std::swap(transfer.source, transfer.target);
  return transfer;
}

std::int64_t Bank::initial_balance(std::uint64_t account) const {
  return kind_.hot && account == 0 ? kHotBalance : kBankBalance;
}

void Bank::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t account = 0; account < keys_; ++account) {
    visit({.key = KeyName(prefix(kind_), account).view(), .integer = initial_balance(account)});
  }
}

InvariantRule Bank::invariant() const {
  const std::int64_t total = static_cast<std::int64_t>(keys_ - 1) * kBankBalance + initial_balance(0);
  return {.statement = "balances sum to " + std::to_string(total) + (kind_.guarded ? " and none is below 0" : ""),
          .total = total,
          .records = keys_,
          .integers = true,
          .never_negative = kind_.guarded};
}

}  // namespace kilokv::engine
