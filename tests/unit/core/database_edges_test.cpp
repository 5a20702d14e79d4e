// Rare courses of events: requests that fail half way, clocks that jump, sessions at their limit, restarts right after
// a checkpoint that dropped tombstones.
#include <algorithm>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/shown_limit.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

constexpr DurationUs kSecond = 1000000;

class DatabaseEdgesTest : public CoreFixture {
 protected:
  static Build del(const std::string& key) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::del, b.key(key));
      b.end();
    };
  }
  std::uint64_t cancel(CancelTarget target) {
    std::optional<std::uint64_t> count;
    database->cancel({}, target, [&](Result<std::uint64_t> got) { count = *got; });
    settle();
    EXPECT_TRUE(count.has_value());
    return count.value_or(0);
  }
};

// What a checkpoint dropped leaves the stored state only when the floor that says so is in the log.
TEST_F(DatabaseEdgesTest, AnIdleServerRestartsAfterItDroppedTombstones) {
  options.checkpoint_interval_us = kSecond;
  options.snapshot_age_us_max = 10 * kSecond;
  options.tombstone_retention_us = 10 * kSecond;
  reopen();
  run(add("a", 1));
  run(add("b", 1));
  run(del("a"));
  sim.scheduler.run_for(3 * kSecond);
  run(add("b", 1));
  sim.scheduler.run_for(20 * kSecond);
  run(add("b", 1));
  sim.scheduler.run_for(3 * kSecond);  // drops the tombstone of a
  EXPECT_EQ(database->status().engine.tombstones, 0u);
  bool drained = false;
  database->drain([] {}, [&] { drained = true; });  // a checkpoint without a batch since the last one
  settle();
  EXPECT_TRUE(drained);
  reopen();
  EXPECT_EQ(integer("a"), 0);
  EXPECT_EQ(integer("b"), 3);
}

TEST_F(DatabaseEdgesTest, WithoutRetentionATombstoneIsKeptUntilACheckpointHoldsIt) {
  options.checkpoint_interval_us = kSecond;
  options.snapshot_age_us_max = 0;
  options.tombstone_retention_us = 0;
  reopen();
  for (int i = 0; i < 8; ++i) {
    run(add("a", 1));
    sim.scheduler.run_for(3 * kSecond);
    run(del("a"));
    sim.scheduler.run_for(i % 2 == 0 ? 3 * kSecond : 600000);
    reopen();
    EXPECT_EQ(integer("a"), 0);
  }
}

// Many tombstones go in steps, from the table and from the stored state; the log says after which batch which had gone,
// or start-up finds that the state is not what it was.
TEST_F(DatabaseEdgesTest, ManyTombstonesGoInSteps) {
  constexpr int kKeys = 5000;
  options.checkpoint_interval_us = kSecond;
  options.snapshot_age_us_max = 10 * kSecond;
  options.tombstone_retention_us = 10 * kSecond;
  reopen();
  for (int i = 0; i < kKeys; i += 500) {
    const auto sink = run([=](engine::ColumnsBuilder& b) {
      for (int j = i; j < i + 500; ++j) {
        b.begin();
        b.op(engine::OpKind::put, b.key("key" + std::to_string(j)), engine::Operand::integer, 1);
        b.op(engine::OpKind::del, b.key("key" + std::to_string(j)));
        b.end();
      }
    });
    ASSERT_TRUE(sink->done) << sink->failure->message();
  }
  run(add("b", 1));
  sim.scheduler.run_for(2 * kSecond);
  EXPECT_EQ(database->status().engine.tombstones, static_cast<std::size_t>(kKeys));
  EXPECT_GT(log.stored_records(), static_cast<std::size_t>(kKeys));
  for (int i = 0; i < 30; ++i) {
    run(add("b", 1));
    sim.scheduler.run_for(2 * kSecond);
  }
  EXPECT_EQ(database->status().engine.tombstones, 0u);
  EXPECT_EQ(log.stored_records(), 1u);
  reopen();
  EXPECT_EQ(database->status().engine.records, 1u);
}

// Keys that left the table wait for the next checkpoint. They take no more memory than they may, however many go at
// once.
TEST_F(DatabaseEdgesTest, TombstonesThatGoTakeLittleMemory) {
  constexpr int kKeys = 20000;
  options.checkpoint_interval_us = 600 * kSecond;
  options.snapshot_age_us_max = 10 * kSecond;
  options.tombstone_retention_us = 10 * kSecond;
  options.dropped_bytes_max = 300'000;
  reopen();
  const auto key_of = [](int i) { return std::string(500, 'k') + std::to_string(i); };
  for (int i = 0; i < kKeys; i += 500) {
    run([&](engine::ColumnsBuilder& b) {
      for (int j = i; j < i + 500; ++j) {
        b.begin();
        b.op(engine::OpKind::put, b.key(key_of(j)), engine::Operand::integer, 1);
        b.op(engine::OpKind::del, b.key(key_of(j)));
        b.end();
      }
    });
  }
  run(add("b", 1));
  std::uint64_t most = 0;
  for (int i = 0; i < 400 && (i < 20 || database->status().engine.tombstones > 0 || log.stored_records() > 1); ++i) {
    run(add("b", 1));
    sim.scheduler.run_for(i < 20 ? 60 * kSecond : 2 * kSecond);
    for (const MemoryOwner& owner : database->status().memory) {
      if (owner.name == "dropped") most = std::max(most, owner.bytes);
    }
  }
  EXPECT_EQ(database->status().engine.tombstones, 0u);
  EXPECT_EQ(log.stored_records(), 1u);
  EXPECT_GT(most, 200'000u);
  EXPECT_LT(most, options.dropped_bytes_max + 1024 * 700) << "a step more at most";
  reopen();
  EXPECT_EQ(database->status().engine.records, 1u);
}

// The first transaction of the request waits; then the parking lot has no room for the second: the request fails, and
// with it what was parked of it.
class HalfFailedTest : public DatabaseEdgesTest {
 protected:
  void SetUp() override {
    options.batch_max_transactions = 1;
    options.parked_bytes_max = 2100;  // enough for one of them
    open();
  }
  Build two_that_wait() { return both(withdraw("a", 10, 60 * kSecond), withdraw("b", 10, 60 * kSecond)); }
};

TEST_F(HalfFailedTest, NothingOfItStaysParked) {
  auto sink = run(two_that_wait());
  ASSERT_TRUE(sink->failure);
  EXPECT_EQ(sink->failure->code(), StatusCode::resource_exhausted);
  EXPECT_EQ(sink->failure->reason(), ErrorReason::parked_full);
  EXPECT_TRUE(sink->failure->not_run()) << "nothing of it was decided";
  EXPECT_EQ(database->status().parked, 0u);
  EXPECT_EQ(log.reserved(), 0u);
  run(add("a", 10));
  EXPECT_EQ(integer("a"), 10);  // it does not run any more
  auto parked = run(withdraw("b", 10, 60 * kSecond));
  bool drained = false;
  database->drain([] {}, [&] { drained = true; });
  settle();
  EXPECT_TRUE(drained);
  ASSERT_TRUE(parked->failure);
  EXPECT_EQ(parked->failure->reason(), ErrorReason::draining);
  EXPECT_TRUE(parked->failure->not_run()) << "it was parked, and never ran";
  EXPECT_EQ(log.reserved(), 0u);
}

TEST_F(HalfFailedTest, WhatWasDecidedBeforeTheParkingLotWasFullIsAnswered) {
  auto sink = run(both(add("c", 1), two_that_wait()));
  EXPECT_EQ(sink->outcome(0), Outcome::committed);
  ASSERT_TRUE(sink->failure);
  EXPECT_EQ(sink->failure->reason(), ErrorReason::parked_full);
  EXPECT_FALSE(sink->failure->not_run());
  EXPECT_EQ(database->status().parked, 0u);
}

// All transactions are in one batch, which decides one of them.
TEST_F(HalfFailedTest, WhatTheSameBatchDecidedIsAnsweredFirst) {
  options.batch_max_transactions = 8;
  reopen();
  auto sink = run(both(two_that_wait(), add("c", 1)));
  EXPECT_EQ(sink->outcome(2), Outcome::committed);
  ASSERT_TRUE(sink->failure);
  EXPECT_EQ(sink->failure->reason(), ErrorReason::parked_full);
  EXPECT_FALSE(sink->failure->not_run());
}

TEST_F(HalfFailedTest, ACancelAfterItsRetryFindsTheRetryAlone) {
  const SessionId session = open_session();
  auto sink = run(two_that_wait(), session, 1);
  ASSERT_TRUE(sink->failure);
  run(add("b", 10));
  auto retry = run(two_that_wait(), session, 1);
  EXPECT_FALSE(retry->ended());
  EXPECT_EQ(cancel({session, 1, {}, 0}), 1u);
  ASSERT_TRUE(retry->done);
  EXPECT_TRUE(retry->at(0).result.cancelled);
  EXPECT_EQ(retry->outcome(1), Outcome::committed);
  EXPECT_EQ(log.reserved(), 0u);
}

TEST_F(DatabaseEdgesTest, SessionsOpenedAtOnceStayWithinTheirLimit) {
  options.sessions_max = 2;
  reopen();
  std::vector<SessionId> opened;
  int refused = 0;
  for (int i = 0; i < 5; ++i) {
    database->open_session({}, nullptr, 0, [&](Result<SessionId> session, DurationUs) {
      if (session.ok()) {
        opened.push_back(*session);
      } else {
        expect_shown(session.status(), "raise --sessions-max", ErrorReason::sessions_full);
        ++refused;
      }
    });
  }
  settle();
  EXPECT_EQ(opened.size(), 2u);
  EXPECT_EQ(refused, 3);
  for (const SessionId& session : opened) EXPECT_TRUE(run(add("a", 1), session, 1)->done);
  database->close_session({}, nullptr, opened[0], [](Status) {});
  settle();
  open_session();
}

// A short request writes a long value many times: it is reserved for in full, and no batch takes all of it.
TEST_F(DatabaseEdgesTest, CopiesOfALargeValueFillABatch) {
  options.batch_max_bytes = 1100000;
  reopen();
  const auto copies = [](engine::ColumnsBuilder& b) {
    for (int i = 0; i < 10; ++i) {
      b.begin();
      b.op(engine::OpKind::get, b.key("large"));
      b.op(engine::OpKind::put, b.key("copy" + std::to_string(i)), engine::Operand::get, 0);
      b.end();
    }
  };
  const auto same = [](engine::ColumnsBuilder& b) {
    const std::uint32_t value = b.value(std::string(400000, 'v'));
    for (int i = 0; i < 10; ++i) {
      b.begin();
      b.op(engine::OpKind::put, b.key("large"), engine::Operand::bytes, value);
      b.end();
    }
  };
  auto sink = submit(same);
  EXPECT_GT(log.reserved(), 4000000u);
  settle();
  EXPECT_TRUE(sink->done);
  EXPECT_EQ(database->status().batches, 5u);
  reopen();  // the stored value counts too
  sink = submit(copies);
  EXPECT_GT(log.reserved(), 4000000u);
  settle();
  EXPECT_TRUE(sink->done);
  EXPECT_EQ(database->status().batches, 5u);
}

// Deleted records cost a scan as much as others, and show nothing.
TEST_F(DatabaseEdgesTest, AScanStopsAmongManyDeletedKeys) {
  options.scan_pairs_max = 10;
  reopen();
  for (int i = 100; i < 300; ++i) {
    run(add("k" + std::to_string(i), 1));
    run(del("k" + std::to_string(i)));
  }
  run(add("last", 1));
  ScanRequest request{"", "", 0, {}, true};
  int pages = 0;
  for (bool more = true; more; ++pages) {
    ASSERT_LT(pages, 100);
    database->scan(request, [&](Result<ScanPage> page) {
      ASSERT_TRUE(page.ok());
      more = page->more;
      EXPECT_EQ(page->pairs.size(), more ? 0u : 1u);
      request.boundary = page->boundary;
      request.from = page->next_from;
    });
    settle();
  }
  EXPECT_EQ(pages, 6);
}

TEST_F(DatabaseEdgesTest, PagesOnTheirWayAreBounded) {
  options.scans_in_flight_max = 3;
  reopen();
  run(add("a", 1));
  int pages = 0, refused = 0;
  const auto scan_five_times = [&] {
    for (int i = 0; i < 5; ++i) {
      database->scan({}, [&](Result<ScanPage> page) {
        ++(page.ok() ? pages : refused);
        if (!page.ok()) expect_shown(page.status(), "raise --scans-in-flight-max", ErrorReason::calls_full);
      });
    }
    settle();
  };
  scan_five_times();
  scan_five_times();
  EXPECT_EQ(pages, 6);
  EXPECT_EQ(refused, 4);
}

// The stamp goes on with the monotonic clock when the wall clock does not.
TEST_F(DatabaseEdgesTest, DeadlinesAreMetThoughTheWallClockGoesBack) {
  run(add("b", 1));
  auto sink = run(withdraw("a", 10, 3 * kSecond));
  sim.clock.jump_wall(-3600 * kSecond);
  sim.scheduler.run_for(3 * kSecond - 1);
  EXPECT_FALSE(sink->ended());
  sim.scheduler.run_for(1);
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::wait_expired);
}

TEST_F(DatabaseEdgesTest, DeadlinesAreMetAfterARestartWithTheWallClockBehind) {
  sim.clock.jump_wall(3600 * kSecond);
  run(add("b", 1));
  sim.clock.jump_wall(-3600 * kSecond);
  reopen();
  auto sink = run(withdraw("a", 10, 3 * kSecond));
  sim.scheduler.run_for(3 * kSecond);
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::wait_expired);
}

TEST_F(DatabaseEdgesTest, AClockThatIsFarAfterTheLastBatchStopsTheStart) {
  run(add("b", 1));
  database.reset();
  sim.clock.jump_wall(DurationUs{366} * 24 * 3600 * kSecond + 1);
  const auto opened = try_open(&log, sim.environment());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), StatusCode::failed_precondition);
  EXPECT_NE(opened.status().message().find("366.00 days after the last batch, and --clock-gap-max is 366.00 days"),
            std::string::npos)
      << opened.status().message();
  sim.clock.jump_wall(-1);
  open();
  EXPECT_TRUE(run(add("b", 1))->done);
}

TEST_F(DatabaseEdgesTest, AClockThatJumpsFarAheadIsReportedAndNotFollowed) {
  std::vector<ClockChange> changes;
  events.clock_changed = [&](const ClockChange& change) { changes.push_back(change); };
  open();
  const TimeUs before = sim.clock.wall_us();
  sim.clock.jump_wall(options.clock_jump_us_max + 1);
  const auto sink = run(add("b", 1));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].kind, ClockChange::Kind::ahead);
  EXPECT_GE(sink->answers[0].result.batch_time_us, before);
  EXPECT_LT(sink->answers[0].result.batch_time_us, before + kSecond);
}

TEST_F(DatabaseEdgesTest, ANewDatabaseStartsAtAnyTime) {
  database.reset();
  MemoryLog fresh;
  sim.clock.jump_wall(DurationUs{40} * 366 * 24 * 3600 * kSecond);
  open(&fresh, sim.environment());
  EXPECT_TRUE(run(add("b", 1))->done);
  database.reset();
}

// Calls back while a request is charged.
class HookedLog : public MemoryLog {
 public:
  std::function<void()> on_reserve;
  Status reserve(std::uint64_t bytes, LogUse use) override {
    if (on_reserve) std::exchange(on_reserve, nullptr)();
    return MemoryLog::reserve(bytes, use);
  }
};

// A request that is charged but not in the queue yet is nothing to form a batch of.
TEST_F(DatabaseEdgesTest, NoEmptyBatchesWhileARequestIsOnItsWay) {
  HookedLog hooked;
  open(&hooked, sim.environment());
  hooked.on_reserve = [&] {
    sim.scheduler.run_for(kSecond);
    EXPECT_EQ(database->status().batches, 0u);
  };
  EXPECT_TRUE(run(add("a", 1))->done);
  EXPECT_EQ(database->status().batches, 1u);
  database.reset();
}

// Calls back while a request is between the check for draining and its admission.
class HookedClock : public Clock {
 public:
  explicit HookedClock(const Clock* clock) : clock_(clock) {}
  mutable std::function<void()> on_read;
  TimeUs wall_us() const override { return clock_->wall_us(); }
  TimeUs monotonic_us() const override {
    if (on_read) std::exchange(on_read, nullptr)();
    return clock_->monotonic_us();
  }
  TimeUs boot_us() const override { return clock_->boot_us(); }

 private:
  const Clock* clock_;
};

TEST_F(DatabaseEdgesTest, NothingIsParkedOnceTheServerHasDrained) {
  HookedClock clock(&sim.clock);
  Environment environment = sim.environment();
  environment.clock = &clock;
  open(&log, environment);
  bool drained = false;
  clock.on_read = [&] {
    database->drain([] {}, [&] { drained = true; });
    settle();
    EXPECT_TRUE(drained);
  };
  auto late = run(withdraw("a", 10, 60 * kSecond));
  ASSERT_TRUE(late->failure);
  EXPECT_EQ(late->failure->code(), StatusCode::unavailable);
  EXPECT_EQ(log.reserved(), 0u);
  database.reset();
}

// What is awake, or about to be looked at, is not what waits: a drain lets it run, whichever worker comes first.
TEST_F(DatabaseEdgesTest, ADrainLetsThoseRunThatAreAwake) {
  for (int i = 0; i < 20; ++i) {
    reopen();
    auto waiting = run(withdraw("a", 10, 60 * kSecond));
    auto deposit = submit(add("a", 10));
    database->drain([] {}, [] {});
    settle();
    EXPECT_TRUE(deposit->done);
    EXPECT_EQ(waiting->outcome(0), Outcome::committed);
  }
}

// Thousands that wait in one request must not make the server walk over all of them for each of them.
TEST_F(DatabaseEdgesTest, ARequestThatWaitsManyTimesIsGivenUpInLinearTime) {
  constexpr int kWaiting = 40000;
  // The time of this process alone: nothing else on the machine counts.
  const auto processor_time = [] { return std::clock(); };
  const std::clock_t start = processor_time();
  const auto waiting = run([](engine::ColumnsBuilder& b) {
    for (int i = 0; i < kWaiting; ++i) withdraw("a", 10, 60 * kSecond)(b);
  });
  ASSERT_EQ(database->status().parked, static_cast<std::uint64_t>(kWaiting));
  const std::clock_t parked = processor_time();
  database->drain([] {}, [] {});
  settle();
  ASSERT_TRUE(waiting->failure);
  // A walk over all for each would take hundreds of times as long.
  EXPECT_LT(processor_time() - parked, 20 * (parked - start)) << "to give up takes much longer than to park";
}

// The stored state has the tombstone still; nobody but recovery knows that the floor has passed it.
TEST_F(DatabaseEdgesTest, ACrashBetweenTwoCheckpointsLeavesNoDeadRecords) {
  options.checkpoint_interval_us = kSecond;
  options.snapshot_age_us_max = 10 * kSecond;
  options.tombstone_retention_us = 10 * kSecond;
  reopen();
  run(add("a", 1));
  run(del("a"));
  for (int i = 0; i < 2; ++i) {
    sim.scheduler.run_for(3 * kSecond);
    run(add("b", 1));
    sim.scheduler.run_for(11 * kSecond);
  }
  run(add("b", 1));  // carries the floor
  ASSERT_EQ(database->status().engine.tombstones, 0u);
  ASSERT_EQ(log.stored_records(), 2u);
  reopen();
  run(add("b", 1));
  sim.scheduler.run_for(3 * kSecond);
  EXPECT_EQ(log.stored_records(), 1u);
}

}  // namespace
}  // namespace kilokv::server
