#include "server/storage/disk_space.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/shown_limit.hpp"

namespace kilokv::server::storage {
namespace {

Status reserve(DiskSpace* space, std::uint64_t bytes) { return space->reserve(bytes, LogUse::new_data); }

TEST(DiskSpace, RefusesWhatWouldNotFitThreeTimesAndNamesTheKnob) {
  DiskSpace::Sample sample{.free_bytes = 1000 + 3 * 100};
  DiskSpace space(1000, [&] { return sample; });
  EXPECT_TRUE(reserve(&space, 60).ok());
  EXPECT_TRUE(reserve(&space, 40).ok());
  const Status full = reserve(&space, 1);
  ASSERT_EQ(full.code(), StatusCode::resource_exhausted);
  ASSERT_NE(full.violation(), nullptr);
  EXPECT_EQ(full.violation()->field, "disk");
  EXPECT_EQ(full.violation()->setting, "--disk-reserve");
  EXPECT_EQ(full.reason(), ErrorReason::disk_full);
  EXPECT_TRUE(full.retry_after_us().has_value());
  EXPECT_EQ(space.reserved_bytes(), 100u);  // what was refused is not held
  space.release(60);
  EXPECT_TRUE(reserve(&space, 60).ok());
}

// What a reader sees: actual = total = the parts of a sum; limit = free.
void expect_sum(const Status& refused, const std::vector<std::uint64_t>& parts, std::uint64_t free_bytes) {
  expect_shown(refused, "lower --disk-reserve", ErrorReason::disk_full);
  EXPECT_EQ(refused.violation()->limit, std::to_string(free_bytes) + " bytes free: make room on the disk");
  const std::vector<std::uint64_t> n = numbers_in(refused.violation()->actual);
  ASSERT_EQ(n.size(), 11u) << refused.message();
  EXPECT_EQ(n[0], n[1] + n[2] + n[3] + n[4] + n[5] * n[6] + n[7] * (n[8] + n[9] + n[10])) << refused.message();
  EXPECT_EQ((std::vector<std::uint64_t>{n[1], n[2], n[3], n[4], n[6], n[8], n[9], n[10]}), parts) << refused.message();
}

constexpr DiskSpace::Sample kUsed{
    .free_bytes = 10000, .unflushed_bytes = 700, .state_bytes = 300, .compaction_bytes = 500, .session_bytes = 1100};

TEST(DiskSpace, TheNumbersOfARefusalAddUp) {
  DiskSpace::Sample sample = kUsed;
  DiskSpace space(1000, [&] { return sample; });
  const std::uint64_t left = (10000 - 1000 - 500 - 700 - 300 - 2 * 1100) / 3;
  ASSERT_TRUE(reserve(&space, left - 20).ok());
  expect_sum(reserve(&space, 21), {1000, 500, 700, 300, 1100, 0, left - 20, 21}, 10000);
  ASSERT_TRUE(reserve(&space, 20).ok());
  sample.free_bytes = 999;
  expect_sum(reserve(&space, 1), {1000, 500, 700, 300, 1100, 0, left, 1}, 999);
}

TEST(DiskSpace, ReadsAndDeletesUseWhatIsKeptFree) {
  DiskSpace space(1000, [] { return kUsed; });
  const std::uint64_t left = (10000 - 700 - 300 - 2 * 1100) / 3;
  EXPECT_FALSE(reserve(&space, left).ok());
  EXPECT_TRUE(space.reserve(left, LogUse::reads_and_deletes).ok());
  const Status refused = space.reserve(1, LogUse::reads_and_deletes);
  EXPECT_EQ(refused.reason(), ErrorReason::disk_full);
  EXPECT_EQ(
      refused.message(),
      "disk is 10001 bytes needed = 700 in memory buffers + 300 of changed state + 2 x 1100 of stored results + 3 "
      "x (0 just written + 2266 for requests accepted before + 1 for this one); the limit is 10000 bytes free: "
      "make room on the disk");
  EXPECT_EQ(refused.violation()->setting, "");
}

TEST(DiskSpace, TheRoomIsWhatMayStillBeReserved) {
  DiskSpace::Sample sample = kUsed;
  DiskSpace space(1000, [&] { return sample; });
  const std::uint64_t room = space.room(LogUse::new_data);
  EXPECT_GT(room, 0u);
  EXPECT_GT(space.room(LogUse::reads_and_deletes), room) << "these may use what is kept free";
  EXPECT_FALSE(reserve(&space, room + 1).ok());
  EXPECT_TRUE(reserve(&space, room - 10).ok());
  EXPECT_EQ(space.room(LogUse::new_data), 10u);
  EXPECT_TRUE(reserve(&space, 10).ok());
  EXPECT_EQ(space.room(LogUse::new_data), 0u);
  sample.free_bytes = 100;
  EXPECT_FALSE(reserve(&space, 1).ok()) << "it measures again";
  EXPECT_EQ(space.room(LogUse::new_data), 0u);
}

TEST(DiskSpace, ACompactionMayUseTheReserve) {
  DiskSpace::Sample sample = kUsed;
  sample.free_bytes = 700 + 300 + 2 * 1100 + 500;
  EXPECT_TRUE(DiskSpace(1000, [&] { return sample; }).can_compact());
  sample.free_bytes -= 1;
  EXPECT_FALSE(DiskSpace(1000, [&] { return sample; }).can_compact());
}

TEST(DiskSpace, ACheckpointThatFindsNoRoomShowsWhatItNeeds) {
  DiskSpace::Sample sample{
      .free_bytes = 2000, .unflushed_bytes = 600, .state_bytes = 100, .compaction_bytes = 5000, .session_bytes = 800};
  DiskSpace space(1000, [&] { return sample; });
  const Status refused = space.check_checkpoint();
  ASSERT_EQ(refused.code(), StatusCode::resource_exhausted);
  EXPECT_EQ(
      refused.message(),
      "disk is 2300 bytes needed for a checkpoint = 600 in memory buffers + 100 of changed state + 2 x 800 of stored "
      "results, which a lower --session-bytes-total-max keeps smaller; the limit is 2000 bytes free: make room on "
      "the disk");
  sample.free_bytes = 2300;
  EXPECT_TRUE(space.check_checkpoint().ok());
}

// A checkpoint is asked for before new data is refused: when the changed state is half of what is left.
TEST(DiskSpace, IsShortBeforeNewDataIsRefused) {
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  const auto is_short = [](std::uint64_t reserve_bytes, const DiskSpace::Sample& sample) {
    return DiskSpace(reserve_bytes, [&] { return sample; }).is_short();
  };
  DiskSpace::Sample sample{.free_bytes = 228 * kMiB,
                           .unflushed_bytes = 0,
                           .state_bytes = 50 * kMiB,
                           .compaction_bytes = 0,
                           .session_bytes = 0};
  EXPECT_FALSE(is_short(64 * kMiB, sample)) << "64 kept free, 64 to notice, 50 of state, and 50 left";
  sample.state_bytes += 1;
  EXPECT_TRUE(is_short(64 * kMiB, sample));
  sample = {.free_bytes = 16 * kMiB, .unflushed_bytes = 0, .state_bytes = 0, .compaction_bytes = 0, .session_bytes = 0};
  EXPECT_FALSE(is_short(0, sample));
  sample.free_bytes -= 1;
  EXPECT_TRUE(is_short(0, sample));
}

TEST(DiskSpace, RecoversByItselfWhenSpaceIsFreed) {
  DiskSpace::Sample sample{.free_bytes = 10};
  DiskSpace space(1000, [&] { return sample; });
  EXPECT_FALSE(reserve(&space, 1).ok());
  sample.free_bytes = 5000;
  EXPECT_TRUE(reserve(&space, 1).ok());
}

TEST(DiskSpace, CountsWhatWasAppendedSinceTheLastLookAndWhatIsStillInMemory) {
  DiskSpace::Sample sample{.free_bytes = 1000 + 300};
  int looks = 0;
  DiskSpace space(1000, [&] {
    ++looks;
    return sample;
  });
  space.appended(90);
  sample.free_bytes = 1000 + 300 - 90;
  sample.unflushed_bytes = 90;
  EXPECT_TRUE(reserve(&space, 10).ok());  // 90 appended and 10 wanted, three times
  EXPECT_TRUE(reserve(&space, 30).ok());  // a new look: (300 - 90 - 90) / 3 = 40
  EXPECT_FALSE(reserve(&space, 1).ok());
  EXPECT_GE(looks, 3);
}

TEST(DiskSpace, KeepsRoomForTheSessionsThatTheNextCheckpointWrites) {
  DiskSpace::Sample sample{.free_bytes = 1000 + 300 + 2 * 500, .session_bytes = 500};
  DiskSpace space(1000, [&] { return sample; });
  EXPECT_TRUE(reserve(&space, 100).ok());
  EXPECT_EQ(reserve(&space, 1).code(), StatusCode::resource_exhausted);
  space.release(100);
  sample.session_bytes = 2000;
  EXPECT_FALSE(space.check_checkpoint().ok());
  EXPECT_FALSE(reserve(&space, 1).ok());
  sample.session_bytes = 1000;
  EXPECT_TRUE(space.check_checkpoint().ok());  // what is kept free is for this
  EXPECT_FALSE(reserve(&space, 100).ok());
  sample.session_bytes = 0;
  EXPECT_TRUE(reserve(&space, 100).ok());
}

}  // namespace
}  // namespace kilokv::server::storage
