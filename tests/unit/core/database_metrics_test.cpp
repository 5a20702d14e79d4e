// What the pipeline measures, in virtual time.
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

constexpr DurationUs kMs = 1000, kSecond = 1000000;

// An append takes a while, or does not return before the test says so.
class SlowLog final : public MemoryLog {
 public:
  explicit SlowLog(SimClock* clock) : clock_(clock) {}
  Status append(std::span<const LogRecord> records) override {
    clock_->advance(append_us);
    if (during_append) during_append();
    return fails ? Status(StatusCode::internal, "the sync failed") : MemoryLog::append(records);
  }
  Status checkpoint_begin() override {
    if (!full) return MemoryLog::checkpoint_begin();
    return Status::exhausted(ErrorReason::disk_full, {"disk", "0 bytes free", "1 byte for a checkpoint", ""}, kSecond);
  }
  Status checkpoint_end(const RecoveredPosition& covers, std::string_view access_table) override {
    clock_->advance(checkpoint_us);
    return MemoryLog::checkpoint_end(covers, access_table);
  }

  DurationUs append_us = 0, checkpoint_us = 0;
  bool full = false, fails = false;
  std::function<void()> during_append;

 private:
  SimClock* const clock_;
};

class DatabaseMetricsTest : public CoreFixture {
 protected:
  void SetUp() override { open(&slow, sim.environment()); }
  void TearDown() override { database.reset(); }
  const CoreMetrics& metrics() const { return database->metrics(); }
  static std::uint64_t count_of(const Histogram& histogram) { return histogram.snapshot().count; }
  static std::uint64_t sum_of(const Histogram& histogram) { return histogram.snapshot().sum; }

  SlowLog slow{&sim.clock};
};

TEST_F(DatabaseMetricsTest, ABatchCountsOnceWithItsTransactions) {
  EXPECT_EQ(count_of(metrics().batch_transactions), 0u);
  run(both(add("a", 1), both(add("b", 1), add("c", 1))));
  run(add("a", 1));
  EXPECT_EQ(count_of(metrics().batch_transactions), 2u);
  EXPECT_EQ(sum_of(metrics().batch_transactions), 4u);
  EXPECT_EQ(count_of(metrics().execution), 2u);
  EXPECT_EQ(count_of(metrics().append), 2u);
  EXPECT_EQ(sum_of(metrics().group_batches), 2u);
}

TEST_F(DatabaseMetricsTest, TheStatusOfAnIdleDatabaseIsNotOld) {
  run(add("a", 1));
  run(add("b", 1));
  run(add("c", 1));
  sim.scheduler.run_for(150 * kMs);
  EXPECT_EQ(database->status().engine.records, 3u);
}

TEST_F(DatabaseMetricsTest, ABatchCountsForItsStrategy) {
  const auto& all = engine::strategy_infos();
  ASSERT_LT(all.size(), CoreMetrics::kStrategiesMax);
  run(add("a", 1));
  run(add("a", 1));
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(metrics().batches.at(i).on_cpu, all[i].name == "serial" ? 2u : 0u) << all[i].name;
    EXPECT_EQ(metrics().batches.at(i).on_device, 0u);
  }
}

TEST_F(DatabaseMetricsTest, ALostSyncIsSeen) {
  EXPECT_FALSE(metrics().has_failed);
  slow.fails = true;
  submit(add("a", 1));
  settle();
  EXPECT_TRUE(metrics().has_failed);
  EXPECT_EQ(count_of(metrics().append), 0u);
}

TEST_F(DatabaseMetricsTest, ARequestWaitsInTheQueueUntilItsFirstTransactionRuns) {
  slow.append_us = 300 * kMs;
  submit(add("a", 1));
  settle();  // the clock moves while the batch is appended
  EXPECT_EQ(count_of(metrics().queue_wait), 1u);
  EXPECT_EQ(sum_of(metrics().queue_wait), 0u) << "an idle server does not wait";
  sim.scheduler.hold("executor");
  submit(both(add("a", 1), add("b", 1)));
  settle();
  sim.clock.advance(70 * kMs);
  sim.scheduler.hold("");
  settle();
  EXPECT_EQ(count_of(metrics().queue_wait), 2u) << "a request, not a transaction";
  EXPECT_EQ(sum_of(metrics().queue_wait), 70u * kMs);
}

TEST_F(DatabaseMetricsTest, AnAppendIsMeasuredWhileItRunsAndAfter) {
  slow.append_us = 200 * kMs;
  double running = -1;
  slow.during_append = [&] { running = database->status().append_running_seconds; };
  EXPECT_EQ(database->status().append_running_seconds, 0);
  run(add("a", 1));
  EXPECT_DOUBLE_EQ(running, 0.2);
  EXPECT_EQ(database->status().append_running_seconds, 0);
  EXPECT_EQ(count_of(metrics().append), 1u);
  EXPECT_EQ(sum_of(metrics().append), 200u * kMs);
}

TEST_F(DatabaseMetricsTest, WaitingCountsAsOftenAsItBegins) {
  submit(withdraw("a", 5, kSecond));
  settle();
  EXPECT_EQ(metrics().parkings, 1u);
  EXPECT_EQ(count_of(metrics().queue_wait), 1u);
  run(add("a", 4));
  run(add("a", 4));
  EXPECT_EQ(metrics().parkings, 1u) << "it woke only when it could run";
  EXPECT_EQ(count_of(metrics().queue_wait), 3u) << "what woke did not wait in the queue again";
}

TEST_F(DatabaseMetricsTest, ACheckpointIsMeasuredFromItsBeginToItsEnd) {
  run(add("a", 1));
  sim.clock.advance(5 * kSecond);
  EXPECT_DOUBLE_EQ(database->status().checkpoint_age_seconds, 5);
  slow.checkpoint_us = 3 * kSecond;
  bool answered = false, done = false;
  database->drain([&] { answered = true; }, [&] { done = true; });
  settle();
  ASSERT_TRUE(answered && done);
  EXPECT_EQ(count_of(metrics().checkpoint), 1u);
  EXPECT_EQ(sum_of(metrics().checkpoint), 3u * kSecond);
  EXPECT_DOUBLE_EQ(database->status().checkpoint_age_seconds, 0);
  EXPECT_EQ(database->status().checkpoint_running_seconds, 0);
}

TEST_F(DatabaseMetricsTest, ACheckpointThatIsPutOffCounts) {
  slow.full = true;
  run(add("a", 1));
  database->drain([] {}, [] {});
  settle();
  EXPECT_EQ(metrics().checkpoints_put_off, 1u);
  EXPECT_EQ(count_of(metrics().checkpoint), 0u);
}

TEST_F(DatabaseMetricsTest, TheClockIsInStepOrCountsByHowItIsNot) {
  using Kind = ClockChange::Kind;
  const auto times = [&](Kind kind) { return metrics().clock_changes[static_cast<std::size_t>(kind)].load(); };
  run(add("a", 1));
  sim.clock.jump_wall(10 * kSecond);
  run(add("a", 1));
  EXPECT_EQ(times(Kind::jumped), 1u);
  EXPECT_EQ(metrics().clock_out_of_step_us, 0) << "the stamps follow it";
  sim.clock.jump_wall(-60 * kSecond);
  run(add("a", 1));
  EXPECT_EQ(times(Kind::behind), 1u);
  EXPECT_EQ(metrics().clock_out_of_step_us, -60 * kSecond);
  sim.clock.jump_wall(60 * kSecond);
  run(add("a", 1));
  EXPECT_EQ(times(Kind::in_step), 1u);
  EXPECT_EQ(metrics().clock_out_of_step_us, 0);
}

TEST_F(DatabaseMetricsTest, AClientThatGoesAwayCountsAsAbandoned) {
  auto request = database->acquire_request();
  engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
  withdraw("a", 5, kSecond)(builder);
  request->sink = std::make_shared<RecordingSink>();
  const SubmittedRequest submitted = database->submit(std::move(request));
  settle();
  database->abandon(submitted);
  settle();
  EXPECT_EQ(database->status().abandoned, 1u);
}

}  // namespace
}  // namespace kilokv::server
