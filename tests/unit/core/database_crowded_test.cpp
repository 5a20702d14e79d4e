// What many or greedy requests must not do to the others: a full table, a key that thousands wait for.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

constexpr DurationUs kSecond = 1000000;

class FullTableTest : public CoreFixture {
 protected:
  void SetUp() override {
    table_records_max = 3;
    open();
    run(both(add("a", 1), add("b", 1)));
    run(add("waited for", 0));
  }
  // No delay: nothing frees keys soon, so a client that tries again does so in vain.
  static void expect_table_full(const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::resource_exhausted);
    EXPECT_EQ(status.reason(), ErrorReason::table_full);
    EXPECT_FALSE(status.retry_after_us().has_value());
    ASSERT_NE(status.violation(), nullptr);
    EXPECT_EQ(status.violation()->setting, "--table-records-max");
  }
  // Requires: no part of the request has run.
  static void expect_full(const RecordingSink& sink) {
    ASSERT_TRUE(sink.failure);
    expect_table_full(*sink.failure);
    EXPECT_TRUE(sink.failure->not_run());
    EXPECT_TRUE(sink.answers.empty());
  }
};

TEST_F(FullTableTest, OnlyTheRequestsThatNeedRoomFail) {
  const auto parked = run(withdraw("waited for", 5, 60 * kSecond));
  const BatchNumber before = database->status().durable_batch;
  const auto first = submit(add("a", 10));
  const auto too_much = submit(both(add("b", 100), add("c", 1)));
  const auto deposit = submit(add("waited for", 5));
  const auto last = submit(both(add("b", 10), add("a", 10)));
  settle();
  expect_full(*too_much);
  ASSERT_TRUE(first->done && deposit->done && last->done && parked->done);
  EXPECT_EQ(parked->outcome(0), Outcome::committed);
  EXPECT_LT(first->at(0).result.batch, last->at(0).result.batch);
  EXPECT_EQ(last->at(0).result.batch, last->at(0).result.admitted_batch);
  EXPECT_EQ(first->at(0).result.batch, before + 1);
  EXPECT_EQ(integer("a"), 21);
  EXPECT_EQ(integer("b"), 11);
  EXPECT_EQ(log.reserved(), 0u);
  reopen();
  EXPECT_EQ(integer("a"), 21);
}

TEST_F(FullTableTest, ARequestInASessionCanBeSentAgainWhenThereIsRoom) {
  const SessionId session = open_session();
  const auto refused = submit(add("c", 7), session, 1);
  const auto other = submit(add("a", 1), session, 2);
  settle();
  expect_full(*refused);
  EXPECT_TRUE(other->done);
  table_records_max = 10;
  reopen();
  EXPECT_EQ(run(add("c", 7), session, 1)->outcome(0), Outcome::committed);
  EXPECT_EQ(integer("c"), 7);
}

TEST_F(FullTableTest, ACancelMeetsWhatWaitsForItsTurn) {
  const SessionId session = open_session();
  const auto refused = submit(add("c", 7));
  const auto waiting = submit(withdraw("a", 1000, 60 * kSecond), session, 1);
  std::optional<std::uint64_t> cancelled;
  database->cancel({}, {session, 1, {}, 0}, [&](Result<std::uint64_t> count) { cancelled = *count; });
  settle();
  expect_full(*refused);
  EXPECT_EQ(cancelled, 1u);
  ASSERT_TRUE(waiting->done);
  EXPECT_TRUE(waiting->at(0).result.cancelled);
}

// One transaction of a request is cancelled while the other one, which needs room, runs.
TEST_F(FullTableTest, WhatWasCancelledIsAnsweredBeforeItsRequestFails) {
  table_records_max = 4;
  reopen();
  const SessionId session = open_session();
  const auto needs_room = [](engine::ColumnsBuilder& b) {
    b.begin(0, 60 * kSecond);
    b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, b.key("a"), 2);
    b.op(engine::OpKind::add, b.key("c"), engine::Operand::integer, 1);
    b.end();
  };
  const auto request = run(both(withdraw("a", 1000, 60 * kSecond), needs_room), session, 1);
  EXPECT_EQ(database->status().parked, 2u);
  run(add("d", 1));  // takes the last place
  submit(add("a", 1));
  std::optional<std::uint64_t> cancelled;
  database->cancel({}, {session, 1, {0}, 0}, [&](Result<std::uint64_t> count) { cancelled = *count; });
  settle();
  EXPECT_EQ(cancelled, 1u);
  ASSERT_TRUE(request->answers.contains(0));
  EXPECT_TRUE(request->at(0).result.cancelled);
  ASSERT_TRUE(request->failure);
  expect_table_full(*request->failure);
  EXPECT_FALSE(request->failure->not_run());
  EXPECT_EQ(log.reserved(), 0u);
}

// A batch holds one transaction. So the first one is decided when the second one is refused.
TEST_F(FullTableTest, ARequestOfWhichAPartHasRunDoesNotSayThatItDidNotRun) {
  options.batch_max_transactions = 1;
  reopen();
  for (const bool in_session : {false, true}) {
    std::optional<SessionId> session;
    if (in_session) session = open_session();
    const auto request = run(both(add("a", 1), add("c", 1)), session, in_session ? 1 : 0);
    EXPECT_EQ(request->outcome(0), Outcome::committed);
    ASSERT_TRUE(request->failure);
    expect_table_full(*request->failure);
    EXPECT_FALSE(request->failure->not_run());
  }
  EXPECT_EQ(integer("a"), 3);
}

TEST_F(FullTableTest, ADrainAnswersWhatWaitsForItsTurn) {
  const auto refused = submit(add("c", 7));
  const auto first = submit(add("a", 1));
  const auto last = submit(add("b", 1));
  bool drained = false;
  database->drain([] {},
                  [&] {
                    drained = true;
                    EXPECT_TRUE(refused->failure && first->done && last->done);
                  });
  settle();
  EXPECT_TRUE(drained);
  expect_full(*refused);
}

TEST_F(FullTableTest, OneThatNeedsRoomDoesNotSplitTheBatchIntoItsTransactions) {
  std::vector<std::shared_ptr<RecordingSink>> others;
  std::shared_ptr<RecordingSink> refused;
  const std::uint64_t before = database->status().batches;
  for (int i = 0; i < 400; ++i) {
    others.push_back(submit(add("a", 1)));
    if (i == 123) refused = submit(add("c", 1));
  }
  settle();
  expect_full(*refused);
  for (const auto& other : others) EXPECT_TRUE(other->done);
  EXPECT_LT(database->status().batches, before + 30);
  EXPECT_EQ(integer("a"), 401);
}

TEST_F(FullTableTest, AllThatNeedRoomFailAndNoOther) {
  std::vector<std::shared_ptr<RecordingSink>> good, bad;
  for (int i = 0; i < 60; ++i) (i % 7 == 3 ? bad : good).push_back(submit(add(i % 7 == 3 ? "c" : "a", 1)));
  settle();
  for (const auto& sink : good) EXPECT_TRUE(sink->done);
  for (const auto& sink : bad) expect_full(*sink);
  EXPECT_EQ(log.reserved(), 0u);
}

// What batches are limited in beside their size: reads.
class ReadLimitTest : public CoreFixture {
 protected:
  void SetUp() override {
    options.batch_max_reads = 100;
    open();
  }
  static Build get(const std::string& key) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::get, b.key(key));
      b.end();
    };
  }
};

TEST_F(ReadLimitTest, ALargeConstantThatIsOnlyComparedDoesNotMakeReadsDearer) {
  run([](engine::ColumnsBuilder& b) {
    b.begin();
    b.guard(engine::GuardKind::bytes_equal, engine::OnFalse::fail, b.key("a"),
            b.value(std::string(std::size_t{1} << 20, 'x')));
    b.op(engine::OpKind::get, b.key("a"));
    b.end();
  });
  std::vector<std::shared_ptr<RecordingSink>> reads;
  for (int i = 0; i < 90; ++i) reads.push_back(submit(get("a")));
  settle();
  for (const auto& read : reads) EXPECT_EQ(read->at(0).result.batch, reads[0]->at(0).result.batch);
}

// Each of those that wait takes more than half of a batch, and each of the queue.
TEST_F(ReadLimitTest, AQueueIsNotHeldUpByParkedTransactionsThatCostMuch) {
  const auto patient = [](engine::ColumnsBuilder& b) {
    b.begin(0, 600 * kSecond);
    b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, b.key("hot"), 1);
    for (int i = 0; i < 60; ++i) b.op(engine::OpKind::get, b.key("hot"));
    b.end();
  };
  for (int i = 0; i < 200; ++i) submit(patient);
  settle();
  const auto deposit = submit(add("hot", 1));
  std::vector<std::shared_ptr<RecordingSink>> others;
  for (int i = 0; i < 5; ++i) others.push_back(submit(patient));
  settle();
  for (const auto& other : others) {
    EXPECT_LE(other->at(0).result.batch, deposit->at(0).result.batch + 15);
  }
}

class HotGuardTest : public CoreFixture {
 protected:
  static constexpr int kWaiting = 3000;

  void SetUp() override {
    options.batch_max_transactions = 20;
    open();
    for (int i = 0; i < kWaiting; ++i) waiting.push_back(submit(withdraw("hot", 2, 600 * kSecond)));
    settle();
    EXPECT_EQ(database->status().parked, std::uint64_t{kWaiting});
  }
  int committed() const {
    int count = 0;
    for (const auto& sink : waiting) count += sink->outcome(0) == Outcome::committed ? 1 : 0;
    return count;
  }

  std::vector<std::shared_ptr<RecordingSink>> waiting;
};

TEST_F(HotGuardTest, AllAreCoveredInTheEndAndNoneTwice) {
  run(add("hot", kWaiting));  // for half of them
  EXPECT_EQ(committed(), kWaiting / 2);
  EXPECT_EQ(integer("hot"), 0);
  run(add("hot", kWaiting));
  EXPECT_EQ(committed(), kWaiting);
  EXPECT_EQ(database->status().parked, 0u);
}

TEST_F(HotGuardTest, ThoseThatAreCoveredShareTheBatchesWithOthers) {
  const auto deposit = submit(add("hot", 2 * kWaiting));
  std::vector<std::shared_ptr<RecordingSink>> others;
  for (int i = 0; i < 100; ++i) others.push_back(submit(add("other", 1)));
  settle();
  EXPECT_EQ(committed(), kWaiting);
  for (const auto& other : others) EXPECT_LE(other->at(0).result.batch, deposit->at(0).result.batch + 11);
}

// A write to a key that thousands wait for costs a bounded number of looks at them, and no run.
TEST_F(HotGuardTest, WritesThatCoverNobodyRunNobodyAgain) {
  const std::uint64_t before = database->status().batches;
  for (int i = 0; i < 50; ++i) run(both(add("hot", 1), add("hot", -1)));
  EXPECT_EQ(database->status().batches, before + 50);
  EXPECT_EQ(database->status().parked, std::uint64_t{kWaiting});
}

TEST_F(HotGuardTest, ThoseThatAreDueTogetherExpireABatchAtATime) {
  const auto other = submit(withdraw("never", 1, 601 * kSecond));
  sim.scheduler.run_for(602 * kSecond);
  settle();
  for (const auto& sink : waiting) ASSERT_EQ(sink->outcome(0), Outcome::wait_expired);
  EXPECT_EQ(other->outcome(0), Outcome::wait_expired);
  EXPECT_EQ(log.reserved(), 0u);
}

}  // namespace
}  // namespace kilokv::server
