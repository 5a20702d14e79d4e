// The limit that adapts, on one lane that stands for many threads: it changes once in a window of attempts, and by what
// became of them.

#include "engine/stm/papers/concurrency_limit.hpp"

#include <cstdint>
#include <vector>

#include "engine/platform/host.hpp"
#include "engine/stm/papers/kilo.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kThreads = 64;
constexpr int kWindow = 8;  // attempts, as the limit has it

// One thread of many.
class WidePlatform : public HostPlatform {
 public:
  using HostPlatform::HostPlatform;
  static constexpr std::uint32_t threads() { return kThreads; }
};

struct Limit {
  explicit Limit(std::uint32_t fixed = 0) {
    arguments.kilo.words = words.data();
    arguments.kilo_tuning.concurrency_limit = fixed;
  }

  // Makes `attempts` attempts, and the first `failures` of them fail. Returns what the last one changed.
  LimitChange learn(int attempts, int failures) {
    LimitChange last = LimitChange::none;
    for (int i = 0; i < attempts; ++i) {
      if (last != LimitChange::none) FAIL("no change before the last attempt");
      last = limit.learn(true, i < failures);
    }
    return last;
  }
  std::uint64_t now() const { return words[kKiloStride * kKiloLimit]; }

  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(kilo_words(1));
  KiloArguments<HostSpace> arguments;
  ThreadTeam team{1};
  WidePlatform platform{&team, 0, nullptr};
  ConcurrencyLimit<WidePlatform, KiloRules> limit{platform, arguments};
};

TEST(a_limit_changes_once_in_a_window) {
  Limit limit;
  EXPECT_TRUE(limit.learn(kWindow - 1, kWindow - 1) == LimitChange::none);
  EXPECT_EQ(limit.now(), 0u);
  EXPECT_TRUE(limit.learn(1, 1) == LimitChange::lowered);
  EXPECT_EQ(limit.now(), kThreads / 2);
  EXPECT_TRUE(limit.learn(kWindow, kWindow) == LimitChange::lowered);  // the next window begins anew
  EXPECT_EQ(limit.now(), kThreads / 4);
}

TEST(a_lane_that_made_no_attempt_does_not_count) {
  Limit limit;
  for (int i = 0; i < 3 * kWindow; ++i) EXPECT_TRUE(limit.limit.learn(false, false) == LimitChange::none);
  EXPECT_TRUE(limit.learn(kWindow, kWindow) == LimitChange::lowered);
}

TEST(half_of_the_attempts_lower_it_and_hardly_one_raises_it) {
  Limit limit;
  EXPECT_TRUE(limit.learn(kWindow, kWindow / 2) == LimitChange::lowered);
  EXPECT_EQ(limit.now(), 32u);
  EXPECT_TRUE(limit.learn(kWindow, kWindow / 2 - 1) == LimitChange::none);
  EXPECT_TRUE(limit.learn(kWindow, 1) == LimitChange::raised);
  EXPECT_EQ(limit.now(), 40u);
  EXPECT_TRUE(limit.learn(kWindow, 0) == LimitChange::raised);
  EXPECT_EQ(limit.now(), 50u);
}

// Groups that saw the same are heard once.
TEST(a_limit_that_another_group_has_changed_stays) {
  Limit limit;
  EXPECT_TRUE(limit.learn(kWindow, kWindow) == LimitChange::lowered);
  limit.words[kKiloStride * kKiloLimit] = 7;
  EXPECT_TRUE(limit.learn(kWindow, kWindow) == LimitChange::none);
  EXPECT_EQ(limit.now(), 7u);
  EXPECT_TRUE(limit.learn(kWindow, kWindow) == LimitChange::lowered);
  EXPECT_EQ(limit.now(), 3u);
}

TEST(a_fixed_limit_does_not_adapt) {
  Limit limit(5);
  EXPECT_TRUE(limit.learn(10 * kWindow, 10 * kWindow) == LimitChange::none);
  EXPECT_EQ(limit.now(), 0u);
}

// As many as the limit says are let in, and one more once one of them has ended.
TEST(as_many_begin_as_the_limit_says) {
  Limit limit(2);
  ConcurrencyLimit<WidePlatform, KiloRules> second{limit.platform, limit.arguments};
  ConcurrencyLimit<WidePlatform, KiloRules> third{limit.platform, limit.arguments};
  EXPECT_TRUE(limit.limit.begin());
  EXPECT_TRUE(second.begin());
  EXPECT_FALSE(third.begin());
  limit.limit.end();
  EXPECT_TRUE(third.begin());
}

}  // namespace
}  // namespace kilokv::engine
