// The transactions that wrote come in rank order, however many passes a batch took.

#include "engine/exec/collect/rank_order.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kTransactions = 100;

// The results of a batch, and those of its transactions that wrote, by rank. Every third transaction wrote nothing.
struct Ranked {
  BatchResults results;
  std::vector<std::uint32_t> expected;

  explicit Ranked(std::uint32_t passes) {
    std::vector<std::uint32_t> positions(kTransactions);
    std::iota(positions.begin(), positions.end(), 0u);
    std::mt19937 random(passes);
    std::shuffle(positions.begin(), positions.end(), random);
    results.passes = passes;
    for (std::uint32_t t = 0; t < kTransactions; ++t) {
      results.rank.push_back(static_cast<std::uint32_t>(random()) % passes * kTransactions + positions[t]);
      results.wrote.push_back(t % 3 == 0 ? 0 : 1);
      if (t % 3 != 0) expected.push_back(t);
    }
    std::sort(expected.begin(), expected.end(),
              [&](std::uint32_t a, std::uint32_t b) { return results.rank[a] < results.rank[b]; });
  }
};

TEST(any_number_of_passes) {
  RankOrder order;
  for (const std::uint32_t passes : {1u, 2u, 4u, 5u, 6u, 100u, 3u}) {
    const Ranked ranked(passes);
    order.sort(ranked.results, false);
    std::vector<std::uint32_t> found;
    order.for_each(ranked.results, [&](std::uint32_t t) { found.push_back(t); });
    EXPECT_TRUE(found == ranked.expected);
    std::vector<std::uint32_t> back;
    const std::uint32_t most = order.places(ranked.results) - 2;
    order.for_each_back(ranked.results, most, [&](std::uint32_t t) { back.push_back(t); });
    EXPECT_TRUE(std::equal(back.rbegin(), back.rend(), ranked.expected.begin(), ranked.expected.end() - 2));
  }
}

TEST(in_order) {
  Ranked ranked(1);
  std::iota(ranked.results.rank.begin(), ranked.results.rank.end(), 0u);
  RankOrder order;
  order.sort(ranked.results, true);
  std::vector<std::uint32_t> found;
  order.for_each(ranked.results, [&](std::uint32_t t) { found.push_back(t); });
  EXPECT_EQ(found.size(), ranked.expected.size());
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
}

}  // namespace
}  // namespace kilokv::engine
