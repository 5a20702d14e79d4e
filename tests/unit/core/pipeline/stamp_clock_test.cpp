// Stamps while the wall clock jumps, goes back, or sleeps with the machine.
#include "server/core/pipeline/stamp_clock.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/sim_environment.hpp"

namespace kilokv::server {
namespace {

using Kind = ClockChange::Kind;

constexpr DurationUs kSecond = 1000000;
constexpr DurationUs kHour = 3600 * kSecond;
constexpr DurationUs kYear = 365 * 24 * kHour;

class StampClockTest : public ::testing::Test {
 protected:
  StampClock make(TimeUs last_stamp_us) {
    return {&clock, kHour, last_stamp_us, [this](const ClockChange& change) { changes.push_back(change); }};
  }
  std::vector<Kind> kinds() {
    std::vector<Kind> kinds;
    for (const ClockChange& change : changes) kinds.push_back(change.kind);
    return kinds;
  }

  SimClock clock;
  std::vector<ClockChange> changes;
};

TEST_F(StampClockTest, TheWallClockIsTheStamp) {
  StampClock stamps = make(0);
  for (int i = 0; i < 3; ++i) {
    clock.advance(10 * kHour);
    EXPECT_EQ(stamps.now_us(), clock.wall_us());
    EXPECT_EQ(stamps.take(), clock.wall_us());
  }
  EXPECT_TRUE(changes.empty());
}

TEST_F(StampClockTest, AJumpUpToTheLimitIsFollowedAndReported) {
  StampClock stamps = make(0);
  stamps.take();
  clock.jump_wall(kSecond);  // too small to report
  EXPECT_EQ(stamps.take(), clock.wall_us());
  EXPECT_TRUE(changes.empty());
  clock.jump_wall(kHour);
  EXPECT_EQ(stamps.take(), clock.wall_us());
  ASSERT_EQ(kinds(), std::vector{Kind::jumped});
  EXPECT_EQ(changes[0].by_us, kHour);
  EXPECT_EQ(changes[0].stamp_us, clock.wall_us());
  stamps.take();
  EXPECT_EQ(changes.size(), 1u);
}

TEST_F(StampClockTest, ALongerJumpIsNotFollowedUntilTheClockIsBack) {
  StampClock stamps = make(0);
  const TimeUs begin = stamps.take();
  clock.jump_wall(40 * kYear);
  clock.advance(kSecond);
  EXPECT_EQ(stamps.now_us(), begin + kSecond);
  EXPECT_TRUE(changes.empty()) << "only a batch reports";
  EXPECT_EQ(stamps.take(), begin + kSecond);
  clock.advance(kHour);
  EXPECT_EQ(stamps.take(), begin + kSecond + kHour);
  ASSERT_EQ(kinds(), std::vector{Kind::ahead}) << "once, not with every batch";
  EXPECT_EQ(changes[0].by_us, 40 * kYear);
  clock.jump_wall(-40 * kYear);
  EXPECT_EQ(stamps.take(), clock.wall_us());
  EXPECT_EQ(kinds(), (std::vector{Kind::ahead, Kind::in_step}));
}

TEST_F(StampClockTest, OneMicrosecondMoreThanTheLimitIsTooFar) {
  StampClock stamps = make(0);
  const TimeUs begin = stamps.take();
  clock.jump_wall(kHour + 1);
  EXPECT_EQ(stamps.take(), begin);
}

TEST_F(StampClockTest, AClockThatGoesBackIsReportedAndStampsGoOn) {
  StampClock stamps = make(0);
  const TimeUs begin = stamps.take();
  clock.jump_wall(-kSecond);  // too small to report
  clock.advance(300);
  EXPECT_EQ(stamps.take(), begin + 300);
  EXPECT_TRUE(changes.empty());
  clock.jump_wall(-kHour);
  clock.advance(300);
  EXPECT_EQ(stamps.take(), begin + 600);
  ASSERT_EQ(kinds(), std::vector{Kind::behind});
  EXPECT_EQ(changes[0].by_us, -kHour - kSecond);
  clock.jump_wall(kHour + kSecond);
  EXPECT_EQ(stamps.take(), begin + 600);
  EXPECT_EQ(kinds(), (std::vector{Kind::behind, Kind::in_step}));
}

TEST_F(StampClockTest, AMachineThatSleptHasNotJumped) {
  StampClock stamps = make(0);
  stamps.take();
  clock.sleep(100 * kHour);
  EXPECT_EQ(stamps.take(), clock.wall_us());
  EXPECT_TRUE(changes.empty());
}

TEST_F(StampClockTest, AfterAStartTheWallClockCountsUnlessItIsBehind) {
  StampClock later = make(clock.wall_us() - 2 * kHour);
  EXPECT_EQ(later.take(), clock.wall_us());
  EXPECT_TRUE(changes.empty()) << "the server was stopped that long";
  StampClock earlier = make(clock.wall_us() + kHour);
  EXPECT_EQ(earlier.take(), clock.wall_us() + kHour);
  EXPECT_EQ(kinds(), std::vector{Kind::behind});
}

}  // namespace
}  // namespace kilokv::server
