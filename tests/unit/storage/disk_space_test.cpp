#include "server/storage/disk_space.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/shown_limit.hpp"

namespace kilokv::server::storage {
namespace {

TEST(DiskSpace, RefusesWhatWouldNotFitThreeTimesAndNamesTheKnob) {
  DiskSpace::Sample sample{.free_bytes = 1000 + 3 * 100, .unflushed_bytes = 0, .session_bytes = 0};
  DiskSpace space(1000, [&] { return sample; });
  EXPECT_TRUE(space.reserve(60).ok());
  EXPECT_TRUE(space.reserve(40).ok());
  const Status full = space.reserve(1);
  ASSERT_EQ(full.code(), StatusCode::resource_exhausted);
  ASSERT_NE(full.violation(), nullptr);
  EXPECT_EQ(full.violation()->field, "disk");
  EXPECT_EQ(full.violation()->setting, "--disk-reserve");
  EXPECT_EQ(full.reason(), ErrorReason::disk_full);
  EXPECT_TRUE(full.retry_after_us().has_value());
  EXPECT_EQ(space.reserved_bytes(), 100u);  // what was refused is not held
  space.release(60);
  EXPECT_TRUE(space.reserve(60).ok());
}

// What a reader sees: actual = total = reserve + buffers + a x stored + b x (written + before + wanted); limit = free.
void expect_sum(const Status& refused, const std::vector<std::uint64_t>& parts, std::uint64_t free_bytes) {
  expect_shown(refused, "lower --disk-reserve", ErrorReason::disk_full);
  EXPECT_EQ(refused.violation()->limit, std::to_string(free_bytes) + " bytes free");
  const std::vector<std::uint64_t> n = numbers_in(refused.violation()->actual);
  ASSERT_EQ(n.size(), 9u) << refused.message();
  EXPECT_EQ(n[0], n[1] + n[2] + n[3] * n[4] + n[5] * (n[6] + n[7] + n[8])) << refused.message();
  EXPECT_EQ((std::vector<std::uint64_t>{n[1], n[2], n[4], n[6], n[7], n[8]}), parts) << refused.message();
}

TEST(DiskSpace, TheNumbersOfARefusalAddUp) {
  DiskSpace::Sample sample{.free_bytes = 10000, .unflushed_bytes = 700, .session_bytes = 1100};
  DiskSpace space(1000, [&] { return sample; });
  const std::uint64_t left = (10000 - 1000 - 700 - 2 * 1100) / 3;
  ASSERT_TRUE(space.reserve(left - 20).ok());
  expect_sum(space.reserve(21), {1000, 700, 1100, 0, left - 20, 21}, 10000);
  ASSERT_TRUE(space.reserve(20).ok());
  sample.free_bytes = 999;
  expect_sum(space.reserve(1), {1000, 700, 1100, 0, left, 1}, 999);
}

TEST(DiskSpace, ACheckpointThatFindsNoRoomShowsWhatItNeeds) {
  DiskSpace space(1000,
                  [] { return DiskSpace::Sample{.free_bytes = 2000, .unflushed_bytes = 700, .session_bytes = 800}; });
  const Status refused = space.check_checkpoint();
  ASSERT_EQ(refused.code(), StatusCode::resource_exhausted);
  EXPECT_EQ(refused.message(),
            "disk is 2300 bytes needed for a checkpoint = 700 in memory buffers + 2 x 800 of stored results, which a "
            "lower --session-bytes-total-max keeps smaller; the limit is 2000 bytes free: make room on the disk");
}

TEST(DiskSpace, RecoversByItselfWhenSpaceIsFreed) {
  DiskSpace::Sample sample{.free_bytes = 10, .unflushed_bytes = 0, .session_bytes = 0};
  DiskSpace space(1000, [&] { return sample; });
  EXPECT_FALSE(space.reserve(1).ok());
  sample.free_bytes = 5000;
  EXPECT_TRUE(space.reserve(1).ok());
}

TEST(DiskSpace, CountsWhatWasAppendedSinceTheLastLookAndWhatIsStillInMemory) {
  DiskSpace::Sample sample{.free_bytes = 1000 + 300, .unflushed_bytes = 0, .session_bytes = 0};
  int looks = 0;
  DiskSpace space(1000, [&] {
    ++looks;
    return sample;
  });
  space.appended(90);
  sample.free_bytes = 1000 + 300 - 90;
  sample.unflushed_bytes = 90;
  EXPECT_TRUE(space.reserve(10).ok());  // 90 appended and 10 wanted, three times
  EXPECT_TRUE(space.reserve(30).ok());  // a new look: (300 - 90 - 90) / 3 = 40
  EXPECT_FALSE(space.reserve(1).ok());
  EXPECT_GE(looks, 3);
}

TEST(DiskSpace, KeepsRoomForTheSessionsThatTheNextCheckpointWrites) {
  DiskSpace::Sample sample{.free_bytes = 1000 + 300 + 2 * 500, .unflushed_bytes = 0, .session_bytes = 500};
  DiskSpace space(1000, [&] { return sample; });
  EXPECT_TRUE(space.reserve(100).ok());
  EXPECT_EQ(space.reserve(1).code(), StatusCode::resource_exhausted);
  space.release(100);
  sample.session_bytes = 2000;
  EXPECT_FALSE(space.check_checkpoint().ok());
  EXPECT_FALSE(space.reserve(1).ok());
  sample.session_bytes = 1000;
  EXPECT_TRUE(space.check_checkpoint().ok());  // what is kept free is for this
  EXPECT_FALSE(space.reserve(100).ok());
  sample.session_bytes = 0;
  EXPECT_TRUE(space.reserve(100).ok());
}

}  // namespace
}  // namespace kilokv::server::storage
