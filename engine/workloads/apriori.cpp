#include "engine/workloads/apriori.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

namespace kilokv::engine {

namespace {

class SupportAudit : public StateAudit {
 public:
  explicit SupportAudit(std::uint64_t items) : items_(items) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const std::uint64_t index = KeyName::index_of(key);
    if (key.starts_with("appr")) {
      pairs_ += integer;
    } else if (key.starts_with("apln")) {
      const auto length = static_cast<std::int64_t>(index);
      expected_ += integer * (length * (length - 1) / 2);
    } else {
      ++found_;
      if (integer != Apriori::item_support(index)) changed_ = key;
    }
  }

  std::string violation() const override {
    if (!changed_.empty()) return changed_ + " is not the support that it was";
    if (found_ != items_) return "items: expected " + std::to_string(items_) + ", got " + std::to_string(found_);
    if (pairs_ == expected_) return {};
    return "supports of pairs: expected a total of " + std::to_string(expected_) + ", got " + std::to_string(pairs_);
  }

 private:
  std::uint64_t items_, found_ = 0;
  std::int64_t pairs_ = 0, expected_ = 0;
  std::string changed_;
};

}  // namespace

// If an item is in the basket already, the next number that is not takes its place.
void Apriori::fill_basket() {
  const std::size_t most = std::min<std::size_t>(kLengthMax, keys_);
  std::size_t wanted = 2;
  while (wanted < most && random_.chance(0.6)) ++wanted;
  for (length_ = 0; length_ < wanted; ++length_) {
    const auto end = basket_.begin() + static_cast<std::ptrdiff_t>(length_);
    std::uint64_t item = items_.draw(&random_);
    while (std::find(basket_.begin(), end, item) != end) item = (item + 1) % keys_;
    *end = item;
  }
  std::sort(basket_.begin(), basket_.begin() + static_cast<std::ptrdiff_t>(length_));
}

void Apriori::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t item = 0; item < keys_; ++item) {
    visit({.key = KeyName("apit", item).view(), .integer = item_support(item)});
  }
}

InvariantRule Apriori::invariant() const {
  return {.statement = "the supports of all pairs sum to the pairs of all baskets",
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<SupportAudit>(keys_)};
}

}  // namespace kilokv::engine
