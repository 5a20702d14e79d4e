// The mask of live keys against a list of flags.
#include "engine/table/live_mask.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

void expect_equal(const LiveMask& mask, const std::vector<bool>& flags) {
  std::size_t live = 0;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    ASSERT_TRUE(mask.has(i) == flags[i]);
    live += flags[i] ? 1 : 0;
    const auto next = std::find(flags.begin() + static_cast<std::ptrdiff_t>(i), flags.end(), true);
    const std::size_t expected =
        next == flags.end() ? LiveMask::kPositions : static_cast<std::size_t>(next - flags.begin());
    ASSERT_TRUE(mask.next(i) == expected);
  }
  std::size_t last = LiveMask::kPositions;
  for (std::size_t i = 0; i <= flags.size(); ++i) {
    ASSERT_TRUE(mask.previous(i) == last);
    if (i < flags.size() && flags[i]) last = i;
  }
  ASSERT_TRUE(mask.previous(LiveMask::kPositions) == last);
  ASSERT_TRUE(mask.count() == live);
  ASSERT_TRUE(mask.next(LiveMask::kPositions) == LiveMask::kPositions);
}

TEST(live_mask_equals_a_list_of_flags) {
  std::mt19937 random(20261127);
  for (int round = 0; round < 200 && !test::has_failed(); ++round) {
    LiveMask mask;
    std::vector<bool> flags;
    for (int step = 0; step < 600; ++step) {
      const std::size_t at = flags.empty() ? 0 : random() % flags.size();
      if (flags.size() < LiveMask::kPositions && random() % 3 != 0) {
        const std::size_t position = random() % (flags.size() + 1);
        mask.insert(position);
        flags.insert(flags.begin() + static_cast<std::ptrdiff_t>(position), false);
      } else if (!flags.empty() && !flags[at] && random() % 2 == 0) {
        mask.erase(at);
        flags.erase(flags.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (!flags.empty()) {
        const bool live = random() % 3 != 0;
        mask.set(at, live);
        flags[at] = live;
      }
    }
    expect_equal(mask, flags);
    const std::size_t keep = random() % (flags.size() + 1);
    const LiveMask upper = mask.cut(keep);
    expect_equal(upper, {flags.begin() + static_cast<std::ptrdiff_t>(keep), flags.end()});
    flags.resize(keep);
    expect_equal(mask, flags);
  }
}

}  // namespace
}  // namespace kilokv::engine
