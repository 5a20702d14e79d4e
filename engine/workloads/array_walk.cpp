#include "engine/workloads/array_walk.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::engine {

namespace {

class PermutationAudit : public StateAudit {
 public:
  explicit PermutationAudit(std::uint64_t values) : seen_(values, false) {}

  void add(std::string_view, std::int64_t integer, std::string_view) override {
    const auto value = static_cast<std::uint64_t>(integer);
    if (value >= seen_.size()) {
      problem_ = std::to_string(integer) + " is no value of the start";
    } else if (seen_[value]) {
      problem_ = std::to_string(integer) + " is there twice";
    } else {
      seen_[value] = true;
    }
  }

  std::string violation() const override { return problem_; }

 private:
  std::vector<bool> seen_;  // by value
  std::string problem_;
};

}  // namespace

ArrayWalk::ArrayWalk(std::uint64_t keys, const DistributionOptions& distribution, std::uint32_t operations,
                     double read_only_share, std::uint64_t seed)
    : keys_(keys),
      operations_(std::max<std::uint32_t>(operations, 2)),
      read_only_share_(read_only_share),
      elements_(keys, distribution),
      random_(seed) {}

void ArrayWalk::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t element = 0; element < keys_; ++element) {
    visit({.key = KeyName(kPrefix, element).view(), .integer = static_cast<std::int64_t>(element)});
  }
}

InvariantRule ArrayWalk::invariant() const {
  return {.statement = "the values 0 to " + std::to_string(keys_ - 1) + ", each one once",
          .records = keys_,
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<PermutationAudit>(keys_)};
}

}  // namespace kilokv::engine
