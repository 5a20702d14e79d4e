// Uploaded read sets in a whole core: commits beside them, retries, crashes, limits, and what becomes of their memory.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/shown_limit.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

class DatabaseUploads : public CoreFixture {
 protected:
  void SetUp() override {
    open();
    session = open_session();
  }

  struct ReadSet {
    std::vector<std::string> keys;
    std::vector<Version> versions;
  };
  static ReadSet absent(int count) {
    ReadSet set;
    for (int i = 0; i < count; ++i) {
      set.keys.push_back("absent/" + std::to_string(i));
      set.versions.push_back(0);
    }
    return set;
  }

  Result<std::uint64_t> upload(std::uint64_t number, const ReadSet& set, std::size_t begin, std::size_t end,
                               std::uint64_t acknowledged_through = 0) {
    ReadSetChunk chunk;
    chunk.identity = {session, number, acknowledged_through, {}};
    chunk.offset = begin;
    chunk.keys.assign(set.keys.begin() + static_cast<std::ptrdiff_t>(begin),
                      set.keys.begin() + static_cast<std::ptrdiff_t>(end));
    chunk.versions = std::span(set.versions).subspan(begin, end - begin);
    return database->upload(chunk);
  }
  void upload_all(std::uint64_t number, const ReadSet& set) {
    const auto keys = upload(number, set, 0, set.keys.size());
    ASSERT_TRUE(keys.ok()) << keys.status().message();
    ASSERT_EQ(*keys, set.keys.size());
  }

  std::shared_ptr<RecordingSink> commit(std::uint64_t number, std::uint64_t keys, const Build& build,
                                        std::uint64_t acknowledged_through = 0) {
    auto sink = submit(build, session, number, acknowledged_through, keys);
    settle();
    return sink;
  }
  void expect_no_uploads() {
    EXPECT_EQ(database->status().uploads, 0u);
    EXPECT_EQ(database->status().uploads_bytes, 0u);
  }
  static StatusCode code(const std::shared_ptr<RecordingSink>& sink) {
    return sink->failure ? sink->failure->code() : StatusCode::ok;
  }

  SessionId session;
};

constexpr auto kCommitted = engine::Outcome::committed;
constexpr auto kGuardFailed = engine::Outcome::guard_failed;

TEST_F(DatabaseUploads, GuardsComeBeforeThoseOfTheTransaction) {
  run(add("absent/7", 1));
  run(add("counter", 5));
  const Version written = run(add("absent/3", 1))->at(0).result.version.value();
  ReadSet set = absent(10);
  upload_all(1, set);
  auto sink = commit(1, 10, add("sum", 1));
  ASSERT_EQ(sink->outcome(0), kGuardFailed);
  EXPECT_EQ(sink->at(0).result.failed_index, 3u);
  EXPECT_EQ(sink->at(0).guard->key, "absent/3");
  EXPECT_EQ(sink->at(0).guard->version, written);
  set.versions[3] = written;
  upload_all(2, set);
  EXPECT_EQ(commit(2, 10, add("sum", 1))->at(0).result.failed_index, 7u);
  set.versions[7] = written - 2;
  const Build guarded = [](engine::ColumnsBuilder& b) {
    b.begin();
    b.guard(engine::GuardKind::equal, engine::OnFalse::fail, b.key("counter"), 6);
    b.op(engine::OpKind::add, b.key("sum"), engine::Operand::integer, 1);
    b.begin_else();
    b.op(engine::OpKind::put, b.key("else"), engine::Operand::integer, 1);
    b.end();
  };
  upload_all(3, set);
  sink = commit(3, 10, guarded);
  ASSERT_EQ(sink->outcome(0), kGuardFailed);
  EXPECT_EQ(sink->at(0).result.failed_index, 10u) << "the transaction's own guards come behind";
  EXPECT_EQ(integer("else"), 1);
  EXPECT_EQ(integer("sum"), 0);
  upload_all(4, set);
  EXPECT_EQ(commit(4, 10, add("sum", 1))->outcome(0), kCommitted);
  EXPECT_EQ(integer("sum"), 1);
  expect_no_uploads();
}

TEST_F(DatabaseUploads, AnEmptyTransactionValidatesTheReadSet) {
  const Build nothing = [](engine::ColumnsBuilder& b) {
    b.begin();
    b.begin_else();
    b.end();
  };
  upload_all(1, absent(3));
  EXPECT_EQ(commit(1, 3, nothing)->outcome(0), kCommitted);
  run(add("absent/2", 1));
  upload_all(2, absent(3));
  auto sink = commit(2, 3, nothing);
  EXPECT_EQ(sink->outcome(0), kGuardFailed);
  EXPECT_EQ(sink->at(0).result.failed_index, 2u);
}

TEST_F(DatabaseUploads, ChunksCanBeSentAgainAndMayOverlap) {
  ReadSet set = absent(10);
  EXPECT_EQ(*upload(1, set, 0, 4), 4u);
  EXPECT_EQ(*upload(1, set, 0, 4), 4u) << "a retry";
  EXPECT_EQ(*upload(1, set, 4, 10), 10u);
  EXPECT_EQ(*upload(1, set, 0, 4), 10u) << "a late one";
  EXPECT_EQ(*upload(1, set, 2, 9), 10u) << "cut in another way";
  const std::uint64_t bytes = database->status().uploads_bytes;
  ReadSet other = set;
  other.versions[5] = 1;
  EXPECT_EQ(upload(1, other, 4, 10).status().code(), StatusCode::invalid_argument);
  other = set;
  other.keys[9] = "absent/x";
  EXPECT_EQ(upload(1, other, 4, 10).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(upload(1, other, 0, 9).value(), 10u);
  EXPECT_EQ(upload(2, set, 4, 10).status().code(), StatusCode::failed_precondition);
  const Status gap = upload(1, absent(20), 11, 20).status();
  EXPECT_EQ(gap.code(), StatusCode::failed_precondition);
  EXPECT_NE(gap.message().find("10 uploaded keys"), std::string::npos) << gap.message();
  EXPECT_EQ(database->status().uploads, 1u);
  EXPECT_EQ(database->status().uploads_bytes, bytes);
  EXPECT_EQ(*upload(1, absent(12), 8, 12), 12u) << "half of it is there";
  EXPECT_EQ(commit(1, 12, add("sum", 1))->outcome(0), kCommitted);
}

TEST_F(DatabaseUploads, ACommitNeedsAsManyKeysAsAreThere) {
  auto sink = commit(1, 5, add("sum", 1));
  EXPECT_EQ(code(sink), StatusCode::failed_precondition);
  EXPECT_NE(sink->failure->message().find("0 uploaded keys, not 5"), std::string::npos) << sink->failure->message();
  upload_all(1, absent(4));
  for (const std::uint64_t keys : {3u, 5u}) {
    EXPECT_EQ(code(commit(1, keys, add("sum", 1))), StatusCode::failed_precondition);
  }
  EXPECT_EQ(code(commit(2, 4, add("sum", 1))), StatusCode::failed_precondition);
  EXPECT_EQ(commit(1, 4, add("sum", 1))->outcome(0), kCommitted);
  EXPECT_EQ(integer("sum"), 1);
}

TEST_F(DatabaseUploads, ARetryGetsTheStoredResultWithoutUploadingAgain) {
  upload_all(1, absent(5));
  const Version version = commit(1, 5, add("sum", 1))->at(0).result.version.value();
  auto again = commit(1, 5, add("sum", 1));
  ASSERT_TRUE(again->done) << again->failure->message();
  EXPECT_EQ(again->at(0).result.version, version);
  EXPECT_EQ(code(commit(1, 5, add("sum", 2))), StatusCode::invalid_argument);
  EXPECT_EQ(code(commit(1, 4, add("sum", 1))), StatusCode::invalid_argument);
  EXPECT_EQ(code(run(add("sum", 1), session, 1)), StatusCode::invalid_argument) << "without the keys it is another";
  EXPECT_EQ(integer("sum"), 1);
  // Uploaded once more, for nothing: it ends with the acknowledgement.
  upload_all(1, absent(5));
  EXPECT_TRUE(commit(1, 5, add("sum", 1))->done);
  run(add("sum", 1), session, 2, 1);
  expect_no_uploads();
  EXPECT_EQ(code(commit(1, 5, add("sum", 1))), StatusCode::failed_precondition);
  EXPECT_EQ(upload(1, absent(5), 0, 5).status().code(), StatusCode::failed_precondition);
}

TEST_F(DatabaseUploads, ARetryJoinsTheCommitInFlight) {
  upload_all(1, absent(5));
  auto first = submit(add("sum", 1), session, 1, 0, 5);
  auto second = submit(add("sum", 1), session, 1, 0, 5);
  settle();
  EXPECT_EQ(first->outcome(0), kCommitted);
  EXPECT_EQ(second->outcome(0), kCommitted);
  EXPECT_EQ(integer("sum"), 1);
}

TEST_F(DatabaseUploads, OtherContentBesideTheCommitInFlightIsRefused) {
  upload_all(1, absent(5));
  auto first = submit(add("sum", 1), session, 1, 0, 5);
  upload_all(1, absent(4));  // nobody needs them, and they do the commit no harm
  const auto refused = {submit(add("sum", 2), session, 1, 0, 5), submit(add("sum", 1), session, 1, 0, 4),
                        submit(add("sum", 1), session, 1)};
  auto again = submit(add("sum", 1), session, 1, 0, 5);
  settle();
  for (const auto& sink : refused) EXPECT_EQ(code(sink), StatusCode::invalid_argument);
  EXPECT_EQ(first->outcome(0), kCommitted);
  EXPECT_EQ(again->outcome(0), kCommitted);
  EXPECT_EQ(integer("sum"), 1);
  run(add("sum", 1), session, 2, 1);
  expect_no_uploads();
}

// The queue refuses the first send after it has taken the keys. A retry finds them, and a joined one is refused with
// it.
TEST_F(DatabaseUploads, ARetryOfARefusedCommitRunsIt) {
  options.queue_transactions_max = 1;
  reopen();
  upload_all(1, absent(5));
  auto filler = submit(add("first", 1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(code(submit(add("sum", 1), session, 1, 0, 5)), StatusCode::resource_exhausted);
    EXPECT_EQ(code(submit(add("sum", 1), session, 1, 0, 4)), StatusCode::failed_precondition);
  }
  settle();
  EXPECT_EQ(commit(1, 5, add("sum", 2))->outcome(0), kCommitted) << "what was refused has no content to differ from";
  EXPECT_EQ(integer("sum"), 2);
  expect_no_uploads();
}

TEST_F(DatabaseUploads, AfterACrashTheKeysAreUploadedAgain) {
  upload_all(1, absent(5));
  upload_all(2, absent(6));
  const Version version = commit(1, 5, add("sum", 1))->at(0).result.version.value();
  reopen();
  expect_no_uploads();
  for (const std::uint64_t number : {1u, 2u}) {
    EXPECT_EQ(code(commit(number, 4 + number, add("sum", 1))), StatusCode::failed_precondition);
  }
  EXPECT_EQ(upload(2, absent(6), 3, 6).status().code(), StatusCode::failed_precondition);
  upload_all(1, absent(5));
  auto again = commit(1, 5, add("sum", 1));
  ASSERT_TRUE(again->done) << again->failure->message();
  EXPECT_EQ(again->at(0).result.version, version) << "it has run before the crash";
  EXPECT_TRUE(commit(1, 5, add("sum", 1))->done) << "known again: once is enough";
  ReadSet other = absent(5);
  other.versions[4] = 9;
  EXPECT_EQ(integer("sum"), 1);
  upload_all(2, absent(6));
  EXPECT_EQ(commit(2, 6, add("sum", 1))->outcome(0), kCommitted);
  EXPECT_EQ(integer("sum"), 2);
  reopen();
  upload_all(1, other);
  EXPECT_EQ(code(commit(1, 5, add("sum", 1))), StatusCode::invalid_argument) << "the keys are part of the content";
}

TEST_F(DatabaseUploads, ARefusedCommitLeavesThemThere) {
  options.queue_transactions_max = 1;
  reopen();
  upload_all(1, absent(5));
  auto first = submit(add("first", 1));  // fills the queue
  auto refused = submit(add("sum", 1), session, 1, 0, 5);
  EXPECT_EQ(code(refused), StatusCode::resource_exhausted);
  EXPECT_EQ(database->status().uploads, 1u);
  settle();
  EXPECT_EQ(*upload(1, absent(8), 0, 8), 8u) << "and they can grow";
  EXPECT_EQ(commit(1, 8, add("sum", 1))->outcome(0), kCommitted);
  EXPECT_EQ(integer("sum"), 1);
  expect_no_uploads();
}

TEST_F(DatabaseUploads, OneThatCannotBeStoredLeavesThemThere) {
  options.session_requests_max = 1;
  reopen();
  run(add("first", 1), session, 1);
  upload_all(2, absent(5));
  EXPECT_EQ(code(commit(2, 5, add("sum", 1))), StatusCode::resource_exhausted);
  EXPECT_EQ(commit(2, 5, add("sum", 1), 1)->outcome(0), kCommitted);
  expect_no_uploads();
}

TEST_F(DatabaseUploads, LimitsNameTheirKnobs) {
  const std::uint64_t per_key = 38 + 8, per_upload = 2048;
  options.read_set_keys_max = 8;
  options.session_uploads_bytes_max = per_upload + 7 * per_key;
  options.uploads_bytes_max = 2 * per_upload + 9 * per_key;
  reopen();
  const auto expect = [](const Result<std::uint64_t>& result, StatusCode code, const char* setting) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), code) << result.status().message();
    ASSERT_NE(result.status().violation(), nullptr);
    EXPECT_EQ(result.status().violation()->setting, setting) << result.status().message();
    EXPECT_EQ(result.status().retry_after_us().has_value(), code == StatusCode::resource_exhausted);
    if (code == StatusCode::resource_exhausted)
      expect_shown(result.status(), "raise " + std::string(setting), ErrorReason::uploads_full);
  };
  expect(upload(1, absent(9), 0, 9), StatusCode::invalid_argument, "--read-set-keys-max");
  expect(upload(1, absent(8), 0, 8), StatusCode::invalid_argument, "--session-uploads-bytes-max");
  expect_no_uploads();
  EXPECT_EQ(*upload(1, absent(7), 0, 7), 7u);
  expect(upload(2, absent(1), 0, 1), StatusCode::resource_exhausted, "--session-uploads-bytes-max");
  expect(upload(1, absent(8), 7, 8), StatusCode::invalid_argument, "--session-uploads-bytes-max");
  const SessionId first = std::exchange(session, open_session());
  expect(upload(1, absent(3), 0, 3), StatusCode::resource_exhausted, "--uploads-bytes-max");
  EXPECT_EQ(*upload(1, absent(2), 0, 2), 2u);
  EXPECT_EQ(database->status().uploads, 2u);
  EXPECT_EQ(database->status().uploads_bytes, 2 * per_upload + 9 * per_key);
  session = first;
  EXPECT_EQ(commit(1, 7, add("sum", 1))->outcome(0), kCommitted);
  EXPECT_EQ(database->status().uploads_bytes, per_upload + 2 * per_key);
  EXPECT_EQ(*upload(2, absent(1), 0, 1), 1u);
}

TEST_F(DatabaseUploads, WhatTheQueueCouldNeverTakeIsRefused) {
  options.queue_bytes_max = 4096;
  reopen();
  const auto refused = upload(1, absent(100), 0, 100);
  ASSERT_EQ(refused.status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(refused.status().violation()->setting, "--queue-bytes-max");
}

TEST_F(DatabaseUploads, EndWithTheirSessionAndWithTheAcknowledgement) {
  upload_all(5, absent(3));
  upload_all(6, absent(3));
  upload_all(7, absent(3));
  EXPECT_EQ(*upload(8, absent(3), 0, 3, 5), 3u);
  EXPECT_EQ(database->status().uploads, 3u);
  run(add("sum", 1), session, 9, 7);
  EXPECT_EQ(database->status().uploads, 1u);
  bool closed = false;
  database->close_session({}, nullptr, session, [&](const Status& status) { closed = status.ok(); });
  settle();
  EXPECT_TRUE(closed);
  expect_no_uploads();
  EXPECT_EQ(upload(10, absent(3), 0, 3).status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(code(commit(8, 3, add("sum", 1))), StatusCode::failed_precondition);

  session = open_session(1'000'000);
  upload_all(1, absent(3));
  sim.scheduler.run_for(700'000);
  EXPECT_EQ(*upload(1, absent(4), 3, 4), 4u) << "renews the lease";
  sim.scheduler.run_for(700'000);
  EXPECT_EQ(database->status().uploads, 1u);
  sim.scheduler.run_for(3'000'000);
  expect_no_uploads();
}

// Who forgets an upload, or is refused for its commit until it gives up, holds its memory no longer than that.
TEST_F(DatabaseUploads, AnIdleOneIsDropped) {
  options.upload_idle_us_max = 2'000'000;
  options.session_requests_max = 1;
  reopen();
  upload_all(2, absent(3));
  sim.scheduler.run_for(1'500'000);
  EXPECT_EQ(*upload(2, absent(5), 3, 5), 5u) << "it goes on";
  upload_all(3, absent(3));
  sim.scheduler.run_for(1'500'000);
  EXPECT_EQ(*upload(2, absent(5), 4, 5), 5u) << "a chunk that was there counts, too";
  sim.scheduler.run_for(1'500'000);
  EXPECT_EQ(database->status().uploads, 1u) << "without number 3";
  EXPECT_EQ(code(commit(3, 3, add("sum", 1))), StatusCode::failed_precondition);
  EXPECT_EQ(commit(2, 5, add("sum", 1))->outcome(0), kCommitted) << "before its time is up";
  expect_no_uploads();

  upload_all(4, absent(3));
  sim.scheduler.run_for(1'000'000);
  EXPECT_EQ(code(commit(4, 3, add("sum", 1))), StatusCode::resource_exhausted) << "given back";
  EXPECT_EQ(database->status().uploads, 1u);
  sim.scheduler.run_for(2'500'000);
  expect_no_uploads();
  EXPECT_EQ(upload(4, absent(5), 3, 5).status().code(), StatusCode::failed_precondition) << "it starts over";
  upload_all(4, absent(3));
  EXPECT_EQ(commit(4, 3, add("sum", 1), 2)->outcome(0), kCommitted) << "the session has lived on";
  EXPECT_EQ(integer("sum"), 2);
}

// More guards than others may have: a batch of its own, and the others get on before and behind it.
TEST_F(DatabaseUploads, ALargeOneHasABatchOfItsOwn) {
  options.guards_max = 8;
  options.shadow_rate = 1;
  reopen();
  upload_all(1, absent(8));
  upload_all(2, absent(9));
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  sinks.push_back(submit(add("sum", 1)));
  sinks.push_back(submit(add("sum", 1), session, 1, 0, 8));
  sinks.push_back(submit(add("sum", 1), session, 2, 0, 9));
  sinks.push_back(submit(add("sum", 1)));
  sinks.push_back(submit(add("sum", 1)));
  auto parked = submit(withdraw("sum", 5, 60'000'000));
  settle();
  std::vector<BatchNumber> batches;
  for (const auto& sink : sinks) {
    ASSERT_EQ(sink->outcome(0), kCommitted);
    batches.push_back(sink->at(0).result.batch);
  }
  EXPECT_EQ(batches[0], batches[1]) << "8 guards are no more than others have";
  EXPECT_GT(batches[2], batches[1]);
  EXPECT_GT(batches[3], batches[2]);
  EXPECT_EQ(batches[3], batches[4]);
  EXPECT_EQ(parked->outcome(0), kCommitted);
  EXPECT_EQ(integer("sum"), 0);
  EXPECT_FALSE(fatal);
}

TEST_F(DatabaseUploads, ManyKeysBeforeAndBehindACrash) {
  constexpr int kKeys = 30'000;
  run(add("absent/29999", 1));
  const ReadSet set = absent(kKeys);
  for (int begin = 0; begin < kKeys; begin += 7'000) {
    const int end = std::min(begin + 7'000, kKeys);
    ASSERT_EQ(*upload(1, set, static_cast<std::size_t>(begin), static_cast<std::size_t>(end)),
              static_cast<std::uint64_t>(end));
  }
  auto sink = commit(1, kKeys, add("sum", 1));
  ASSERT_EQ(sink->outcome(0), kGuardFailed);
  EXPECT_EQ(sink->at(0).result.failed_index, 29'999u);
  reopen();
  upload_all(1, set);
  EXPECT_EQ(commit(1, kKeys, add("sum", 1))->at(0).result.failed_index, 29'999u) << "as stored";
  EXPECT_EQ(integer("sum"), 0);
}

// Uploaded guards have a limit of their own, and the other reads of their transaction have all of theirs.
TEST_F(DatabaseUploads, UploadedGuardsDoNotCountAsReads) {
  options.transaction_reads_max = 5;
  reopen();
  session = open_session();
  const auto reads = [](std::uint32_t limit) {
    return Build([limit](engine::ColumnsBuilder& b) {
      b.begin();
      b.range_op(engine::OpKind::range_get, "a", "b", limit);
      b.end();
    });
  };
  upload_all(1, absent(10));
  EXPECT_EQ(commit(1, 10, reads(5))->outcome(0), kCommitted);
  upload_all(2, absent(10));
  EXPECT_EQ(code(commit(2, 10, reads(6))), StatusCode::invalid_argument);
}

}  // namespace
}  // namespace kilokv::server
