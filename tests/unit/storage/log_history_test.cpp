// Which log records are kept, and since when.
#include "server/storage/log_history.hpp"

#include <gtest/gtest.h>

namespace kilokv::server::storage {
namespace {

constexpr std::uint64_t kSegmentBytes = 100, kNoBound = 1u << 20;

TEST(LogHistory, KeepsNothingAtFirst) {
  const LogHistory history(kSegmentBytes);
  EXPECT_EQ(history.since_us(), 0);
  EXPECT_EQ(history.first_batch(), 0u);
}

TEST(LogHistory, GoesBackToTheFirstRecordUntilSomeAreTrimmed) {
  LogHistory history(kSegmentBytes);
  for (BatchNumber batch = 1; batch <= 6; ++batch) history.add(batch, static_cast<TimeUs>(batch) * 10, 50);
  EXPECT_EQ(history.since_us(), 10);
  ASSERT_EQ(history.trim(5, 40, kNoBound).size(), 1u);  // batches 1 and 2
  EXPECT_EQ(history.first_batch(), 3u);
  EXPECT_EQ(history.since_us(), 20);  // batch 3, of 30, is kept, and so is all that came after 20
  ASSERT_EQ(history.trim(7, 0, 0).size(), 2u);
  EXPECT_EQ(history.first_batch(), 0u);
  EXPECT_EQ(history.since_us(), 60);
}

TEST(LogHistory, AfterARestartItPromisesOnlyWhatItKnows) {
  LogHistory history(kSegmentBytes);
  history.restore({.first_batch = 3, .last_batch = 4, .last_time_us = 40, .bytes = 100});
  history.restore({.first_batch = 5, .last_batch = 6, .last_time_us = 60, .bytes = 100});
  EXPECT_EQ(history.since_us(), 40);
  history.add(7, 70, 50);
  EXPECT_EQ(history.since_us(), 40);
}

}  // namespace
}  // namespace kilokv::server::storage
