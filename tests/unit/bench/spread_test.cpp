// Medians and spreads of repeats.
#include "client/bench/spread.hpp"

#include <gtest/gtest.h>

namespace kilokv::bench {
namespace {

TEST(Spread, TheMedianIsTheMiddle) {
  EXPECT_DOUBLE_EQ(summarize({30, 10, 20}).median, 20);
  EXPECT_DOUBLE_EQ(summarize({40, 10, 20, 30}).median, 25);
  EXPECT_DOUBLE_EQ(summarize({7}).median, 7);
}

TEST(Spread, FewRunsAllCount) {
  const Summary four = summarize({100, 110, 90, 100});
  EXPECT_DOUBLE_EQ(four.low, 90);
  EXPECT_DOUBLE_EQ(four.high, 110);
  EXPECT_DOUBLE_EQ(four.spread, 0.2);
}

TEST(Spread, OfFiveRunsTheSlowestAndTheFastestDoNotCount) {
  const Summary five = summarize({100, 1, 98, 500, 104});
  EXPECT_DOUBLE_EQ(five.median, 100);
  EXPECT_DOUBLE_EQ(five.low, 98);
  EXPECT_DOUBLE_EQ(five.high, 104);
  EXPECT_DOUBLE_EQ(five.spread, 0.06);
  EXPECT_GT(summarize({100, 1, 2, 500, 104}).spread, 1) << "two disturbed runs of five do count";
}

TEST(Spread, NothingAndZeros) {
  EXPECT_DOUBLE_EQ(summarize({}).median, 0);
  EXPECT_DOUBLE_EQ(summarize({}).spread, 0);
  EXPECT_DOUBLE_EQ(summarize({0, 0, 0}).spread, 1) << "nothing can be said of runs that did nothing";
}

}  // namespace
}  // namespace kilokv::bench
