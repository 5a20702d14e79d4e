#include "engine/workloads/atm.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace kilokv::engine {

namespace {

class AtmAudit : public StateAudit {
 public:
  AtmAudit(std::int64_t (*pin_of)(std::uint64_t), std::int64_t total) : pin_of_(pin_of), total_(total) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    if (key.starts_with("atmb")) balances_ += integer;
    if (key.starts_with("atmp") && integer != pin_of_(KeyName::index_of(key))) changed_ = key;
  }

  std::string violation() const override {
    if (!changed_.empty()) return changed_ + " is not the PIN that it was";
    if (balances_ == total_) return {};
    return "balances: expected a total of " + std::to_string(total_) + ", got " + std::to_string(balances_);
  }

 private:
  std::int64_t (*pin_of_)(std::uint64_t account);
  std::int64_t total_, balances_ = 0;
  std::string changed_;
};

}  // namespace

Atm::Atm(std::uint64_t keys, const DistributionOptions& distribution, std::uint64_t seed)
    : keys_(keys), transfers_(keys, distribution, kTransfers, seed), random_(~seed) {}

void Atm::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t i = 0; i < keys_; ++i) visit({.key = KeyName("atmb", i).view(), .integer = kBankBalance});
  for (std::uint64_t i = 0; i < keys_; ++i) visit({.key = KeyName("atmp", i).view(), .integer = pin_of(i)});
}

InvariantRule Atm::invariant() const {
  const std::int64_t total = static_cast<std::int64_t>(keys_) * kBankBalance;
  return {.statement = "balances sum to " + std::to_string(total) + ", none is below 0, no PIN has changed",
          .records = 2 * keys_,
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<AtmAudit>(&pin_of, total)};
}

}  // namespace kilokv::engine
