// How many keys a batch of expiries may delete.
#include "server/core/pipeline/expiry_pace.hpp"

#include <gtest/gtest.h>

namespace kilokv::server {
namespace {

constexpr std::size_t kMost = 100000;

class ExpiryPaceTest : public ::testing::Test {
 protected:
  ExpiryPaceTest() {
    for (int i = 0; i < 100; ++i) run(250, 1000);  // a microsecond for each key
  }
  // Runs a batch. Each of its keys takes this time.
  void run(std::size_t keys, DurationUs ns_per_key) {
    const DurationUs us = static_cast<DurationUs>(keys) * ns_per_key / 1000;
    now += us;
    pace.note_expiries(now, keys, us);
  }

  double keys(TimeUs at, std::size_t most = kMost) const { return static_cast<double>(pace.keys(at, most)); }

  ExpiryPace pace;
  TimeUs now = 1000000;
};

TEST_F(ExpiryPaceTest, ABatchIsBoundedInTime) {
  EXPECT_NEAR(keys(now), ExpiryPace::kBatchUs, 2);
  EXPECT_EQ(pace.keys(now, 100), 100u) << "and in keys";
  for (int i = 0; i < 100; ++i) run(100, 2000);
  EXPECT_NEAR(keys(now), ExpiryPace::kBatchUs / 2, 2);
}

TEST_F(ExpiryPaceTest, ItMayTakeAsLongAsClientsTook) {
  pace.note_clients(3000);
  pace.note_clients(5000);
  EXPECT_NEAR(keys(now), 8000, 50);
  EXPECT_EQ(pace.keys(now, 4096), 4096u);
  run(8000, 1000);
  EXPECT_NEAR(keys(now), ExpiryPace::kBatchUs, 2) << "since the last batch of expiries";
}

// Such as for a sync of the log.
TEST_F(ExpiryPaceTest, ItMayTakeAQuarterOfTheTimeThatItWaited) {
  EXPECT_NEAR(keys(now + 800), ExpiryPace::kBatchUs, 2);
  EXPECT_NEAR(keys(now + 4000), 1000, 10);
  EXPECT_NEAR(keys(now + 4000000), ExpiryPace::kLateBatchUs, 20);
}

TEST_F(ExpiryPaceTest, OneInterruptedBatchSaysLittle) {
  run(250, 400000);  // the machine stood still for 100 ms
  EXPECT_GE(pace.keys(now, kMost), 200u);
  for (int i = 0; i < 1000; ++i) run(pace.keys(now, kMost), i % 5 == 0 ? 50000 : 1000);  // a busy machine
  EXPECT_GE(pace.keys(now, kMost), 125u);
  for (int i = 0; i < 100; ++i) run(250, 1000000);
  EXPECT_EQ(pace.keys(now, kMost), ExpiryPace::kKeysMin);
}

TEST_F(ExpiryPaceTest, WhatTakesNoTimeIsBoundedInKeysAlone) {
  ExpiryPace other;
  EXPECT_LE(other.keys(0, kMost), 1000u) << "nothing is measured yet";
  for (int i = 0; i < 100; ++i) other.note_expiries(0, 1, 0);
  EXPECT_EQ(other.keys(0, kMost), kMost);
}

}  // namespace
}  // namespace kilokv::server
