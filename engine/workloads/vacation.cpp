#include "engine/workloads/vacation.hpp"

#include <memory>
#include <numeric>
#include <string>
#include <string_view>

namespace kilokv::engine {

namespace {

class HotelAudit : public StateAudit {
 public:
  HotelAudit(const Hotel& hotel, std::uint64_t interval) : hotel_(hotel), interval_(interval), rooms_(hotel.types, 0) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    if (key.starts_with("vacu")) {
      held_ += integer;
      return;
    }
    if (key.starts_with("vaus")) used_ += integer;
    const std::uint64_t type = KeyName::index_of(key) / interval_;
    if (type < hotel_.types) rooms_[type] += integer;
  }

  std::string violation() const override {
    for (std::uint64_t type = 0; type < hotel_.types; ++type) {
      if (rooms_[type] == static_cast<std::int64_t>(hotel_.rooms_of(type))) continue;
      return "rooms of type " + std::to_string(type) + ": expected " + std::to_string(hotel_.rooms_of(type)) +
             " free or used, got " + std::to_string(rooms_[type]);
    }
    if (held_ == used_) return {};
    return "rooms that customers hold: expected " + std::to_string(used_) + ", got " + std::to_string(held_);
  }

 private:
  Hotel hotel_;
  std::uint64_t interval_;
  std::vector<std::int64_t> rooms_;
  std::int64_t used_ = 0, held_ = 0;
};

}  // namespace

Vacation::Vacation(std::uint64_t keys, const DistributionOptions& distribution, const SemanticOptions& options,
                   std::uint64_t seed)
    : hotel_(keys),
      wait_timeout_us_(options.wait_timeout_us),
      types_(hotel_.types, distribution),
      random_(seed),
      pairs_(options),
      holder_(keys) {
  std::iota(holder_.begin(), holder_.end(), 0u);
}

Vacation::Change Vacation::draw() {
  const std::uint64_t type = types_.draw(&random_);
  std::uint32_t& holder = holder_[type + hotel_.types * random_.below(hotel_.rooms_of(type))];
  const Change change{type, holder, static_cast<std::uint32_t>(random_.below(hotel_.rooms))};
  holder = change.to;
  return change;
}

void Vacation::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t i = 0; i < hotel_.rooms; ++i) visit({.key = customer(i).view(), .integer = 1});
  for (std::uint64_t i = 0; i < hotel_.types; ++i) visit({.key = free_of(i).view(), .integer = 0});
  for (std::uint64_t i = 0; i < hotel_.types; ++i) {
    visit({.key = used_of(i).view(), .integer = static_cast<std::int64_t>(hotel_.rooms_of(i))});
  }
}

InvariantRule Vacation::invariant() const {
  return {.statement = std::to_string(hotel_.rooms) + " rooms of " + std::to_string(hotel_.types) +
                       " types, each free or used, and each used one held by a customer",
          .records = hotel_.rooms + 2 * hotel_.types,
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<HotelAudit>(hotel_, kInterval)};
}

}  // namespace kilokv::engine
