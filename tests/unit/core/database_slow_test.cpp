// Transactions that take long: why, as the pipeline knows it; and how few of them are noted when all are slow.
#include <optional>
#include <utility>
#include <vector>

#include "server/core/pipeline/slow_log.hpp"
#include "tests/support/forwarding_engine.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

constexpr DurationUs kSecond = 1000000;

// Its batches take long.
class SlowEngine : public ForwardingEngine {
 public:
  SlowEngine(std::unique_ptr<engine::Engine> engine, SimClock* clock, const DurationUs* execution_us)
      : ForwardingEngine(std::move(engine)), clock_(clock), execution_us_(execution_us) {}
  Status execute(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                 const engine::Column<std::uint8_t>& expires, engine::BatchResults* results,
                 engine::WriteColumns* writes) override {
    clock_->advance(*execution_us_);
    return ForwardingEngine::execute(header, columns, expires, results, writes);
  }

 private:
  SimClock* const clock_;
  const DurationUs* const execution_us_;
};

class SlowTest : public CoreFixture {
 protected:
  SlowTest() {
    events.transaction_slow = [this](const SlowTransaction& slow, std::uint64_t left_out) {
      lines.emplace_back(slow, left_out);
    };
    wrap_engine = [this](std::unique_ptr<engine::Engine> engine) {
      return std::make_unique<SlowEngine>(std::move(engine), &sim.clock, &execution_us);
    };
  }

  // Submits while this worker takes `us` for its step.
  std::shared_ptr<RecordingSink> run_held(const char* worker, DurationUs us, const Build& build) {
    sim.scheduler.hold(worker);
    auto sink = submit(build);
    settle();
    sim.clock.advance(us);
    sim.scheduler.hold("");
    settle();
    EXPECT_TRUE(sink->done);
    return sink;
  }
  std::uint64_t count(SlowReason reason) const { return database->status().slow.at(static_cast<std::size_t>(reason)); }
  static DurationUs sum(const SlowTransaction& slow) {
    return slow.queued_us + slow.waited_us + slow.execution_us + slow.sync_us + slow.answer_us;
  }

  DurationUs execution_us = 0;
  std::vector<std::pair<SlowTransaction, std::uint64_t>> lines;  // with what was left out before
};

TEST_F(SlowTest, AFastTransactionIsNotNoted) {
  run_held("log", kSecond - 1, add("a", 1));
  EXPECT_TRUE(lines.empty());
  EXPECT_TRUE(database->slow_transactions().empty());
}

TEST_F(SlowTest, OneThatWaitsNamesItsGuardAndKey) {
  auto sink = run([](engine::ColumnsBuilder& b) {
    b.begin(0, 60 * kSecond);
    b.guard(engine::GuardKind::absent, engine::OnFalse::fail, b.key("none"), 0);
    b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, b.key("account"), 10);
    b.end();
  });
  EXPECT_TRUE(lines.empty()) << "it is not answered yet";
  sim.scheduler.run_for(5 * kSecond);
  run(add("account", 10));
  ASSERT_TRUE(sink->done);
  ASSERT_EQ(lines.size(), 1u);
  const SlowTransaction& slow = lines[0].first;
  EXPECT_EQ(slow.reason, SlowReason::waiting);
  EXPECT_EQ(slow.waited_us, 5 * kSecond);
  EXPECT_EQ(slow.total_us, 5 * kSecond);
  EXPECT_EQ(slow.guard, 1u);
  EXPECT_FALSE(slow.guards_range);
  EXPECT_EQ(slow.guard_key, "account");
  EXPECT_EQ(slow.outcome, Outcome::committed);
  EXPECT_EQ(slow.admitted_batch, 1u);
  EXPECT_GT(slow.batch, 1u);
  EXPECT_EQ(slow.answered_us, sim.clock.wall_us());
  EXPECT_EQ(count(SlowReason::waiting), 1u);
}

TEST_F(SlowTest, OneWhoseTimeIsUpNamesItsGuardToo) {
  auto sink = run(withdraw("a", 10, 3 * kSecond));
  sim.scheduler.run_for(3 * kSecond);
  ASSERT_EQ(sink->outcome(0), Outcome::wait_expired);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].first.reason, SlowReason::waiting);
  EXPECT_EQ(lines[0].first.outcome, Outcome::wait_expired);
  EXPECT_EQ(lines[0].first.guard_key, "a");
}

// Once false, such a guard stays false.
TEST_F(SlowTest, AGuardOnARangeNamesItsBegin) {
  run(add("k1", 1));
  auto sink = run([](engine::ColumnsBuilder& b) {
    b.begin(0, 2 * kSecond);
    b.range_guard(engine::GuardKind::range_unchanged, engine::OnFalse::wait, "k", "l", 0);
    b.end();
  });
  sim.scheduler.run_for(2 * kSecond);
  ASSERT_TRUE(sink->done);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].first.guards_range);
  EXPECT_EQ(lines[0].first.guard_key, "k");
}

// The stage that took longest is the reason, and the parts add up.
TEST_F(SlowTest, EachStageOfThePipelineCanBeTheReason) {
  const struct {
    const char* worker;
    SlowReason reason;
    DurationUs SlowTransaction::*part;
  } cases[] = {{"executor", SlowReason::queued, &SlowTransaction::queued_us},
               {"log", SlowReason::sync, &SlowTransaction::sync_us},
               {"answer", SlowReason::answer, &SlowTransaction::answer_us}};
  for (const auto& [worker, reason, part] : cases) {
    SCOPED_TRACE(worker);
    lines.clear();
    run_held(worker, 2 * kSecond, add("a", 1));
    ASSERT_EQ(lines.size(), 1u);
    const SlowTransaction& slow = lines[0].first;
    EXPECT_EQ(slow.reason, reason);
    EXPECT_EQ(slow.*part, 2 * kSecond);
    EXPECT_EQ(slow.total_us, 2 * kSecond);
    EXPECT_EQ(sum(slow), slow.total_us);
    EXPECT_EQ(slow.guard, engine::kNone);
  }
}

TEST_F(SlowTest, ALongExecutionIsBlamedOnALargeRead) {
  execution_us = 2 * kSecond;
  run(add("a", 1));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].first.reason, SlowReason::execution);
  EXPECT_EQ(lines[0].first.execution_us, 2 * kSecond);
  const auto limit = static_cast<std::uint32_t>(options.batch_max_reads / 4);
  run([limit](engine::ColumnsBuilder& b) {
    b.begin();
    b.range_op(engine::OpKind::range_get, "a", "z", limit);
    b.end();
  });
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].first.reason, SlowReason::large_read);
  EXPECT_EQ(lines[1].first.reads, limit);
}

TEST_F(SlowTest, TheTraceAndTheIdentityComeWithIt) {
  const SessionId session = open_session();
  auto request = database->acquire_request();
  engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
  both(add("a", 1), add("b", 1))(builder);
  request->identity = {session, 4, 0, {}};
  request->trace = *parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  const TraceParent trace = request->trace;
  request->client = std::make_shared<Client>("ipv4:127.0.0.1:4");
  request->sink = std::make_shared<RecordingSink>();
  sim.scheduler.hold("log");
  database->submit(std::move(request));
  settle();
  sim.clock.advance(kSecond);
  sim.scheduler.hold("");
  settle();
  ASSERT_EQ(lines.size(), 1u) << "one for both transactions";
  const SlowTransaction& slow = lines[0].first;
  EXPECT_EQ(slow.trace, trace);
  EXPECT_EQ(slow.client, "ipv4:127.0.0.1:4");
  EXPECT_EQ(slow.session, session);
  EXPECT_EQ(slow.request, 4u);
  EXPECT_EQ(slow.index, 0u);
  EXPECT_EQ(slow.transactions, 2u);
  EXPECT_EQ(slow.batch_transactions, 2u);
  // A request from the pool has nothing of the one before.
  sim.scheduler.hold("log");
  submit(add("c", 1));
  settle();
  sim.clock.advance(kSecond);
  sim.scheduler.hold("");
  settle();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_FALSE(lines[1].first.trace.present());
}

// The trace is no part of the content: a retry with another one is the same request.
TEST_F(SlowTest, ARetryMayHaveAnotherTrace) {
  const SessionId session = open_session();
  for (const char* span : {"b7ad6b7169203331", "00000000000000aa"}) {
    auto request = database->acquire_request();
    engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
    add("a", 1)(builder);
    request->identity = {session, 1, 0, {}};
    request->trace = *parse_traceparent(std::string("00-0af7651916cd43dd8448eb211c80319c-") + span + "-01");
    auto sink = std::make_shared<RecordingSink>();
    request->sink = sink;
    database->submit(std::move(request));
    settle();
    EXPECT_TRUE(sink->done);
  }
  EXPECT_EQ(integer("a"), 1);
}

TEST_F(SlowTest, WhenAllAreSlowFewAreNotedAndAllAreCounted) {
  constexpr int kMany = 3000;
  sim.scheduler.hold("log");
  for (int i = 0; i < kMany; ++i) submit(add("k" + std::to_string(i), 1));
  settle();
  sim.clock.advance(2 * kSecond);
  sim.scheduler.hold("");
  settle();
  EXPECT_EQ(count(SlowReason::sync), static_cast<std::uint64_t>(kMany));
  EXPECT_EQ(lines.size(), SlowLog::kLinesPerSecond);
  EXPECT_EQ(database->slow_transactions().size(), SlowLog::kRecordsPerSecond);
  sim.clock.advance(2 * kSecond);
  run_held("log", kSecond, add("last", 1));
  ASSERT_EQ(lines.size(), SlowLog::kLinesPerSecond + 1);
  EXPECT_EQ(lines.back().second, kMany - SlowLog::kLinesPerSecond);
  EXPECT_EQ(lines.front().second, 0u);
}

// A request of many is one record, and each of its transactions counts.
TEST_F(SlowTest, EachTransactionOfARequestCounts) {
  run_held("log", 2 * kSecond, both(add("a", 1), both(add("b", 1), add("c", 1))));
  EXPECT_EQ(count(SlowReason::sync), 3u);
  ASSERT_EQ(database->slow_transactions().size(), 1u);
  EXPECT_EQ(database->slow_transactions().front().transactions, 3u);
}

// Those that wait by intention do not push out others, and the room of a reason is bounded.
TEST_F(SlowTest, EachReasonHasARoomOfItsOwn) {
  run_held("log", 2 * kSecond, add("a", 1));
  for (std::size_t i = 0; i < 2 * SlowLog::kKept; ++i) {
    auto sink = run(withdraw("never", 10, 2 * kSecond));
    sim.scheduler.run_for(2 * kSecond);
    ASSERT_TRUE(sink->done);
  }
  const std::vector<SlowTransaction> kept = database->slow_transactions();
  EXPECT_EQ(kept.size(), SlowLog::kKept + 1);
  EXPECT_EQ(kept.front().reason, SlowReason::waiting);
  EXPECT_EQ(kept.back().reason, SlowReason::sync);
  for (std::size_t i = 1; i < kept.size(); ++i) EXPECT_LE(kept[i].answered_us, kept[i - 1].answered_us);
  EXPECT_EQ(count(SlowReason::waiting), 2 * SlowLog::kKept);
}

TEST_F(SlowTest, WhatIsCancelledOrGoesOnWaitingIsNotNoted) {
  auto sink = run(both(withdraw("a", 10, 60 * kSecond), add("b", 1)));
  EXPECT_EQ(sink->outcome(1), Outcome::committed);
  sim.scheduler.run_for(5 * kSecond);
  run(add("a", 1));  // not enough
  EXPECT_TRUE(lines.empty());
  CancelTarget target;
  target.parked_id = 1;
  database->cancel({}, target, [](const Result<std::uint64_t>& cancelled) { EXPECT_EQ(*cancelled, 1u); });
  settle();
  EXPECT_TRUE(sink->done);
  EXPECT_TRUE(lines.empty());
}

TEST_F(SlowTest, TheThresholdIsASettingAndZeroIsNone) {
  options.slow_transaction_us = 10;
  reopen();
  run_held("log", 10, add("a", 1));
  EXPECT_EQ(lines.size(), 1u);
  options.slow_transaction_us = 0;
  reopen();
  run_held("log", 3600 * kSecond, add("a", 1));
  EXPECT_EQ(lines.size(), 1u);
  EXPECT_TRUE(database->slow_transactions().empty());
}

// A jump of the wall clock while it waits does not make the parts more than the whole.
TEST_F(SlowTest, AJumpOfTheClockIsNoWait) {
  auto sink = run(withdraw("a", 10, 7200 * kSecond));
  sim.scheduler.run_for(2 * kSecond);
  sim.clock.jump_wall(3600 * kSecond);
  run(add("a", 10));
  ASSERT_TRUE(sink->done);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].first.total_us, 2 * kSecond);
  EXPECT_EQ(lines[0].first.waited_us, 2 * kSecond);
  EXPECT_EQ(sum(lines[0].first), 2 * kSecond);
}

}  // namespace
}  // namespace kilokv::server
