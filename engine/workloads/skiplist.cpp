#include "engine/workloads/skiplist.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace kilokv::engine {

namespace {

class ListAudit : public StateAudit {
 public:
  explicit ListAudit(std::uint64_t end) : end_(end) {}

  void add(std::string_view key, std::int64_t integer, std::string_view) override {
    const auto level = static_cast<std::size_t>(key[KeyName::kPrefixBytes - 1] - '0');
    if (level < Skiplist::kLevels) levels_[level].emplace_back(KeyName::index_of(key), integer);
  }

  std::string violation() const override {
    std::vector<std::uint64_t> below;
    for (std::size_t level = 0; level < Skiplist::kLevels; ++level) {
      const std::string where = "level " + std::to_string(level) + ": ";
      std::vector<Node> nodes = levels_[level];
      std::sort(nodes.begin(), nodes.end());
      if (const std::string problem = broken_link(nodes); !problem.empty()) return where + problem;
      std::vector<std::uint64_t> numbers;
      numbers.reserve(nodes.size());
      for (const Node& node : nodes) numbers.push_back(node.first);
      const auto ends_below = [&](std::uint64_t number) { return number != 0 && Skiplist::height_of(number) <= level; };
      below.erase(std::remove_if(below.begin(), below.end(), ends_below), below.end());
      if (level > 0 && numbers != below) return where + "it has other numbers than those that reach it from below";
      below = std::move(numbers);
    }
    return {};
  }

 private:
  using Node = std::pair<std::uint64_t, std::int64_t>;  // number, next

  // Checks that every node, in the order of the numbers, links to the next one. Then the list has all of them, sorted.
  std::string broken_link(const std::vector<Node>& nodes) const {
    if (nodes.empty() || nodes.front().first != 0) return "it has no head";
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::uint64_t next = i + 1 < nodes.size() ? nodes[i + 1].first : end_;
      if (nodes[i].second == static_cast<std::int64_t>(next)) continue;
      return std::to_string(nodes[i].first) + " leads to " + std::to_string(nodes[i].second) + " instead of " +
             std::to_string(next);
    }
    return {};
  }

  std::uint64_t end_;
  std::array<std::vector<Node>, Skiplist::kLevels> levels_;
};

}  // namespace

Skiplist::Skiplist(std::uint64_t keys, const DistributionOptions& distribution, double read_only_share,
                   std::uint64_t seed)
    : keys_(keys),
      read_only_share_(read_only_share),
      numbers_(2 * keys, distribution),
      random_(seed),
      last_call_(2 * keys + 1, 0),
      levels_(kLevels, OrderedBits(2 * keys + 2)) {
  for (OrderedBits& level : levels_) {
    level.insert(0);
    level.insert(end());
  }
  for (std::uint64_t number = 2; number < end(); number += 2) {
    for (std::size_t level = 0; level < height_of(number); ++level) levels_[level].insert(number);
  }
}

std::size_t Skiplist::height_of(std::uint64_t number) {
  const auto zeros = static_cast<std::size_t>(std::countr_zero(splitmix64(&number)));
  return std::min(1 + zeros / 2, kLevels);
}

// Draws a number that this call has not drawn before, if a few tries find one.
std::uint64_t Skiplist::draw_number() {
  std::uint64_t number = 0;
  for (int tries = 0; tries < 8; ++tries) {
    number = 1 + numbers_.draw(&random_);
    if (last_call_[number] != calls_) break;
  }
  last_call_[number] = calls_;
  return number;
}

void Skiplist::for_each_initial(const InitialVisitor& visit) const {
  for (std::size_t level = 0; level < kLevels; ++level) {
    std::uint64_t at = 0;
    for (std::uint64_t number = 2; number < end(); number += 2) {
      if (height_of(number) <= level) continue;
      visit({.key = node(level, at).view(), .integer = static_cast<std::int64_t>(number)});
      at = number;
    }
    visit({.key = node(level, at).view(), .integer = static_cast<std::int64_t>(end())});
  }
}

InvariantRule Skiplist::invariant() const {
  return {.statement = "each level is a sorted list from head to end, of those below it that reach it",
          .integers = true,
          .audit = std::make_unique<ListAudit>(end())};
}

}  // namespace kilokv::engine
