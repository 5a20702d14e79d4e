#include "engine/workloads/bank_semantic.hpp"

#include <string>

#include "engine/workloads/bank.hpp"

namespace kilokv::engine {

namespace {
constexpr std::string_view kSavings = "save";
constexpr std::string_view kChecking = "chck";
}  // namespace

BankSemantic::BankSemantic(std::uint64_t keys, const DistributionOptions& distribution,
                           const BankSemanticOptions& options, std::uint64_t seed)
    : keys_(keys), options_(options), customers_(keys, distribution), random_(seed), open_(options.wait_lag) {}

BankSemantic::Kind BankSemantic::draw_kind(std::size_t left) {
  const bool must_close = !options_.across_calls && left <= open_count_;
  if (must_close) return Kind::second_half;
  if (!random_.chance(options_.wait_share)) return Kind::transfer;
  if (open_count_ == open_.size()) return Kind::second_half;
  const bool can_close = options_.across_calls || left >= open_count_ + 2;
  if (can_close) return Kind::first_half;
  return open_count_ > 0 ? Kind::second_half : Kind::transfer;
}

BankSemantic::Movement BankSemantic::draw(std::size_t left) {
  switch (draw_kind(left)) {
    case Kind::transfer: return transfer();
    case Kind::first_half: {
      const OpenPair pair{customers_.draw(&random_), random_.between(1, kBankAmountMax)};
      open_[(open_first_ + open_count_++) % open_.size()] = pair;
      return half(pair, options_.order == PairOrder::deposits_first);
    }
    case Kind::second_half: break;
  }
  return second_half();
}

BankSemantic::Movement BankSemantic::second_half() {
  const OpenPair pair = open_[open_first_];
  open_first_ = (open_first_ + 1) % open_.size();
  --open_count_;
  return half(pair, options_.order != PairOrder::deposits_first);
}

BankSemantic::Movement BankSemantic::transfer() {
  Movement movement{kSavings, kSavings,     customers_.draw(&random_), 0, random_.between(1, kBankAmountMax),
                    0,        OnFalse::fail};
  do {
    movement.target = customers_.draw(&random_);
  } while (movement.target == movement.source);
  return movement;
}

BankSemantic::Movement BankSemantic::half(const OpenPair& pair, bool is_deposit) const {
  const std::uint8_t precedence = options_.order == PairOrder::precedence && !is_deposit ? 1 : 0;
  return {is_deposit ? kSavings : kChecking,
          is_deposit ? kChecking : kSavings,
          pair.customer,
          pair.customer,
          pair.amount,
          precedence,
          OnFalse::wait};
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
          .never_negative = true};
}

}  // namespace kilokv::engine
