#include "server/core/waiting/lane_turns.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "server/core/options.hpp"

namespace kilokv::server {
namespace {

class LaneTurnsTest : public ::testing::Test {
 protected:
  // Serves the next one, which then has more.
  const Turn* serve(std::uint64_t cost) {
    Turn* const turn = turns.next();
    turns.took(turn, cost);
    turns.enter(turn, cost);
    return turn;
  }

  LaneTurns turns;
  Turn a, b, c;
};

TEST_F(LaneTurnsTest, WhoHasLittleGoesBeforeThoseWhoAreBusy) {
  for (Turn* turn : {&a, &b}) turns.enter(turn, kWholeBatch);
  for (int i = 0; i < 5; ++i) serve(kWholeBatch);
  turns.enter(&c, 1);
  EXPECT_EQ(turns.next(), &c);
  turns.took(&c, 1);
  EXPECT_FALSE(c.waits());
  EXPECT_NE(turns.next(), &c);
}

TEST_F(LaneTurnsTest, EqualsAlternate) {
  turns.enter(&a, 10);
  turns.enter(&b, 10);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(serve(10), &a);
    EXPECT_EQ(serve(10), &b);
  }
}

TEST_F(LaneTurnsTest, WhoComesBackKeepsNoCredit) {
  turns.enter(&a, 10);
  for (int i = 0; i < 100; ++i) serve(10);
  turns.enter(&b, 10);
  int of_a = 0;
  for (int i = 0; i < 10; ++i) of_a += serve(10) == &a ? 1 : 0;
  EXPECT_EQ(of_a, 5);
}

// Each has one large transaction. One of them always waits.
TEST_F(LaneTurnsTest, WhoHasWaitedGoesBeforeNewcomersHoweverManyThereAre) {
  for (const double weight : {1.0, 3.0}) {
    Turn waits;
    turns.enter(&waits, kWholeBatch / 3);
    for (int i = 0; i < 3; ++i) serve(kWholeBatch / 3);
    std::deque<Turn> newcomers;
    int served = 0;
    for (; served < 60; ++served) {
      if (newcomers.empty() || !newcomers.back().waits()) {
        newcomers.emplace_back().weight = weight;
        turns.enter(&newcomers.back(), kWholeBatch);
      }
      Turn* const next = turns.next();
      turns.took(next, kWholeBatch);
      if (next == &waits) break;
    }
    EXPECT_LT(served, 60) << "newcomers of weight " << weight << " always passed";
    for (Turn& newcomer : newcomers) turns.leave(&newcomer);
  }
}

TEST_F(LaneTurnsTest, TheFirstWhoWasPutOffBeginsTheNextBatchButNotTwoInARow) {
  turns.enter(&a, kWholeBatch);
  turns.enter(&b, kWholeBatch);
  turns.enter(&c, 1);
  EXPECT_EQ(serve(1), &c);
  turns.leave(&c);
  turns.put_off(&a);
  turns.put_off(&b);
  EXPECT_EQ(turns.next(), nullptr);
  EXPECT_FALSE(turns.empty());
  turns.begin_batch();
  turns.enter(&c, 1);
  EXPECT_EQ(turns.next(), &a);
  turns.put_off(&a);  // there was no room even for the first
  turns.begin_batch();
  EXPECT_EQ(serve(kWholeBatch), &a);
  EXPECT_EQ(serve(1), &c);
  turns.leave(&c);
  turns.put_off(turns.next());
  turns.begin_batch();
  turns.enter(&c, 1);
  EXPECT_EQ(turns.next(), &c);
}

// A client whose clock is far ahead is served with something small, while those with large transactions do not fit. So
// the present is far after their clocks. But each of them comes back at the present when it has had one.
TEST_F(LaneTurnsTest, ANewcomerWaitsForOneRoundAtMost) {
  turns.enter(&a, 12 * kWholeBatch);
  turns.took(&a, 12 * kWholeBatch);
  turns.enter(&a, 1);
  std::deque<Turn> busy(16);
  for (Turn& turn : busy) turns.enter(&turn, kWholeBatch);
  turns.begin_batch();
  for (std::size_t i = 0; i < busy.size(); ++i) turns.put_off(turns.next());
  ASSERT_EQ(turns.next(), &a);
  turns.took(&a, 1);
  turns.enter(&b, 1);
  std::size_t batches = 0;
  for (; batches < 100; ++batches) {  // each has room for one large transaction, or for the small one
    turns.begin_batch();
    Turn* const next = turns.next();
    if (next == &b) break;
    turns.took(next, kWholeBatch);
    turns.enter(next, kWholeBatch);
    while (turns.next() != nullptr) turns.put_off(turns.next());
  }
  EXPECT_LE(batches, busy.size());
}

// The first takes its turn, comes back, and does not fit any more.
TEST_F(LaneTurnsTest, WhoHasBegunTheBatchDoesNotBeginTheNext) {
  turns.enter(&a, kWholeBatch);
  turns.put_off(&a);
  turns.begin_batch();
  EXPECT_EQ(serve(kWholeBatch), &a);
  turns.put_off(&a);
  turns.begin_batch();
  turns.enter(&b, kWholeBatch / 8);
  EXPECT_EQ(turns.next(), &b);
}

TEST_F(LaneTurnsTest, WhoLeavesIsNowhere) {
  turns.enter(&a, 1);
  turns.enter(&b, 1);
  turns.put_off(&a);
  turns.leave(&a);
  turns.leave(&b);
  turns.leave(&c);
  EXPECT_TRUE(turns.empty());
  turns.begin_batch();
  EXPECT_EQ(turns.next(), nullptr);
  turns.enter(&a, 1);
  EXPECT_EQ(turns.next(), &a);
}

TEST_F(LaneTurnsTest, AWeightOfThreeGivesThreeParts) {
  b.weight = 3;
  turns.enter(&a, kWholeBatch / 100);
  turns.enter(&b, kWholeBatch / 100);
  int of_b = 0;
  for (int i = 0; i < 400; ++i) of_b += serve(kWholeBatch / 100) == &b ? 1 : 0;
  EXPECT_NEAR(of_b, 300, 3);
}

}  // namespace
}  // namespace kilokv::server
