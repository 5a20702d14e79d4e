// What a session, and all of them together, may keep; what they give back; how many calls may wait for one request.
#include <gtest/gtest.h>

#include "server/core/sessions/session_state.hpp"
#include "server/core/sessions/session_table.hpp"
#include "tests/support/shown_limit.hpp"
#include "tests/unit/core/sessions/session_fixtures.hpp"

namespace kilokv::server {
namespace {

using Kind = SessionAdmission::Kind;
using Indices = std::vector<std::uint32_t>;

TEST_F(SessionTableTest, LimitsNameTheirKnobs) {
  const Status short_lease = table_.open(session_id(8), kTestLimits.session_lease_us_min - 1, now_us_);
  EXPECT_EQ(short_lease.code(), StatusCode::invalid_argument);
  EXPECT_EQ(short_lease.violation()->setting, "--session-lease-min");
  const Status long_lease = table_.open(session_id(8), kTestLimits.session_lease_us_max + 1, now_us_);
  EXPECT_EQ(long_lease.violation()->setting, "--session-lease-max");
  for (unsigned char n = 100; table_.count() < kTestLimits.sessions_max; ++n) {
    EXPECT_TRUE(table_.open(session_id(n), kLeaseUs, now_us_).ok());
  }
  const Status full = table_.open(session_id(8), kLeaseUs, now_us_);
  expect_shown(full, "raise --sessions-max", ErrorReason::sessions_full);
}

TEST_F(SessionTableTest, RequestsAreLimitedUntilSomeAreAcknowledged) {
  for (std::uint64_t number = 1; number <= kTestLimits.session_requests_max; ++number) {
    EXPECT_EQ(begin(number, 1, sink()).kind, Kind::run);
    deliver(number, {0});
  }
  RequestHeader next = header(kTestLimits.session_requests_max + 1, 1, sink());
  const Status full = refusal(next);
  expect_shown(full, "raise --session-requests-max", ErrorReason::session_full);
  EXPECT_EQ(begin(1, 1, sink()).kind, Kind::answered);  // retries are welcome all the same
  next.identity.acknowledged_through = 1;
  EXPECT_EQ(table_.begin(next, now_us_).kind, Kind::run);
}

TEST_F(SessionTableTest, StoredBytesAreLimitedUntilSomeAreAcknowledged) {
  begin(1, 1, sink());
  RecordedResult large;
  large.result.outcome = engine::Outcome::committed;
  large.reads.push_back({0, "key", ValueType::bytes, 0, std::string(kTestLimits.session_bytes_max, 'x'), 1});
  const RecordedSlice slice({large});
  table_.deliver(kId, 1, slice, encoded(slice));
  RequestHeader next = header(2, 1, sink());
  expect_shown(refusal(next), "raise --session-bytes-max", ErrorReason::session_full);
  next.identity.acknowledged_through = 1;
  EXPECT_EQ(table_.begin(next, now_us_).kind, Kind::run);
}

// A session that is full of results which nobody can acknowledge before an earlier request, refused so far, is
// answered.
TEST_F(SessionTableTest, ARequestThatHoldsOthersUpGetsInWhereTheSessionIsFull) {
  RecordedResult large;
  large.result.outcome = engine::Outcome::committed;
  large.reads.push_back({0, "key", ValueType::bytes, 0, std::string(kTestLimits.session_bytes_max, 'x'), 1});
  const RecordedSlice slice({large});
  begin(4, 1, sink());
  table_.deliver(kId, 4, slice, encoded(slice));
  RequestHeader later = header(5, 1, sink());
  EXPECT_EQ(refusal(later).violation()->setting, "--session-bytes-max");
  RequestHeader other = header(3, 1, sink());  // earlier, too, but 2 comes first
  other.identity.acknowledged_through = 1;
  EXPECT_EQ(refusal(other).violation()->setting, "--session-bytes-max");
  RequestHeader earlier = header(2, 1, sink());
  earlier.identity.acknowledged_through = 1;
  earlier.stored_bytes_max = kTestLimits.session_bytes_max;
  const Status beyond_twice = refusal(earlier);
  expect_shown(beyond_twice, "raise --session-bytes-max", ErrorReason::session_full);
  EXPECT_EQ(beyond_twice.violation()->limit, std::to_string(2 * kTestLimits.session_bytes_max) +
                                                 " bytes of stored results, which is 2 times --session-bytes-max");
  earlier.stored_bytes_max /= 4;
  EXPECT_EQ(table_.begin(earlier, now_us_).kind, Kind::run);
  deliver(2, {0});
  other.identity.acknowledged_through = 2;
  EXPECT_EQ(table_.begin(other, now_us_).kind, Kind::run);
  deliver(3, {0});
  later.identity.acknowledged_through = 4;
  EXPECT_EQ(table_.begin(later, now_us_).kind, Kind::run);
}

class ManySessionsTest : public SessionTableTest {
 protected:
  // Stores about half of what all sessions may store.
  std::uint64_t store_half(const SessionId& id, std::uint64_t number = 1) {
    EXPECT_EQ(table_.begin({{id, number, 0, kDigest}, 1, sink()}, now_us_).kind, Kind::run);
    const std::uint64_t before = table_.stored_bytes();
    const RecordedSlice slice({large(kTestLimits.session_bytes_total_max / 2)});
    table_.deliver(id, number, slice, encoded(slice));
    return table_.stored_bytes() - before;
  }
  static RecordedResult large(std::size_t bytes) {
    RecordedResult large;
    large.result.outcome = engine::Outcome::committed;
    large.reads.push_back({0, "key", ValueType::bytes, 0, std::string(bytes, 'x'), 1});
    return large;
  }
  void SetUp() override {
    for (const SessionId& id : {kSecond, kThird}) EXPECT_TRUE(table_.open(id, kLeaseUs, now_us_).ok());
  }

  static constexpr std::size_t kMany = 1000000;
  const SessionId kSecond = session_id(8), kThird = session_id(9);
};

// What a session holds may be large, so it is freed a part at a time. It counts until then.
TEST_F(ManySessionsTest, WhatAnEndedSessionHoldsIsFreedAPartAtATime) {
  for (std::uint64_t number = 1; number <= 100; ++number) {
    ASSERT_EQ(begin(number, 1, sink()).kind, Kind::run);
    deliver(number, {0});
  }
  const auto in_flight = sink();
  ASSERT_EQ(begin(101, 1, in_flight).kind, Kind::run);
  const std::uint64_t stored = table_.stored_bytes();
  EXPECT_FALSE(table_.has_ended());
  EXPECT_TRUE(table_.close(kId).ok());
  EXPECT_EQ(table_.count(), 2u) << "it is closed at once";
  EXPECT_FALSE(table_.touch(kId, now_us_).ok());
  EXPECT_EQ(begin(5, 1, sink()).kind, Kind::refused);
  EXPECT_EQ(table_.stored_bytes(), stored);
  table_.free_ended(50);
  EXPECT_LT(table_.stored_bytes(), stored);
  EXPECT_GT(table_.stored_bytes(), stored / 2);
  int steps = 0;
  for (; table_.has_ended(); ++steps) table_.free_ended(50);
  EXPECT_GE(steps, 3);
  EXPECT_EQ(table_.stored_bytes(), 0u);
  deliver(101, {0});
  EXPECT_TRUE(in_flight->last()) << "what was in flight is answered, and not stored";
  EXPECT_EQ(table_.stored_bytes() + table_.reserved_bytes(), 0u);
  table_.free_ended(50);  // nothing is there
}

TEST_F(ManySessionsTest, LeasesThatEndTogetherEndAPartAtATime) {
  for (unsigned char n = 20; n < 60; ++n) ASSERT_TRUE(table_.open(session_id(n), kLeaseUs, now_us_).ok());
  now_us_ += 2 * kLeaseUs;
  std::size_t ended = 0;
  int calls = 0;
  for (std::size_t last = 10; last == 10; ++calls) {
    last = table_.expire(now_us_, 10).size();
    EXPECT_LE(last, 10u);
    ended += last;
    EXPECT_EQ(table_.count(), 43 - ended);
  }
  EXPECT_EQ(ended, 43u);
  EXPECT_EQ(calls, 5);
}

TEST_F(ManySessionsTest, LeasesThatEndTogetherInOneShardEndAPartAtATime) {
  for (unsigned char n = 0; n < 30; ++n) {
    SessionId id = session_id(7);  // its last byte decides the shard
    id.bytes[0] = static_cast<unsigned char>(100 + n);
    ASSERT_TRUE(table_.open(id, kLeaseUs, now_us_).ok());
  }
  now_us_ += 2 * kLeaseUs;
  std::size_t ended = 0;
  for (int call = 0; call < 4; ++call) {
    const std::size_t last = table_.expire(now_us_, 10).size();
    EXPECT_EQ(last, call < 3 ? 10u : 3u);
    ended += last;
  }
  EXPECT_EQ(ended, 33u);
}

TEST_F(ManySessionsTest, StoredBytesOfAllAreLimitedUntilSomeAreGivenBack) {
  EXPECT_GE(store_half(kId), kTestLimits.session_bytes_total_max / 2);
  store_half(kSecond);
  const RequestHeader next{{kThird, 1, 0, kDigest}, 1, sink()};
  const Status full = refusal(next);
  ASSERT_EQ(full.code(), StatusCode::resource_exhausted);
  EXPECT_EQ(full.violation()->field, "sessions");
  const bool to_the_byte = table_.stored_bytes() == kTestLimits.session_bytes_total_max;
  EXPECT_EQ(full.violation()->limit, std::string(to_the_byte ? "less than " : "") + "1500000 bytes of stored results");
  EXPECT_EQ(full.violation()->actual,
            std::to_string(table_.stored_bytes()) + " bytes of stored results with this request");
  expect_shown(full, "raise --session-bytes-total-max", ErrorReason::session_full);
  EXPECT_EQ(begin(1, 1, sink()).kind, Kind::answered);  // a retry is welcome all the same

  RequestHeader acknowledging = header(2, 1, sink());
  acknowledging.identity.acknowledged_through = 1;
  EXPECT_EQ(table_.begin(acknowledging, now_us_).kind, Kind::run);
  EXPECT_EQ(table_.begin(next, now_us_).kind, Kind::run);
}

TEST_F(ManySessionsTest, AcknowledgementCloseAndTheEndOfALeaseGiveEveryByteBack) {
  store_half(kId);
  RequestHeader acknowledging = header(2, 1, sink());
  acknowledging.identity.acknowledged_through = 1;
  EXPECT_EQ(table_.begin(acknowledging, now_us_).kind, Kind::run);
  EXPECT_EQ(table_.stored_bytes(), 0u);
  store_half(kSecond);
  EXPECT_TRUE(table_.close(kSecond).ok());
  table_.free_ended(kMany);
  EXPECT_EQ(table_.stored_bytes(), 0u);
  store_half(kThird);
  now_us_ += 2 * kLeaseUs;
  EXPECT_EQ(table_.expire(now_us_).size(), 1u);
  table_.free_ended(kMany);
  EXPECT_EQ(table_.stored_bytes(), 0u);
}

TEST_F(ManySessionsTest, WhatIsAcknowledgedInFlightCountsUntilItIsForgotten) {
  begin(1, 2, sink());
  deliver(1, {0});
  const std::uint64_t stored = table_.stored_bytes();
  EXPECT_GT(stored, 0u);
  RequestHeader next = header(2, 1, sink());
  next.identity.acknowledged_through = 1;
  EXPECT_EQ(table_.begin(next, now_us_).kind, Kind::run);
  EXPECT_EQ(table_.stored_bytes(), stored);
  deliver(1, {1});
  EXPECT_EQ(table_.stored_bytes(), 0u);
}

TEST_F(ManySessionsTest, WhatRecoveryBringsBackIsCountedAndNeverRefused) {
  store_half(kId);
  store_half(kId, 2);
  SessionTable restored({kTestLimits.sessions_max, kTestLimits.session_lease_us_min, kTestLimits.session_lease_us_max,
                         kTestLimits.session_requests_max, kTestLimits.session_bytes_max, 1000});
  for (const StoredSession& session : snapshot_of(table_)) {
    EXPECT_TRUE(restored.restore(session, now_us_).ok());
  }
  EXPECT_EQ(restored.stored_bytes(), table_.stored_bytes());
  EXPECT_EQ(restored.begin(header(1, 1, sink()), now_us_).kind, Kind::answered);
  EXPECT_EQ(restored.begin(header(3, 1, sink()), now_us_).status.violation()->setting, "--session-bytes-max");
  const RequestHeader other{{kSecond, 1, 0, kDigest}, 1, sink()};
  EXPECT_EQ(restored.begin(other, now_us_).status.violation()->setting, "--session-bytes-total-max");
}

TEST_F(ManySessionsTest, WhatMayBeStoredIsReservedUntilItIsKnown) {
  const auto wanting = [&](const SessionId& id, std::uint64_t number, std::uint64_t bytes) {
    return RequestHeader{{id, number, 0, kDigest}, 2, sink(), bytes};
  };
  EXPECT_EQ(refusal(wanting(kId, 1, 1'000'001)).code(), StatusCode::invalid_argument);
  EXPECT_EQ(table_.begin(wanting(kId, 1, 600'000), now_us_).reserved_bytes, 600'000u);
  const Status full = refusal(wanting(kId, 2, 400'001));
  expect_shown(full, "raise --session-bytes-max", ErrorReason::session_full);
  EXPECT_EQ(table_.begin(wanting(kSecond, 1, 900'000), now_us_).kind, Kind::run);
  expect_shown(refusal(wanting(kThird, 1, 1)), "raise --session-bytes-total-max", ErrorReason::session_full);
  expect_shown(refusal(wanting(kThird, 1, 0)), "raise --session-bytes-total-max",
               ErrorReason::session_full);  // all of it is taken
  EXPECT_EQ(table_.reserved_bytes(), 1'500'000u);

  deliver(1, {0});
  EXPECT_EQ(table_.reserved_bytes() + table_.stored_bytes(), 1'500'000u);
  table_.abandon(kId, 1,
                 Status(StatusCode::unavailable, ErrorReason::draining, "draining"));  // rests, and keeps its room
  EXPECT_EQ(table_.reserved_bytes() + table_.stored_bytes(), 1'500'000u);
  EXPECT_EQ(table_.begin(wanting(kId, 1, 600'000), now_us_).reserved_bytes, 600'000 - table_.stored_bytes());
  deliver(1, {1});
  EXPECT_EQ(table_.reserved_bytes(), 900'000u);
  table_.abandon(kSecond, 1, Status(StatusCode::unavailable, ErrorReason::draining, "draining"));
  EXPECT_EQ(table_.reserved_bytes(), 0u);
  EXPECT_EQ(table_.begin(wanting(kThird, 1, 900'000), now_us_).kind, Kind::run);
  EXPECT_TRUE(table_.close(kThird).ok());
  table_.free_ended(kMany);
  EXPECT_EQ(table_.reserved_bytes(), kRequestBytes + kSinksBytes) << "it is in flight, and calls may wait for it";
  const RecordedSlice slice = slice_of({0, 1});
  table_.deliver(kThird, 1, slice, encoded(slice));
  EXPECT_EQ(table_.reserved_bytes(), 0u);
}

TEST_F(ManySessionsTest, AWalkCopiesOneSessionAtATime) {
  int shown = 0;
  EXPECT_TRUE(table_
                  .walk([&](const StoredSession& session) {
                    ++shown;
                    for (const SessionId& id : {kId, kSecond, kThird}) {
                      EXPECT_TRUE(id == session.session || table_.close(id).ok());
                    }
                    return Status();
                  })
                  .ok());
  EXPECT_EQ(shown, 1);
}

// So a checkpoint never holds a second copy of all that a session has stored.
TEST_F(SessionTableTest, AWalkShowsALargeSessionInPieces) {
  SessionLimits limits = kTestLimits;
  limits.session_bytes_max = limits.session_bytes_total_max = 100'000'000;
  SessionTable table(limits), restored(limits);
  ASSERT_TRUE(table.open(kId, kLeaseUs, now_us_).ok());
  RecordedResult large;
  large.result.outcome = engine::Outcome::committed;
  large.result.batch = large.result.admitted_batch = 1;
  large.reads.push_back({0, "k", ValueType::bytes, 0, std::string(300'000, 'v'), 1});
  for (std::uint64_t number = 1; number <= 4; ++number) {
    ASSERT_EQ(table.begin({{kId, number, 0, kDigest}, 4, sink()}, now_us_).kind, Kind::run);
    for (std::uint32_t index = 0; index < 4; ++index) {
      large.result.index = index;
      const RecordedSlice slice({large});
      table.deliver(kId, number, slice, encoded(slice));
    }
  }
  const std::vector<StoredSession> pieces = snapshot_of(table);
  EXPECT_GE(pieces.size(), 4u);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::size_t bytes = 0;
    for (const StoredSession::Request& request : pieces[i].requests) {
      for (const std::string& results : request.results) bytes += results.size();
    }
    EXPECT_LT(bytes, 1'500'000u);
    EXPECT_EQ(pieces[i].piece, i);
    EXPECT_TRUE(restored.restore(pieces[i], now_us_).ok());
  }
  EXPECT_EQ(restored.stored_bytes(), table.stored_bytes());
  const auto again = sink();
  EXPECT_EQ(restored.begin({{kId, 3, 0, kDigest}, 4, again}, now_us_).kind, Kind::answered);
  EXPECT_EQ(again->indices(), (Indices{0, 1, 2, 3}));
  SessionTable without(limits);
  EXPECT_EQ(without.restore(pieces[1], now_us_).code(), StatusCode::data_loss);
  limits.session_bytes_total_max = table.stored_bytes() / 3;
  SessionTable small(limits);
  for (const StoredSession& piece : pieces) EXPECT_TRUE(small.restore(piece, now_us_).ok());
  EXPECT_EQ(small.check_restored(0).violation()->setting, "--session-bytes-total-max");
  EXPECT_TRUE(small.check_restored(small.stored_bytes()).ok()) << "the log may hold what was acknowledged";
  EXPECT_TRUE(table.check_restored(0).ok());
}

TEST_F(ManySessionsTest, AWalkEndsWithTheFirstError) {
  int shown = 0;
  const Status status = table_.walk([&](const StoredSession&) {
    ++shown;
    return Status(StatusCode::internal, "full");
  });
  EXPECT_EQ(status.code(), StatusCode::internal);
  EXPECT_EQ(shown, 1);
}

TEST_F(SessionTableTest, SinksThatNobodyListensToAreDroppedByTheNextRetry) {
  std::vector<std::shared_ptr<CheckingSink>> sinks{sink()};
  begin(1, 2, sinks.front());
  deliver(1, {0});
  for (int i = 0; i < 1000; ++i) {
    sinks.back()->go();
    sinks.push_back(sink());
    EXPECT_EQ(begin(1, 2, sinks.back()).kind, Kind::joined);
    EXPECT_EQ(sinks[sinks.size() - 2]->failure().code(), StatusCode::cancelled);
  }
  deliver(1, {1});
  EXPECT_TRUE(sinks.back()->last());
  EXPECT_EQ(sinks.back()->indices(), (Indices{0, 1}));
}

TEST_F(SessionTableTest, CallsThatWaitForOneRequestAreLimited) {
  std::vector<std::shared_ptr<CheckingSink>> sinks{sink()};
  begin(1, 1, sinks.front());
  while (sinks.size() < kSinksMax) {
    sinks.push_back(sink());
    EXPECT_EQ(begin(1, 1, sinks.back()).kind, Kind::joined);
  }
  const auto refused = sink();
  const Status full = refusal(header(1, 1, refused));
  ASSERT_EQ(full.code(), StatusCode::resource_exhausted);
  EXPECT_EQ(full.reason(), ErrorReason::calls_full);
  EXPECT_EQ(full.violation()->field, "number");
  EXPECT_TRUE(full.retry_after_us());
  sinks[3]->go();
  EXPECT_EQ(begin(1, 1, refused).kind, Kind::joined);
  deliver(1, {0});
  EXPECT_TRUE(refused->last());
  EXPECT_TRUE(sinks.front()->last());
}

}  // namespace
}  // namespace kilokv::server
