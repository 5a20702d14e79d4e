// The probe goes the way of a request: a stage that hangs keeps it, and an idle server gives it back at once. And what
// the start tells of its progress.
#include <string>
#include <vector>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using ProbeTest = CoreFixture;

TEST_F(ProbeTest, AnIdleServerGivesItBackWithoutABatch) {
  int came_back = 0;
  database->probe([&] { ++came_back; });
  settle();
  EXPECT_EQ(came_back, 1);
  run(add("a", 1));
  database->probe([&] { ++came_back; });
  settle();
  EXPECT_EQ(came_back, 2);
  EXPECT_EQ(database->status().batches, 1u);
}

TEST_F(ProbeTest, AStageThatHangsKeepsIt) {
  for (const char* stage : {"executor", "log", "answer"}) {
    SCOPED_TRACE(stage);
    bool came_back = false;
    sim.scheduler.hold(stage);
    const auto sink = submit(add("a", 1));
    settle();
    database->probe([&] { came_back = true; });
    sim.scheduler.run_for(60'000'000);
    EXPECT_FALSE(came_back);
    EXPECT_FALSE(sink->done);
    sim.scheduler.hold("");
    settle();
    EXPECT_TRUE(came_back);
    EXPECT_TRUE(sink->done);
  }
}

TEST_F(ProbeTest, ItComesBackWhileTheServerDrains) {
  bool came_back = false, drained = false;
  run(add("a", 1));
  database->drain([] {}, [&] { drained = true; });
  settle();
  EXPECT_TRUE(drained);
  database->probe([&] { came_back = true; });
  settle();
  EXPECT_TRUE(came_back);
}

TEST_F(ProbeTest, TheStartTellsItsProgress) {
  std::vector<RecoveryProgress> told;
  events.recovering = [&](const RecoveryProgress& progress) { told.push_back(progress); };
  run(add("a", 1));
  run(add("b", 1));
  EXPECT_TRUE(told.empty());
  reopen();
  // The first word comes at once, and the next after a second, which this replay does not take.
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].batch, 1u);
  EXPECT_FALSE(told[0].counting);
}

TEST_F(ProbeTest, TheStartTellsWhichRecordsItHasLoaded) {
  run([](engine::ColumnsBuilder& b) {
    for (int i = 0; i < 5000; ++i) add("key" + std::to_string(i), 1)(b);
  });
  database->drain([] {}, [] {});  // writes a checkpoint
  settle();
  std::vector<RecoveryProgress> told;
  events.recovering = [&](const RecoveryProgress& progress) { told.push_back(progress); };
  reopen();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].records, 4096u);
  EXPECT_EQ(told[0].batch, 0u);
}

}  // namespace
}  // namespace kilokv::server
