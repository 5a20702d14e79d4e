#include "server/core/pipeline/sync_watch.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kilokv::server {
namespace {

constexpr DurationUs kSecond = 1000000;

class SyncWatchTest : public ::testing::Test {
 protected:
  SyncWatchTest() {
    events_.sync_slow = [this](const AppendReport& report) { slow_.push_back(report); };
    events_.sync_hangs = [this](DurationUs for_us) { hangs_.push_back(for_us); };
    options_.slow_sync_us = 250000;
  }

  DatabaseOptions options_;
  DatabaseEvents events_;
  std::vector<AppendReport> slow_;
  std::vector<DurationUs> hangs_;
};

TEST_F(SyncWatchTest, TellsFromTheThresholdOn) {
  SyncWatch watch(options_, &events_);
  watch.begin(1000);
  watch.end(1000 + 249999, 7, 2);
  EXPECT_TRUE(slow_.empty());
  watch.begin(1000);
  watch.end(1000 + 250000, 9, 3);
  ASSERT_EQ(slow_.size(), 1u);
  EXPECT_EQ(slow_[0].took_us, 250000);
  EXPECT_EQ(slow_[0].last_batch, 9u);
  EXPECT_EQ(slow_[0].batches, 3u);
}

// Another worker looks, because the one that syncs cannot tell.
TEST_F(SyncWatchTest, TellsOfASyncThatDoesNotEndMoreAndMoreSeldom) {
  SyncWatch watch(options_, &events_);
  watch.look(100 * kSecond);
  EXPECT_TRUE(hangs_.empty()) << "nothing is being synced";
  watch.begin(0);
  for (DurationUs now = 0; now <= 60 * kSecond; now += kSecond / 2) watch.look(now);
  EXPECT_EQ(hangs_, (std::vector<DurationUs>{5 * kSecond, 10 * kSecond, 20 * kSecond, 40 * kSecond}));
  watch.end(61 * kSecond, 1, 1);
  EXPECT_EQ(slow_.size(), 1u);
  watch.look(200 * kSecond);
  EXPECT_EQ(hangs_.size(), 4u);
  watch.begin(300 * kSecond);  // the next one that hangs is told of at once again
  watch.look(304 * kSecond);
  watch.look(305 * kSecond);
  EXPECT_EQ(hangs_.back(), 5 * kSecond);
  EXPECT_EQ(hangs_.size(), 5u);
}

TEST_F(SyncWatchTest, NothingIsToldWithoutAThreshold) {
  options_.slow_sync_us = 0;
  SyncWatch watch(options_, &events_);
  watch.begin(0);
  watch.look(1000 * kSecond);
  watch.end(1000 * kSecond, 1, 1);
  EXPECT_TRUE(slow_.empty() && hangs_.empty());
}

// A threshold above that of a sync that hangs: the latter waits for it.
TEST_F(SyncWatchTest, ASyncThatIsNotSlowDoesNotHang) {
  options_.slow_sync_us = 60 * kSecond;
  SyncWatch watch(options_, &events_);
  watch.begin(0);
  watch.look(59 * kSecond);
  EXPECT_TRUE(hangs_.empty());
  watch.look(60 * kSecond);
  EXPECT_EQ(hangs_.size(), 1u);
}

}  // namespace
}  // namespace kilokv::server
