#include "server/core/database.hpp"

#include <string>
#include <vector>

#include "tests/support/shown_limit.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;
using DatabaseTest = CoreFixture;

constexpr DurationUs kSecond = 1000000;

TEST_F(DatabaseTest, CommitsAndReadsBack) {
  auto sink = run(add("a", 5));
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::committed);
  EXPECT_EQ(sink->at(0).result.batch, 1u);
  EXPECT_EQ(sink->at(0).result.version, 1u);
  EXPECT_EQ(integer("a"), 5);
}

TEST_F(DatabaseTest, AnIdleServerDoesNotWait) {
  options.batch_max_delay_us = 10 * kSecond;
  reopen();
  const TimeUs before = sim.clock.monotonic_us();
  EXPECT_TRUE(run(add("a", 1))->done);
  EXPECT_EQ(sim.clock.monotonic_us(), before);
}

TEST_F(DatabaseTest, WhatComesTogetherIsOneBatch) {
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 50; ++i) sinks.push_back(submit(add("k" + std::to_string(i), 1)));
  settle();
  for (const auto& sink : sinks) EXPECT_TRUE(sink->done);
  EXPECT_EQ(database->status().batches, 1u);
}

TEST_F(DatabaseTest, ARequestLargerThanABatchIsSplit) {
  options.batch_max_transactions = 7;
  reopen();
  auto sink = run([](engine::ColumnsBuilder& b) {
    for (int i = 0; i < 100; ++i) add("hot", 1)(b);
  });
  EXPECT_TRUE(sink->done);
  EXPECT_EQ(sink->answers.size(), 100u);
  EXPECT_EQ(database->status().batches, 15u);
  EXPECT_EQ(integer("hot"), 100);
}

TEST_F(DatabaseTest, AWithdrawalWaitsForItsDepositInTheSameBatch) {
  auto sink = run(both(withdraw("a", 10, 0), add("a", 10)));
  EXPECT_EQ(sink->outcome(0), Outcome::committed);
  EXPECT_EQ(sink->outcome(1), Outcome::committed);
  EXPECT_GT(sink->at(0).result.rank, sink->at(1).result.rank);
}

TEST_F(DatabaseTest, AWithdrawalWaitsForItsDepositInALaterBatch) {
  auto withdrawal = run(withdraw("a", 10, 60 * kSecond));
  EXPECT_FALSE(withdrawal->ended());
  EXPECT_EQ(database->status().parked, 1u);
  auto deposit = run(add("a", 10));
  ASSERT_TRUE(withdrawal->done);
  EXPECT_EQ(withdrawal->outcome(0), Outcome::committed);
  EXPECT_EQ(withdrawal->at(0).result.admitted_batch, 1u);
  EXPECT_GT(withdrawal->at(0).result.batch, deposit->at(0).result.batch);
  EXPECT_EQ(database->status().parked, 0u);
  EXPECT_EQ(log.reserved(), 0u);
}

TEST_F(DatabaseTest, WithoutTheDepositItExpiresOnTime) {
  auto sink = run(withdraw("a", 10, 3 * kSecond));
  sim.scheduler.run_for(3 * kSecond - 1);
  EXPECT_FALSE(sink->ended());
  sim.scheduler.run_for(1);
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::wait_expired);
  EXPECT_EQ(sink->at(0).result.failed_index, 0u);
  EXPECT_EQ(sink->at(0).guard->key, "a");
  EXPECT_EQ(sink->at(0).guard->type, ValueType::absent);
}

TEST_F(DatabaseTest, WaitTimeoutZeroIsThisBatchOnly) {
  EXPECT_EQ(run(withdraw("a", 10, 0))->outcome(0), Outcome::wait_expired);
}

TEST_F(DatabaseTest, OneThatWaitsDoesNotHoldTheOthersOfItsRequest) {
  auto sink = run(both(withdraw("a", 10, 60 * kSecond), add("b", 1)));
  EXPECT_FALSE(sink->done);
  EXPECT_EQ(sink->outcome(1), Outcome::committed);
  run(add("a", 10));
  EXPECT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::committed);
}

TEST_F(DatabaseTest, ParkedTransactionsAreNotRunForNothing) {
  run(withdraw("a", 10, 3600 * kSecond));
  run(withdraw("b", 1000, 3600 * kSecond));
  const Version before = database->status().next_version;
  for (int i = 0; i < 10; ++i) run(add("other", 1));
  for (int i = 0; i < 9; ++i) run(add("b", 1));  // written, but not enough
  // Every transaction of a batch takes a version in each pass: 19 batches of one.
  EXPECT_EQ(database->status().next_version, before + 19);
  EXPECT_EQ(database->status().parked, 2u);
}

TEST_F(DatabaseTest, AnEarlierGuardThatFailsMeanwhileEndsTheWaiting) {
  run(add("open", 1));
  auto sink = run([](engine::ColumnsBuilder& b) {
    b.begin(0, 60 * kSecond);
    b.guard(engine::GuardKind::equal, engine::OnFalse::fail, b.key("open"), 1);
    b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, b.key("a"), 10);
    b.end();
  });
  EXPECT_FALSE(sink->ended());
  run(add("open", -1));
  ASSERT_TRUE(sink->done);
  EXPECT_EQ(sink->outcome(0), Outcome::guard_failed);
}

TEST_F(DatabaseTest, ParkedTransactionsJoinInTheOrderOfTheirArrival) {
  auto first = run(withdraw("a", 10, 60 * kSecond));
  auto second = run(withdraw("a", 10, 60 * kSecond));
  run(add("a", 10));
  EXPECT_EQ(first->outcome(0), Outcome::committed);
  EXPECT_FALSE(second->ended());
  run(add("a", 10));
  EXPECT_EQ(second->outcome(0), Outcome::committed);
}

TEST_F(DatabaseTest, ThoseOfAnEarlierBatchJoinBeforeThoseOfALaterOne) {
  std::vector<std::shared_ptr<RecordingSink>> early;
  for (int i = 0; i < 5; ++i) early.push_back(submit(withdraw("a", 10, 60 * kSecond)));
  settle();
  EXPECT_EQ(database->status().batches, 1u);
  auto late = run(withdraw("a", 10, 60 * kSecond));
  run(add("a", 50));
  for (const auto& sink : early) EXPECT_EQ(sink->outcome(0), Outcome::committed);
  EXPECT_FALSE(late->ended());
  run(add("a", 10));
  EXPECT_EQ(late->outcome(0), Outcome::committed);
}

TEST_F(DatabaseTest, ATryInVainDoesNotMoveTheDeadline) {
  auto first = run(withdraw("a", 10, 3 * kSecond));
  auto second = run(withdraw("a", 10, 3 * kSecond));
  sim.scheduler.run_for(2 * kSecond);
  run(add("a", 10));  // both try, and it is enough for one
  EXPECT_EQ(first->outcome(0), Outcome::committed);
  EXPECT_FALSE(second->ended());
  sim.scheduler.run_for(kSecond);
  ASSERT_TRUE(second->done);
  EXPECT_EQ(second->outcome(0), Outcome::wait_expired);
}

TEST_F(DatabaseTest, ParkedPlacesAreBoundedAtAdmission) {
  options.parked_max = 1;
  reopen();
  auto first = run(withdraw("a", 10, 60 * kSecond));
  auto second = run(withdraw("a", 10, 60 * kSecond));
  ASSERT_TRUE(second->failure);
  expect_shown(*second->failure, "raise --parked-max", ErrorReason::parked_full);
  EXPECT_GT(second->failure->retry_after_us().value_or(0), 0);
  EXPECT_TRUE(second->failure->not_run());
  run(add("a", 10));
  EXPECT_TRUE(first->done);
  EXPECT_FALSE(run(withdraw("a", 10, 60 * kSecond))->ended());
}

TEST_F(DatabaseTest, AFullQueueRefusesAndNamesItsKnob) {
  options.queue_transactions_max = 2;
  reopen();
  auto first = submit(both(add("a", 1), add("a", 1)));
  auto second = submit(add("a", 1));
  ASSERT_TRUE(second->failure);
  expect_shown(*second->failure, "raise --queue-transactions-max", ErrorReason::queue_full);
  EXPECT_EQ(second->failure->violation()->actual, "3 transactions with this request");
  settle();
  EXPECT_TRUE(first->done);
  EXPECT_TRUE(run(add("a", 1))->done);
}

TEST_F(DatabaseTest, AQueueThatIsFullInBytesNamesItsKnob) {
  options.queue_bytes_max = 10;
  reopen();
  const auto refused = submit(add("a", 1));
  ASSERT_TRUE(refused->failure);
  expect_shown(*refused->failure, "raise --queue-bytes-max", ErrorReason::queue_full);
  EXPECT_TRUE(refused->failure->not_run());
}

TEST_F(DatabaseTest, AFullDiskRefusesAtAdmissionAndRecovers) {
  log.set_reserve_limit(100);
  auto refused = run(add("a", 1));
  ASSERT_TRUE(refused->failure);
  EXPECT_EQ(refused->failure->code(), StatusCode::resource_exhausted);
  EXPECT_EQ(refused->failure->reason(), ErrorReason::disk_full);
  EXPECT_TRUE(refused->failure->not_run());
  log.set_reserve_limit(1 << 20);
  EXPECT_TRUE(run(add("a", 1))->done);
  EXPECT_EQ(integer("a"), 1);
  EXPECT_EQ(log.reserved(), 0u);
}

TEST_F(DatabaseTest, AFailedSyncIsFatalAndNothingIsAnswered) {
  log.fail_next_append();
  auto sink = run(add("a", 1));
  EXPECT_FALSE(sink->ended());
  ASSERT_TRUE(fatal);
  EXPECT_EQ(database->status().state, DatabaseStatus::State::stopped);
  EXPECT_FALSE(run(add("a", 1))->done);
}

TEST_F(DatabaseTest, ARetryIsAppliedOnce) {
  const SessionId session = open_session();
  auto first = run(add("a", 1), session, 1);
  auto again = run(add("a", 1), session, 1);
  ASSERT_TRUE(again->done);
  EXPECT_EQ(again->at(0).result.version, first->at(0).result.version);
  EXPECT_EQ(again->at(0).result.batch, first->at(0).result.batch);
  EXPECT_EQ(integer("a"), 1);
  auto other = run(add("a", 2), session, 1);
  ASSERT_TRUE(other->failure);
  EXPECT_EQ(other->failure->code(), StatusCode::invalid_argument);
}

TEST_F(DatabaseTest, ARetryAfterACrashReturnsTheOldResultsAndRunsOnlyTheRest) {
  const SessionId session = open_session();
  const Build request = both(add("b", 1), both(withdraw("a", 10, 60 * kSecond), add("c", 1)));
  auto first = run(request, session, 1);
  EXPECT_FALSE(first->ended());
  EXPECT_EQ(first->answers.size(), 2u);
  reopen();
  auto again = run(request, session, 1);
  EXPECT_FALSE(again->ended());
  ASSERT_EQ(again->answers.size(), 2u);
  EXPECT_EQ(again->at(0).result.version, first->at(0).result.version);
  run(add("a", 10));
  ASSERT_TRUE(again->done);
  EXPECT_EQ(again->outcome(1), Outcome::committed);
  EXPECT_EQ(integer("a"), 0);
  EXPECT_EQ(integer("b"), 1);
  EXPECT_EQ(integer("c"), 1);
  // And once more: all from the session.
  auto third = run(request, session, 1);
  EXPECT_TRUE(third->done);
  EXPECT_EQ(third->at(1).result.version, again->at(1).result.version);
  EXPECT_EQ(integer("a"), 0);
}

TEST_F(DatabaseTest, ARetryJoinsTheOneInFlight) {
  const SessionId session = open_session();
  auto first = run(withdraw("a", 10, 60 * kSecond), session, 1);
  auto second = run(withdraw("a", 10, 60 * kSecond), session, 1);
  EXPECT_EQ(database->status().parked, 1u);
  run(add("a", 20));
  EXPECT_TRUE(first->done);
  EXPECT_TRUE(second->done);
  EXPECT_EQ(integer("a"), 10);
}

TEST_F(DatabaseTest, UnknownAndExpiredSessionsAreRefused) {
  auto unknown = run(add("a", 1), SessionId{{1}}, 1);
  ASSERT_TRUE(unknown->failure);
  EXPECT_EQ(unknown->failure->code(), StatusCode::failed_precondition);
  const SessionId session = open_session(2 * kSecond);
  sim.scheduler.run_for(kSecond);
  EXPECT_TRUE(database->keep_alive(nullptr, session).ok());
  sim.scheduler.run_for(kSecond + kSecond / 2);
  EXPECT_TRUE(run(add("a", 1), session, 1)->done);
  sim.scheduler.run_for(4 * kSecond);
  auto expired = run(add("a", 1), session, 2);
  ASSERT_TRUE(expired->failure);
  EXPECT_EQ(expired->failure->code(), StatusCode::failed_precondition);
  EXPECT_EQ(integer("a"), 1);
  reopen();
  EXPECT_TRUE(run(add("a", 1), session, 1)->failure);
}

// Some of its transactions are answered, and one waits: the retry waits with it, and nothing runs twice.
TEST_F(DatabaseTest, ARetryJoinsARequestThatIsAnsweredInPart) {
  const SessionId session = open_session();
  const Build request = both(withdraw("a", 10, 60 * kSecond), add("b", 1));
  auto first = run(request, session, 1);
  auto again = run(request, session, 1);
  EXPECT_FALSE(again->ended());
  EXPECT_EQ(again->outcome(1), Outcome::committed);
  EXPECT_EQ(database->status().parked, 1u);
  run(add("a", 25));
  for (const auto& sink : {first, again}) {
    ASSERT_TRUE(sink->done);
    EXPECT_EQ(sink->outcome(0), Outcome::committed);
  }
  EXPECT_EQ(again->at(0).result.version, first->at(0).result.version);
  EXPECT_EQ(integer("a"), 15);
  EXPECT_EQ(integer("b"), 1);
}

TEST_F(DatabaseTest, CancelAnswersWhatIsParkedAndNothingElse) {
  const SessionId session = open_session();
  auto sink = run(both(withdraw("a", 10, 60 * kSecond), add("b", 1)), session, 7);
  std::vector<ParkedTransaction> parked;
  database->list_parked({}, 0, 10, [&](Result<ParkedPage> listed) { parked = std::move(listed->parked); });
  settle();
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].session, session);
  EXPECT_EQ(parked[0].request, 7u);
  EXPECT_EQ(parked[0].index, 0u);
  EXPECT_EQ(parked[0].guard_key, "a");
  std::uint64_t cancelled = 0;
  CancelTarget target;
  target.session = session;
  target.request = 7;
  database->cancel({}, target, [&](Result<std::uint64_t> count) { cancelled = *count; });
  settle();
  EXPECT_EQ(cancelled, 1u);
  ASSERT_TRUE(sink->done);
  EXPECT_TRUE(sink->at(0).result.cancelled);
  EXPECT_EQ(sink->outcome(1), Outcome::committed);
  EXPECT_EQ(database->status().parked, 0u);
  // The session remembers it, over a crash too.
  reopen();
  auto again = run(both(withdraw("a", 10, 60 * kSecond), add("b", 1)), session, 7);
  EXPECT_TRUE(again->done);
  EXPECT_TRUE(again->at(0).result.cancelled);
  EXPECT_EQ(integer("b"), 1);
}

TEST_F(DatabaseTest, DrainFinishesTheQueueFailsTheParkedAndWritesACheckpoint) {
  auto parked = run(withdraw("a", 10, 60 * kSecond));
  auto queued = submit(add("b", 1));
  bool answered = false, drained = false;
  database->drain(
      [&] {
        answered = true;
        EXPECT_TRUE(queued->done && parked->failure);
        EXPECT_LT(log.checkpoint(), database->status().durable_batch);
      },
      [&] { drained = answered; });
  auto refused = submit(add("c", 1));
  settle();
  EXPECT_TRUE(drained);
  EXPECT_TRUE(queued->done);
  ASSERT_TRUE(parked->failure);
  EXPECT_EQ(parked->failure->code(), StatusCode::unavailable);
  EXPECT_EQ(refused->failure->code(), StatusCode::unavailable);
  EXPECT_EQ(log.checkpoint(), database->status().durable_batch);
  EXPECT_EQ(log.reserved(), 0u);
  reopen();
  EXPECT_EQ(integer("b"), 1);
  EXPECT_EQ(integer("c"), 0);
}

TEST_F(DatabaseTest, LaterPagesOfAScanShowTheBoundaryOfTheFirst) {
  for (int i = 0; i < 6; ++i) run(add("k" + std::to_string(i), i + 1));
  std::optional<Result<ScanPage>> page;
  const auto scan = [&](ScanRequest request) {
    page.reset();
    database->scan(std::move(request), [&](Result<ScanPage> got) { page.emplace(std::move(got)); });
    settle();
    ASSERT_TRUE(page);
  };
  scan({"k", "l", 2, {}, true});
  ASSERT_TRUE(page->ok());
  const BatchNumber boundary = (*page)->boundary;
  const std::uint64_t reader = (*page)->reader;
  ASSERT_EQ((*page)->pairs.size(), 2u);
  EXPECT_TRUE((*page)->more);
  EXPECT_EQ((*page)->next_from, "k2");
  run(add("k3", 100));
  run(add("k22", 5));
  run([](engine::ColumnsBuilder& b) {
    b.begin();
    b.op(engine::OpKind::del, b.key("k4"));
    b.end();
  });
  scan({"k2", "l", 0, boundary, true, reader});
  ASSERT_TRUE(page->ok());
  ASSERT_EQ((*page)->pairs.size(), 4u);
  EXPECT_EQ((*page)->pairs[0].key, "k2");
  EXPECT_EQ((*page)->pairs[1].integer, 4);
  EXPECT_EQ((*page)->pairs[2].integer, 5);
  EXPECT_FALSE((*page)->more);
  // The last page gave the boundary up.
  run(add("k3", 1));
  scan({"k2", "l", 0, boundary, true});
  ASSERT_FALSE(page->ok());
  EXPECT_EQ(page->status().code(), StatusCode::aborted);
}

TEST_F(DatabaseTest, BytesSurviveReplacementUntilTheyAreAnswered) {
  const auto put = [](const std::string& value) {
    return [value](engine::ColumnsBuilder& b) {
      b.begin();
      const std::uint32_t k = b.key("k");
      b.op(engine::OpKind::get, k);
      b.op(engine::OpKind::put, k, engine::Operand::bytes, b.value(value));
      b.end();
    };
  };
  auto first = submit(put("one"));
  auto second = submit(put("two"));
  settle();
  auto third = run(put("three"));
  EXPECT_EQ(first->at(0).reads.at(0).type, ValueType::absent);
  EXPECT_EQ(second->at(0).reads.at(0).bytes, "one");
  EXPECT_EQ(third->at(0).reads.at(0).bytes, "two");
}

TEST_F(DatabaseTest, CheckpointAndLogGiveTheStateBack) {
  options.checkpoint_interval_us = kSecond;
  options.tombstone_retention_us = 120 * kSecond;
  reopen();
  for (int i = 0; i < 200; ++i) {
    run(add("k" + std::to_string(i % 17), i));
    if (i % 5 == 0) {
      run([&](engine::ColumnsBuilder& b) {
        b.begin();
        b.op(engine::OpKind::del, b.key("k" + std::to_string((i + 3) % 17)));
        b.end();
      });
    }
    sim.scheduler.run_for(3 * kSecond);
  }
  const Hash128 hash = database->status().state_hash;
  EXPECT_GT(log.checkpoint(), 0u);
  EXPECT_LT(log.records(), 20u);  // trimmed
  reopen();                       // verifies the hash
  EXPECT_EQ(database->status().state_hash, hash);
  run(add("k0", 1));
  EXPECT_NE(database->status().state_hash, hash);
}

}  // namespace
}  // namespace kilokv::server
