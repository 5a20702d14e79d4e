// What happens at a time: operations that run when a wait has been in vain, keys that expire, and guards of time. How
// large the batches of expiries are is in database_expiries_test.cpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

constexpr DurationUs kSecond = 1000000;

class DatabaseExpiryTest : public CoreFixture {
 protected:
  // Takes 10 of `a`. If it waits in vain, it adds 1 to `gave up`, and 20 to `b`.
  static Build take_or_give_up(DurationUs wait_us) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin(0, wait_us, true);
      const std::uint32_t a = b.key("a");
      b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, a, 10);
      b.op(engine::OpKind::add, a, engine::Operand::integer, -10);
      b.begin_else();
      b.op(engine::OpKind::add, b.key("gave up"), engine::Operand::integer, 1);
      b.op(engine::OpKind::add, b.key("b"), engine::Operand::integer, 20);
      b.end();
    };
  }
};

TEST_F(DatabaseExpiryTest, ElseRunsAtTheDeadline) {
  const auto sink = run(take_or_give_up(3 * kSecond));
  const auto other = run(withdraw("b", 20, 60 * kSecond));
  sim.scheduler.run_for(3 * kSecond - 1000);
  EXPECT_FALSE(sink->ended());
  EXPECT_EQ(integer("gave up"), 0);
  sim.scheduler.run_for(1000);
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::wait_expired);
  EXPECT_TRUE(sink->at(0).result.version.has_value());
  EXPECT_EQ(integer("gave up"), 1);
  // What it wrote has woken the other one, which was not on its last try, for the next batch.
  ASSERT_TRUE(other->done);
  EXPECT_EQ(other->outcome(0), Outcome::committed);
  EXPECT_EQ(other->at(0).result.batch, sink->at(0).result.batch + 1);
  reopen();
  EXPECT_EQ(integer("gave up"), 1);
  EXPECT_EQ(integer("b"), 0);
}

TEST_F(DatabaseExpiryTest, ElseDoesNotRunIfItCommitsBefore) {
  const auto sink = run(take_or_give_up(3 * kSecond));
  run(add("a", 10));
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::committed);
  sim.scheduler.run_for(10 * kSecond);
  EXPECT_EQ(integer("gave up"), 0);
}

TEST_F(DatabaseExpiryTest, ElseDoesNotRunAfterARestart) {
  const auto sink = run(take_or_give_up(3 * kSecond));
  reopen();
  sim.scheduler.run_for(10 * kSecond);
  EXPECT_EQ(integer("gave up"), 0);
  EXPECT_FALSE(sink->done);
}

class DatabaseTimeToLiveTest : public CoreFixture {
 protected:
  static Build put(const std::string& key, DurationUs ttl_us, int count = 1) {
    return [=](engine::ColumnsBuilder& b) {
      for (int i = 0; i < count; ++i) {
        b.begin();
        b.op(engine::OpKind::put, b.key(count == 1 ? key : key + std::to_string(i)), engine::Operand::integer, 7);
        if (ttl_us > 0) b.expire(engine::Expiry::after, ttl_us);
        b.end();
      }
    };
  }
  std::size_t records() { return database->status().engine.records; }
};

TEST_F(DatabaseTimeToLiveTest, AKeyIsDeletedAtItsTime) {
  const auto sink = run(put("a", 3 * kSecond));
  ASSERT_TRUE(sink->done);
  std::optional<Result<ScanPage>> page;
  database->scan(ScanRequest(), [&](Result<ScanPage> got) { page.emplace(std::move(got)); });
  settle();
  EXPECT_EQ((*page)->pairs.at(0).expires_us, sink->at(0).result.batch_time_us + 3 * kSecond);
  EXPECT_EQ(database->status().engine.expiring, 1u);
  sim.scheduler.run_for(3 * kSecond - 1000);
  EXPECT_EQ(integer("a"), 7);
  sim.scheduler.run_for(1000);  // there is no other work
  EXPECT_EQ(integer("a"), 0);
  sim.scheduler.run_for(kSecond);  // the status is refreshed now and then
  EXPECT_EQ(records(), 0u);
  EXPECT_EQ(database->status().engine.tombstones, 1u);
  EXPECT_EQ(database->status().expired, 1u);
  EXPECT_EQ(log.expired(), 1u);
  EXPECT_EQ(log.reserved(), 0u);
  reopen();
  EXPECT_EQ(integer("a"), 0);
}

TEST_F(DatabaseTimeToLiveTest, AWriteMovesOrClearsTheExpiry) {
  run(put("put", kSecond));
  run(put("add", kSecond));
  run(put("moved", kSecond));
  run(put("put", 0));
  run(add("add", 1));
  run(put("moved", 5 * kSecond));
  sim.scheduler.run_for(2 * kSecond);
  EXPECT_EQ(integer("put"), 7);
  EXPECT_EQ(integer("add"), 0) << "an ADD leaves the expiry as it is";
  EXPECT_EQ(integer("moved"), 7);
  sim.scheduler.run_for(4 * kSecond);
  EXPECT_EQ(integer("moved"), 0);
  EXPECT_EQ(integer("put"), 7);
}

TEST_F(DatabaseTimeToLiveTest, ExpiriesOutliveARestartAndACheckpoint) {
  options.checkpoint_interval_us = kSecond;
  reopen();
  run(put("early", 2 * kSecond));
  run(put("late", 20 * kSecond));
  sim.scheduler.run_for(5 * kSecond);
  run(put("after the checkpoint", 4 * kSecond));
  run(put("cleared", 4 * kSecond));
  run(put("cleared", 0));
  reopen();
  EXPECT_EQ(database->status().engine.expiring, 2u);
  sim.scheduler.run_for(5 * kSecond);
  EXPECT_EQ(integer("early"), 0);
  EXPECT_EQ(integer("after the checkpoint"), 0);
  EXPECT_EQ(integer("late"), 7);
  sim.scheduler.run_for(20 * kSecond);
  EXPECT_EQ(integer("late"), 0);
  EXPECT_EQ(integer("cleared"), 7);
}

// What fell due while the server was down goes soon after the start.
TEST_F(DatabaseTimeToLiveTest, WhatFellDueMeanwhileGoesAfterTheStart) {
  run(put("a", kSecond, 3000));
  sim.clock.advance(10 * kSecond);
  reopen();
  sim.scheduler.run_for(kSecond);
  EXPECT_EQ(records(), 0u);
  EXPECT_EQ(database->status().expired, 3000u);
}

// An expiry is a write like any other: it wakes who waits for it.
TEST_F(DatabaseTimeToLiveTest, AnExpiryWakesWhoWaitsForIt) {
  run(put("seat", 2 * kSecond));
  const auto waits = run([](engine::ColumnsBuilder& b) {
    b.begin(0, 60 * kSecond);
    b.guard(engine::GuardKind::absent, engine::OnFalse::wait, b.key("seat"), 0);
    b.op(engine::OpKind::put, b.key("seat"), engine::Operand::integer, 1);
    b.end();
  });
  EXPECT_FALSE(waits->ended());
  sim.scheduler.run_for(2 * kSecond);
  ASSERT_TRUE(waits->done);
  EXPECT_EQ(waits->outcome(0), Outcome::committed);
  EXPECT_EQ(integer("seat"), 1);
}

TEST_F(DatabaseTimeToLiveTest, ManyThatAreDueGoInBatchesOfABoundedSize) {
  options.expiry_batch_max = 100;
  reopen();
  run(put("a", kSecond, 1000));
  const BatchNumber before = database->status().executed_batch;
  sim.scheduler.run_for(2 * kSecond);
  EXPECT_EQ(records(), 0u);
  EXPECT_EQ(database->status().executed_batch, before + 10);
  EXPECT_EQ(database->status().transactions, 1000u) << "expiries are nobody's transactions";
}

// A stream of keys that expire leaves no stream of tombstones. What guards know of dropped ones stays right.
TEST_F(DatabaseTimeToLiveTest, TombstonesAreBounded) {
  options.checkpoint_interval_us = kSecond;
  options.tombstones_max = 500;
  reopen();
  std::size_t most = 0;
  for (int i = 0; i < 40; ++i) {
    run(put("a" + std::to_string(i) + "/", kSecond, 100));
    sim.scheduler.run_for(kSecond);
    most = std::max(most, database->status().engine.tombstones);
  }
  EXPECT_LE(most, 1000u);
  EXPECT_GE(most, 500u);
  EXPECT_LE(log.stored_records(), 1200u);
  const auto unchanged = run([](engine::ColumnsBuilder& b) {
    b.begin();
    b.guard(engine::GuardKind::unchanged, engine::OnFalse::fail, b.key("a0/1"), 1);
    b.end();
  });
  EXPECT_EQ(unchanged->outcome(0), Outcome::guard_failed) << "it was deleted, and the floor says that nobody knows";
  reopen();
  EXPECT_LE(database->status().engine.tombstones, 1000u);
}

TEST_F(DatabaseTimeToLiveTest, AServerThatOnlyReadsDeletesNothing) {
  run(put("a", kSecond));
  options.read_only = true;
  reopen();
  sim.scheduler.run_for(5 * kSecond);
  EXPECT_EQ(integer("a"), 7);
  EXPECT_GE(database->status().expiry_lag_us, 3 * kSecond);
  options.read_only = false;
  reopen();
  sim.scheduler.run_for(kSecond);
  EXPECT_EQ(integer("a"), 0);
}

TEST_F(DatabaseTimeToLiveTest, WithoutSpaceForTheLogKeysStayALittleLonger) {
  run(put("a", kSecond));
  log.hold_up(true);
  sim.scheduler.run_for(5 * kSecond);
  EXPECT_EQ(database->status().expired, 0u);
  EXPECT_GE(database->status().expiry_lag_us, 3 * kSecond);
  log.hold_up(false);
  sim.scheduler.run_for(2 * kSecond);
  EXPECT_EQ(integer("a"), 0);
}

class DatabaseTimesTest : public CoreFixture {
 protected:
  // Takes the lease, as soon as it is over, for the length.
  static Build take_lease(DurationUs length_us, DurationUs wait_us) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin(0, wait_us);
      const std::uint32_t lease = b.key("lease");
      b.guard(engine::GuardKind::time_after, engine::OnFalse::wait, lease, 0);
      b.op(engine::OpKind::put, lease, engine::Operand::batch_time);
      b.op(engine::OpKind::add, lease, engine::Operand::integer, length_us);
      b.end();
    };
  }
};

// There is no other work: the time itself makes a batch form.
TEST_F(DatabaseTimesTest, ALeaseIsTakenOverAtItsEnd) {
  const auto first = run(take_lease(5 * kSecond, 0));
  ASSERT_TRUE(first->done);
  EXPECT_EQ(first->outcome(0), Outcome::committed);
  const TimeUs end_us = integer("lease");
  EXPECT_EQ(end_us, first->at(0).result.batch_time_us + 5 * kSecond);
  const auto second = run(take_lease(5 * kSecond, 60 * kSecond));
  sim.scheduler.run_for(end_us - sim.clock.wall_us() - 1);
  EXPECT_FALSE(second->ended());
  sim.scheduler.run_for(1);
  ASSERT_TRUE(second->done);
  EXPECT_EQ(second->outcome(0), Outcome::committed);
  EXPECT_EQ(second->at(0).result.batch_time_us, end_us);
}

TEST_F(DatabaseTimesTest, AWaitFollowsALeaseThatIsRenewedOrGivenBack) {
  run(take_lease(5 * kSecond, 0));
  const auto waits = run(take_lease(kSecond, 60 * kSecond));
  run(add("lease", 10 * kSecond));
  sim.scheduler.run_for(14 * kSecond);
  EXPECT_FALSE(waits->ended()) << "renewed";
  const auto waits_longer = run(take_lease(kSecond, 60 * kSecond));
  run(add("lease", -10 * kSecond));
  ASSERT_TRUE(waits->done) << "given back";
  EXPECT_EQ(waits->outcome(0), Outcome::committed);
  EXPECT_FALSE(waits_longer->ended()) << "the first one has it again";
  sim.scheduler.run_for(kSecond);
  ASSERT_TRUE(waits_longer->done);
  EXPECT_EQ(waits_longer->outcome(0), Outcome::committed);
}

// A time that is reached by a guard with FAIL, beside a guard that waits.
TEST_F(DatabaseTimesTest, ATimeOfAGuardThatFailsEndsTheWait) {
  const TimeUs end_us = sim.clock.wall_us() + 3 * kSecond;
  const auto sink = run([=](engine::ColumnsBuilder& b) {
    b.begin(0, 60 * kSecond);
    b.guard(engine::GuardKind::time_before, engine::OnFalse::fail, engine::kNone, end_us);
    b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, b.key("a"), 10);
    b.op(engine::OpKind::add, b.key("a"), engine::Operand::integer, -10);
    b.begin_else();
    b.op(engine::OpKind::put, b.key("given up"), engine::Operand::batch_time);
    b.end();
  });
  sim.scheduler.run_for(3 * kSecond - 1000);
  EXPECT_FALSE(sink->ended());
  sim.scheduler.run_for(1000);
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::guard_failed);
  EXPECT_EQ(integer("given up"), end_us);
}

// A time that is over, and one after the guard that decides, give no reason to try again.
TEST_F(DatabaseTimesTest, NoBatchFormsForATimeThatChangesNothing) {
  const TimeUs now_us = sim.clock.wall_us();
  const auto sink = run([=](engine::ColumnsBuilder& b) {
    b.begin(0, 60 * kSecond);
    b.guard(engine::GuardKind::time_after, engine::OnFalse::wait, engine::kNone, now_us - kSecond);
    b.guard(engine::GuardKind::time_before, engine::OnFalse::fail, engine::kNone, now_us + 20 * kSecond);
    b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, b.key("a"), 10);
    for (int i = 1; i <= 10; ++i) {
      b.guard(engine::GuardKind::time_after, engine::OnFalse::wait, engine::kNone, now_us + i * kSecond);
    }
    b.op(engine::OpKind::add, b.key("a"), engine::Operand::integer, -10);
    b.end();
  });
  const BatchNumber last = database->status().executed_batch + 1;
  run(add("a", 1));  // a look in vain
  EXPECT_EQ(database->status().executed_batch, last);
  sim.scheduler.run_for(19 * kSecond);
  EXPECT_FALSE(sink->ended());
  EXPECT_EQ(database->status().executed_batch, last);
  sim.scheduler.run_for(kSecond);
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::guard_failed);
}

TEST_F(DatabaseTimesTest, ATimeAfterTheDeadlineDoesNotPutItOff) {
  run([](engine::ColumnsBuilder& b) {
    b.begin(0, 0);
    b.op(engine::OpKind::put, b.key("lease"), engine::Operand::integer, kNever);
    b.end();
  });
  const auto sink = run(take_lease(kSecond, 3 * kSecond));
  sim.scheduler.run_for(3 * kSecond - 1);
  EXPECT_FALSE(sink->ended());
  sim.scheduler.run_for(1);
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::wait_expired);
  const auto next = run(add("b", 1));
  EXPECT_TRUE(next->done);
}

}  // namespace
}  // namespace kilokv::server
