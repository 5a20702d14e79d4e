#include "server/storage/disk_space.hpp"

#include <gtest/gtest.h>

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
  EXPECT_EQ(full.violation()->knob, "--disk-reserve");
  EXPECT_TRUE(full.retry_after_us().has_value());
  EXPECT_EQ(space.reserved_bytes(), 100u);  // what was refused is not held
  space.release(60);
  EXPECT_TRUE(space.reserve(60).ok());
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
