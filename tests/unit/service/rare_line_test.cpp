// When a line that clients can cause is written, and what it counts.
#include "server/service/rare_line.hpp"

#include <gtest/gtest.h>

namespace kilokv::server {
namespace {

using Clock = std::chrono::steady_clock;

TEST(RareLine, TellsTheFirstAtOnceAndThenHowManyThereWere) {
  RareLine line(std::chrono::seconds(10));
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(line.count(begin), 1u);
  for (int i = 1; i <= 99; ++i) EXPECT_EQ(line.count(begin + std::chrono::milliseconds(100 * i)), 0u);
  EXPECT_EQ(line.count(begin + std::chrono::seconds(10)), 100u) << "this one counts, too";
  EXPECT_EQ(line.count(begin + std::chrono::seconds(11)), 0u) << "ten seconds after the last line";
  EXPECT_EQ(line.count(begin + std::chrono::seconds(60)), 2u);
  EXPECT_EQ(line.total(), 103u);
}

TEST(FewLines, TellHowManyGotNone) {
  FewLines lines(2);
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(lines.next(begin), 0u);
  EXPECT_EQ(lines.next(begin), 0u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(lines.next(begin + std::chrono::milliseconds(999)), std::nullopt);
  EXPECT_EQ(lines.next(begin + std::chrono::seconds(1)), 5u);
  EXPECT_EQ(lines.next(begin + std::chrono::seconds(1)), 0u);
}

}  // namespace
}  // namespace kilokv::server
