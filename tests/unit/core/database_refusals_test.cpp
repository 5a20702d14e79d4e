// Every refusal of the core: its code, its reason, and whether it promises that nothing ran. Clients act on all three.
// Without a session, a client sends a request again if the refusal has not_run. A wrong promise applies it twice.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

constexpr DurationUs kSecond = 1000000;
constexpr bool kNotRun = true, kMayHaveRun = false;

class RefusalsTest : public CoreFixture {
 protected:
  using Sink = std::shared_ptr<RecordingSink>;

  static void expect(const Status& status, StatusCode code, ErrorReason reason, bool not_run) {
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_EQ(static_cast<int>(status.reason()), static_cast<int>(reason)) << status.message();
    EXPECT_EQ(status.not_run(), not_run) << status.message();
  }
  static void expect(const Sink& sink, StatusCode code, ErrorReason reason, bool not_run) {
    ASSERT_TRUE(sink->failure);
    expect(*sink->failure, code, reason, not_run);
  }
  static void expect_full(const Sink& sink, ErrorReason reason, bool not_run) {
    expect(sink, StatusCode::resource_exhausted, reason, not_run);
  }
  static void expect_full(const Status& status, ErrorReason reason, bool not_run) {
    expect(status, StatusCode::resource_exhausted, reason, not_run);
  }

  // The status with which a call ends.
  Status open_session_status(DurationUs lease_us = 0) {
    return end_of([&](auto end) {
      database->open_session({}, nullptr, lease_us,
                             [end](Result<SessionId> session, DurationUs) { end(session.status()); });
    });
  }
  Status close_session_status(const SessionId& session) {
    return end_of([&](auto end) { database->close_session({}, nullptr, session, end); });
  }
  Status cancel_status() {
    return end_of([&](auto end) {
      database->cancel({}, {{}, 0, {}, 1}, [end](Result<std::uint64_t> count) { end(count.status()); });
    });
  }
  Status list_status() {
    return end_of(
        [&](auto end) { database->list_parked({}, 0, 1, [end](Result<ParkedPage> list) { end(list.status()); }); });
  }
  Status scan_status(const ScanRequest& request = {}) {
    return end_of([&](auto end) { database->scan(request, [end](Result<ScanPage> page) { end(page.status()); }); });
  }
  // Without settle(): a refusal ends the call at once.
  static Status end_of(const std::function<void(std::function<void(Status)>)>& call) {
    auto ended = std::make_shared<std::optional<Status>>();
    call([ended](const Status& status) { *ended = status; });
    return *ended ? **ended : Status(StatusCode::internal, "the call has not ended");
  }

  Status upload_status(const SessionId& session, std::uint64_t number, std::uint64_t offset = 0,
                       const std::string& key = "k") {
    ReadSetChunk chunk;
    chunk.identity = {session, number, 0, {}};
    chunk.offset = offset;
    chunk.keys = {key};
    const std::vector<Version> versions = {0};
    chunk.versions = versions;
    return database->upload(chunk).status();
  }
};

TEST_F(RefusalsTest, AFullQueue) {
  options.queue_transactions_max = 1;
  reopen();
  submit(add("a", 1));
  expect_full(submit(add("a", 1)), ErrorReason::queue_full, kNotRun);
  settle();
  options.queue_transactions_max = 100;
  options.queue_bytes_max = 1;
  reopen();
  expect_full(run(add("a", 1)), ErrorReason::queue_full, kNotRun);
  options.queue_bytes_max = 1 << 20;
  reopen();
  EXPECT_EQ(integer("a"), 1);
}

TEST_F(RefusalsTest, PlacesToWaitAndTheLog) {
  options.parked_max = 1;
  reopen();
  run(withdraw("a", 10, 60 * kSecond));
  const Sink second = run(withdraw("a", 10, 60 * kSecond));
  ASSERT_TRUE(second->failure);
  EXPECT_TRUE(second->failure->not_run());
  log.set_reserve_limit(1);
  const Sink third = run(add("a", 1));
  ASSERT_TRUE(third->failure);
  EXPECT_EQ(third->failure->code(), StatusCode::resource_exhausted);
  EXPECT_TRUE(third->failure->not_run());
}

// A PUT or an ADD in any list of any transaction makes the request one of new data.
TEST_F(RefusalsTest, AFullDiskRefusesNewDataOnly) {
  using engine::ColumnsBuilder;
  using engine::GuardKind;
  using engine::OnFalse;
  using engine::Operand;
  using engine::OpKind;
  EXPECT_TRUE(run(add("a", 1))->done);
  log.set_reserve_limit(0);
  const auto with = [this](const std::function<void(ColumnsBuilder&)>& operations) {
    return run([&](ColumnsBuilder& b) {
      b.begin();
      b.op(OpKind::get, b.key("a"));
      b.end();
      b.begin();
      b.guard(GuardKind::absent, OnFalse::fail, b.key("a"), 0);
      operations(b);
      b.end();
    });
  };
  const auto refused = [&](const std::function<void(ColumnsBuilder&)>& operations) {
    const Sink sink = with(operations);
    return sink->failure && sink->failure->reason() == ErrorReason::disk_full;
  };
  EXPECT_TRUE(refused([](ColumnsBuilder& b) { b.op(OpKind::add, b.key("b"), Operand::integer, 1); }));
  EXPECT_TRUE(refused([](ColumnsBuilder& b) { b.op(OpKind::put, b.key("b"), Operand::integer, 1); }));
  EXPECT_TRUE(refused([](ColumnsBuilder& b) {
    b.begin_else();
    b.op(OpKind::put, b.key("b"), Operand::integer, 1);
  }));
  const Sink reads_and_deletes = with([](ColumnsBuilder& b) {
    b.op(OpKind::get, b.key("b"));
    b.begin_else();
    b.range_op(OpKind::range_get, "a", "b", 10);
    b.op(OpKind::del, b.key("a"));
    b.range_op(OpKind::delete_range, "a", "b", 10);
  });
  ASSERT_TRUE(reads_and_deletes->done);
  EXPECT_EQ(reads_and_deletes->outcome(1), Outcome::guard_failed);
  EXPECT_FALSE(refused([](ColumnsBuilder& b) { b.op(OpKind::get, b.key("a")); }));
}

TEST_F(RefusalsTest, WhatASessionRefuses) {
  const SessionId session = open_session();
  EXPECT_TRUE(run(add("a", 1), session, 1)->done);
  expect(run(add("a", 2), session, 1), StatusCode::invalid_argument, ErrorReason::content_differs, kNotRun);
  EXPECT_TRUE(run(add("a", 1), session, 3, 2)->done);
  expect(run(add("a", 1), session, 2), StatusCode::failed_precondition, ErrorReason::number_acknowledged, kNotRun);
  SessionId unknown = session;
  unknown.bytes[0] ^= 1;
  expect(run(add("a", 1), unknown, 1), StatusCode::failed_precondition, ErrorReason::session_unknown, kNotRun);
  EXPECT_EQ(integer("a"), 2);
}

TEST_F(RefusalsTest, AFullSession) {
  options.session_requests_max = 2;
  reopen();
  const SessionId session = open_session();
  for (std::uint64_t number = 1; number <= 2; ++number) EXPECT_TRUE(run(add("a", 1), session, number)->done);
  expect_full(run(add("a", 1), session, 4), ErrorReason::session_full, kNotRun);
  options.session_requests_max = 4096;
  options.session_bytes_total_max = 2400;  // what one request may take, and not one result beside it
  reopen();
  expect_full(run(add("a", 1), session, 5), ErrorReason::session_full, kNotRun);
  options.session_bytes_max = 1;
  reopen();
  expect(run(add("a", 1), open_session(), 1), StatusCode::invalid_argument, ErrorReason::out_of_range, kNotRun);
}

// This is about the sending that is refused: the request itself is in flight. A client must remember its own sendings.
TEST_F(RefusalsTest, TooManyCallsThatWaitForOneRequest) {
  const SessionId session = open_session();
  for (int i = 0; i < 16; ++i) EXPECT_FALSE(run(withdraw("a", 10, 60 * kSecond), session, 1)->ended());
  expect_full(run(withdraw("a", 10, 60 * kSecond), session, 1), ErrorReason::calls_full, kNotRun);
}

TEST_F(RefusalsTest, AClientThatHasGoneIsToldNothingAboutItsTransactions) {
  class Gone final : public RecordingSink {
   public:
    bool gone() const override { return true; }
  };
  const SessionId session = open_session();
  auto request = database->acquire_request();
  engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
  withdraw("a", 10, 60 * kSecond)(builder);
  const auto gone = std::make_shared<Gone>();
  request->identity = {session, 1, 0, {}};
  request->sink = gone;
  database->submit(std::move(request));
  settle();
  EXPECT_FALSE(run(withdraw("a", 10, 60 * kSecond), session, 1)->ended());
  expect(gone, StatusCode::cancelled, ErrorReason::cancelled, kMayHaveRun);
}

TEST_F(RefusalsTest, Uploads) {
  const SessionId session = open_session();
  expect(upload_status(session, 1, 1), StatusCode::failed_precondition, ErrorReason::upload_missing, kNotRun);
  EXPECT_TRUE(upload_status(session, 1).ok());
  expect(upload_status(session, 1, 0, "other"), StatusCode::invalid_argument, ErrorReason::content_differs, kNotRun);
  expect(submit(add("a", 1), session, 1, 0, 2), StatusCode::failed_precondition, ErrorReason::upload_missing, kNotRun);
  EXPECT_TRUE(run(add("b", 1), session, 3, 2)->done);
  expect(upload_status(session, 2), StatusCode::failed_precondition, ErrorReason::number_acknowledged, kNotRun);
  options.uploads_bytes_max = 4096;
  reopen();
  EXPECT_TRUE(upload_status(session, 4).ok());
  expect_full(upload_status(session, 5), ErrorReason::uploads_full, kNotRun);
  options.uploads_bytes_max = 1;
  reopen();
  expect(upload_status(session, 4), StatusCode::invalid_argument, ErrorReason::out_of_range, kNotRun);
}

TEST_F(RefusalsTest, CallsInFlight) {
  options.commands_in_flight_max = 1;
  options.scans_in_flight_max = 1;
  reopen();
  const SessionId session = open_session();
  database->open_session({}, nullptr, 0, [](const Result<SessionId>&, DurationUs) {});
  database->scan({}, [](const Result<ScanPage>&) {});
  expect_full(open_session_status(), ErrorReason::calls_full, kNotRun);
  expect_full(close_session_status(session), ErrorReason::calls_full, kNotRun);
  expect_full(cancel_status(), ErrorReason::calls_full, kNotRun);
  expect_full(list_status(), ErrorReason::calls_full, kNotRun);
  expect_full(scan_status(), ErrorReason::calls_full, kNotRun);
}

TEST_F(RefusalsTest, Sessions) {
  options.sessions_max = 1;
  reopen();
  const SessionId session = open_session();
  expect_full(open_session_status(), ErrorReason::sessions_full, kNotRun);
  expect(open_session_status(1), StatusCode::invalid_argument, ErrorReason::out_of_range, kNotRun);
  SessionId unknown = session;
  unknown.bytes[0] ^= 1;
  expect(close_session_status(unknown), StatusCode::failed_precondition, ErrorReason::session_unknown, kNotRun);
}

TEST_F(RefusalsTest, Snapshots) {
  run(add("a", 1));
  std::optional<Status> old;
  database->scan({"", "", 0, BatchNumber{1000}, false}, [&](const Result<ScanPage>& page) { old = page.status(); });
  settle();
  ASSERT_TRUE(old);
  EXPECT_EQ(old->code(), StatusCode::aborted);
  EXPECT_EQ(static_cast<int>(old->reason()), static_cast<int>(ErrorReason::snapshot_too_old));
}

TEST_F(RefusalsTest, ADrain) {
  const SessionId session = open_session();
  const Sink parked = run(withdraw("a", 10, 60 * kSecond));
  const Sink in_session = run(withdraw("a", 10, 60 * kSecond), session, 1);
  database->drain([] {}, [] {});
  settle();
  for (const Sink& sink : {parked, in_session}) {  // they were accepted, but nothing of them was decided
    expect(sink, StatusCode::unavailable, ErrorReason::draining, kNotRun);
  }
  expect(run(add("a", 1)), StatusCode::unavailable, ErrorReason::draining, kNotRun);
  for (const Status& status : {open_session_status(), cancel_status(), scan_status(), upload_status(session, 2)}) {
    expect(status, StatusCode::unavailable, ErrorReason::draining, kNotRun);
  }
}

// The request was admitted. If some of its transactions were decided before another one found no room, it ran in part.
TEST_F(RefusalsTest, AFullTable) {
  table_records_max = 1;
  reopen();
  run(add("a", 1));
  expect_full(run(add("b", 1)), ErrorReason::table_full, kNotRun);
  options.batch_max_transactions = 1;
  reopen();
  const Sink half = run(both(add("a", 1), add("b", 1)));
  EXPECT_EQ(half->outcome(0), Outcome::committed);
  expect_full(half, ErrorReason::table_full, kMayHaveRun);
  EXPECT_EQ(integer("a"), 2);
}

TEST_F(RefusalsTest, NoMemoryForWhatWaits) {
  options.batch_max_transactions = 1;
  options.parked_bytes_max = 1000;
  reopen();
  const Sink half = run(both(add("b", 1), both(withdraw("a", 10, 60 * kSecond), withdraw("a", 10, 60 * kSecond))));
  EXPECT_EQ(half->outcome(0), Outcome::committed);
  expect_full(half, ErrorReason::parked_full, kMayHaveRun);
  EXPECT_EQ(integer("b"), 1);
}

// After a crash, a part of the request has stored results, and the rest runs again. If this sending is refused, nothing
// of it ran. That the earlier one ran is what the client must remember.
TEST_F(RefusalsTest, TheRestOfARequestAfterACrash) {
  const SessionId session = open_session();
  const Build content = both(add("b", 1), withdraw("a", 10, 60 * kSecond));
  const Sink first = run(content, session, 1);
  EXPECT_EQ(first->outcome(0), Outcome::committed);
  EXPECT_FALSE(first->ended());
  options.queue_bytes_max = 1;
  reopen();
  const Sink retry = run(content, session, 1);
  EXPECT_EQ(retry->outcome(0), Outcome::committed) << "the stored result comes first";
  expect_full(retry, ErrorReason::queue_full, kNotRun);
}

}  // namespace
}  // namespace kilokv::server
