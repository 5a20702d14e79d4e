#include "engine/workloads/genetic.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv::engine {

namespace {

// All weights are multiples of 4, and the capacity is odd, so that no two neighbouring masks are equally far from it.
constexpr std::array<std::int64_t, 8> kWeights{12, 20, 28, 44, 52, 68, 76, 92};
constexpr std::int64_t kCapacity = 201;

class SolutionAudit : public StateAudit {
 public:
  explicit SolutionAudit(std::uint64_t solutions) : all_(solutions) {
    for (std::uint64_t place = 0; place < solutions; ++place) all_[place] = Genetic::initial(place);
  }

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const std::uint64_t place = KeyName::index_of(key);
    if (place >= all_.size()) return;
    best_ = std::min(best_, integer);
    if (std::find(all_.begin(), all_.end(), integer) == all_.end()) problem_ = text(place) + " was none at the start";
    if (integer > all_[place]) problem_ = text(place) + " has become worse";
  }

  std::string violation() const override {
    if (!problem_.empty() || best_ == *std::min_element(all_.begin(), all_.end())) return problem_;
    return "the best solution is lost";
  }

 private:
  static std::string text(std::uint64_t place) { return "solution " + std::to_string(place); }

  std::vector<std::int64_t> all_;  // at the start
  std::int64_t best_ = INT64_MAX;
  std::string problem_;
};

}  // namespace

std::int64_t Genetic::initial(std::uint64_t place) {
  const std::uint64_t mask = splitmix64(&place) % 256;
  std::int64_t weight = 0;
  for (std::size_t object = 0; object < kWeights.size(); ++object) {
    if ((mask >> object) % 2 == 1) weight += kWeights[object];
  }
  return std::abs(kCapacity - weight) * 256 + static_cast<std::int64_t>(mask);
}

void Genetic::for_each_initial(const InitialVisitor& visit) const {
  for (std::uint64_t place = 0; place < solutions_; ++place) {
    visit({.key = KeyName(kPrefix, place).view(), .integer = initial(place)});
  }
}

InvariantRule Genetic::invariant() const {
  return {.statement = std::to_string(solutions_) + " solutions, none worse than at the start, the best among them",
          .records = solutions_,
          .integers = true,
          .never_negative = true,
          .audit = std::make_unique<SolutionAudit>(solutions_)};
}

}  // namespace kilokv::engine
