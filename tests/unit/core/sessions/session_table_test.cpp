#include "server/core/sessions/session_table.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>
#include <set>

#include "server/core/sessions/session_state.hpp"
#include "tests/unit/core/sessions/session_fixtures.hpp"

namespace kilokv::server {
namespace {

using Kind = SessionAdmission::Kind;
using Indices = std::vector<std::uint32_t>;

TEST_F(SessionTableTest, RunsANewRequestAndAnswersItsRetryFromStore) {
  const auto first = sink(), retry = sink();
  const SessionAdmission admission = begin(1, 3, first);
  EXPECT_EQ(admission.kind, Kind::run);
  EXPECT_TRUE(admission.all_remaining);
  deliver(1, {0, 2}, 5);
  EXPECT_FALSE(first->ended());
  deliver(1, {1}, 6);
  EXPECT_TRUE(first->last());
  EXPECT_EQ(first->indices(), (Indices{0, 2, 1}));

  EXPECT_EQ(begin(1, 3, retry).kind, Kind::answered);
  EXPECT_TRUE(retry->last());
  EXPECT_EQ(retry->indices(), (Indices{0, 2, 1}));
}

TEST_F(SessionTableTest, ARetryInFlightGetsTheStoredPartAtOnceAndTheRestLive) {
  const auto first = sink(), retry = sink();
  begin(1, 2, first);
  deliver(1, {1});
  EXPECT_EQ(begin(1, 2, retry).kind, Kind::joined);
  EXPECT_EQ(retry->indices(), Indices{1});
  EXPECT_FALSE(retry->ended());
  deliver(1, {0});
  EXPECT_TRUE(first->last());
  EXPECT_TRUE(retry->last());
  EXPECT_EQ(retry->indices(), (Indices{1, 0}));
}

TEST_F(SessionTableTest, ListsTheOpenSessionsWithWhatTheyHold) {
  ASSERT_EQ(table_.largest(10, now_us_).size(), 1u);
  EXPECT_EQ(table_.largest(10, now_us_).front().requests, 0u);
  RequestHeader first = header(1, 2, sink());
  first.stored_bytes_max = 1000;
  ASSERT_EQ(table_.begin(first, now_us_).kind, Kind::run);
  begin(2, 1, sink());
  deliver(2, {0}, 5);
  const SessionInfo info = table_.largest(10, now_us_).front();
  EXPECT_EQ(info.id, kId);
  EXPECT_EQ(info.requests, 2u);
  EXPECT_EQ(info.in_flight, 1u);
  EXPECT_GT(info.stored_bytes, 0u);
  EXPECT_GT(info.reserved_bytes, 0u);
  EXPECT_EQ(info.acknowledged_through, 0u);
  EXPECT_EQ(info.left_us, info.lease_us);
  EXPECT_EQ(table_.largest(10, now_us_ + info.lease_us + 1).front().left_us, -1);
  ASSERT_TRUE(table_.close(kId).ok());
  EXPECT_TRUE(table_.largest(10, now_us_).empty())
      << "what is closed is not shown, though a request of it is in flight";
}

TEST_F(SessionTableTest, ListsThoseThatHoldTheMost) {
  constexpr unsigned char kSessions = 90;  // in several shards
  for (unsigned char n = 10; n < 10 + kSessions; ++n) {
    SessionId id = session_id(n);
    ASSERT_TRUE(table_.open(id, kLeaseUs, now_us_).ok());
    RequestHeader one = header(1, 1, sink());
    one.identity.session = id;
    one.stored_bytes_max = 1000U + n;
    ASSERT_EQ(table_.begin(one, now_us_).kind, Kind::run);
  }
  std::set<SessionId> found;
  for (const SessionInfo& info : table_.largest(3, now_us_)) found.insert(info.id);
  EXPECT_EQ(found, (std::set<SessionId>{session_id(97), session_id(98), session_id(99)}));
}

TEST_F(SessionTableTest, OtherContentUnderTheSameNumberIsRefused) {
  begin(1, 2, sink());
  RequestHeader other = header(1, 2, sink());
  other.identity.digest = {9, 9};
  EXPECT_EQ(refusal(other).code(), StatusCode::invalid_argument);
  EXPECT_EQ(refusal(header(1, 3, sink())).code(), StatusCode::invalid_argument);
}

TEST_F(SessionTableTest, UnknownSessionsAndAcknowledgedNumbersAreRefused) {
  RequestHeader request = header(1, 1, sink());
  request.identity.session = session_id(8);
  EXPECT_EQ(refusal(request).code(), StatusCode::failed_precondition);
  EXPECT_EQ(refusal(header(0, 1, sink())).code(), StatusCode::failed_precondition);

  request = header(5, 1, sink());
  request.identity.acknowledged_through = 5;
  EXPECT_EQ(refusal(request).code(), StatusCode::failed_precondition);
  EXPECT_EQ(begin(1, 1, sink()).kind, Kind::run);  // the refused acknowledgement did not count

  request.identity.acknowledged_through = 4;
  EXPECT_EQ(table_.begin(request, now_us_).kind, Kind::run);
  EXPECT_EQ(refusal(header(4, 1, sink())).code(), StatusCode::failed_precondition);
}

TEST_F(SessionTableTest, AnAbandonedRequestRunsItsRestLater) {
  const auto first = sink(), second = sink();
  begin(1, 4, first);
  deliver(1, {2});
  table_.abandon(kId, 1, Status(StatusCode::unavailable, ErrorReason::draining, "draining"));
  EXPECT_EQ(first->failure().code(), StatusCode::unavailable);
  EXPECT_EQ(first->indices(), Indices{2});

  const SessionAdmission admission = begin(1, 4, second);
  EXPECT_EQ(admission.kind, Kind::run);
  EXPECT_FALSE(admission.all_remaining);
  EXPECT_EQ(admission.remaining, (Indices{0, 1, 3}));
  EXPECT_EQ(second->indices(), Indices{2});
  deliver(1, {0, 1, 3});
  EXPECT_TRUE(second->last());
}

TEST_F(SessionTableTest, ARequestAbandonedWithNothingDoneLeavesNoTrace) {
  begin(1, 2, sink());
  table_.abandon(kId, 1, Status(StatusCode::resource_exhausted, ErrorReason::queue_full, "queue"));
  RequestHeader other = header(1, 3, sink());
  other.identity.digest = {9, 9};
  EXPECT_TRUE(table_.begin(other, now_us_).all_remaining);
}

TEST_F(SessionTableTest, AnAcknowledgedRequestInFlightStillAnswersAndIsNotStored) {
  const auto first = sink();
  begin(1, 2, first);
  deliver(1, {0});
  RequestHeader next = header(2, 1, sink());
  next.identity.acknowledged_through = 1;
  EXPECT_EQ(table_.begin(next, now_us_).kind, Kind::run);
  table_.deliver(kId, 1, slice_of({1}), std::string(kTestLimits.session_bytes_max, 'x'));
  EXPECT_TRUE(first->last());
  EXPECT_TRUE(snapshot_of(table_).front().requests.empty());
  EXPECT_EQ(begin(3, 1, sink()).kind, Kind::run);  // its bytes do not count
  EXPECT_EQ(refusal(header(1, 2, sink())).code(), StatusCode::failed_precondition);
}

TEST_F(SessionTableTest, AClosedSessionIsUnknownAtOnceButAnswersWhatIsInFlight) {
  const auto first = sink();
  begin(1, 2, first);
  EXPECT_TRUE(table_.close(kId).ok());
  EXPECT_EQ(table_.count(), 0u);
  EXPECT_FALSE(table_.contains(kId));
  EXPECT_TRUE(snapshot_of(table_).empty());
  EXPECT_EQ(table_.close(kId).code(), StatusCode::failed_precondition);
  EXPECT_EQ(table_.touch(kId, now_us_).code(), StatusCode::failed_precondition);
  EXPECT_EQ(refusal(header(1, 2, sink())).code(), StatusCode::failed_precondition);
  deliver(1, {0});
  deliver(1, {1});
  EXPECT_TRUE(first->last());
  deliver(1, {0});  // nobody is left to hear it
}

TEST_F(SessionTableTest, LeasesEndUnlessRenewed) {
  EXPECT_TRUE(table_.open(session_id(8), kLeaseUs, now_us_).ok());
  now_us_ += kLeaseUs - 1;
  EXPECT_TRUE(table_.expire(now_us_).empty());
  EXPECT_TRUE(table_.touch(kId, now_us_).ok());
  now_us_ += 1'000'000;
  EXPECT_EQ(table_.expire(now_us_), std::vector<SessionId>{session_id(8)});
  EXPECT_TRUE(table_.contains(kId));
  EXPECT_EQ(table_.count(), 1u);
  EXPECT_EQ(begin(1, 1, sink()).kind, Kind::run);  // renews as well
  deliver(1, {0});
  now_us_ += kLeaseUs - 1;
  EXPECT_TRUE(table_.expire(now_us_).empty());
  now_us_ += 1'000'000;
  EXPECT_EQ(table_.expire(now_us_), std::vector<SessionId>{kId});
}

TEST_F(SessionTableTest, ARequestInFlightKeepsItsSession) {
  const auto waiting = sink();
  begin(1, 1, waiting);
  for (int i = 0; i < 10; ++i) {
    now_us_ += kLeaseUs;
    EXPECT_TRUE(table_.expire(now_us_).empty());
  }
  deliver(1, {0});
  EXPECT_TRUE(waiting->last());
  EXPECT_EQ(begin(1, 1, sink()).kind, Kind::answered);  // there is time to ask again
  now_us_ += 2 * kLeaseUs;
  EXPECT_EQ(table_.expire(now_us_).size(), 1u);
}

TEST_F(SessionTableTest, ASinkMaySubmitItsNextRequestFromInsideACall) {
  const auto first = sink(), second = sink();
  first->then([&] { EXPECT_EQ(begin(2, 1, second).kind, Kind::run); });
  begin(1, 1, first);
  deliver(1, {0});
  deliver(2, {0});
  EXPECT_TRUE(second->last());
}

TEST_F(SessionTableTest, ACheckpointBringsEverythingBack) {
  begin(1, 3, sink());
  deliver(1, {0}, 4);
  deliver(1, {2}, 6);
  begin(2, 1, sink());
  deliver(2, {0}, 6);
  begin(3, 1, sink());
  SessionTable restored(kTestLimits);
  for (const StoredSession& session : snapshot_of(table_)) {
    ASSERT_TRUE(restored.restore(session, now_us_).ok());
  }
  const auto retry = sink();
  const SessionAdmission half = restored.begin(header(1, 3, retry), now_us_);
  EXPECT_EQ(half.kind, Kind::run);
  EXPECT_EQ(half.remaining, Indices{1});
  EXPECT_EQ(retry->indices(), (Indices{0, 2}));
  EXPECT_EQ(restored.begin(header(2, 1, sink()), now_us_).kind, Kind::answered);
  EXPECT_TRUE(restored.begin(header(3, 1, sink()), now_us_).all_remaining);
}

SessionEntry results_entry(const SessionId& id, std::uint64_t number, std::uint32_t transactions,
                           std::string_view bytes) {
  SessionEntry entry;
  entry.kind = SessionEntry::Kind::results;
  entry.identity = {id, number, 0, kDigest};
  entry.transactions = transactions;
  entry.results = bytes;
  return entry;
}

TEST_F(SessionTableTest, EntriesOfTheLogMayRepeatWhatTheCheckpointHolds) {
  const std::string first = encoded(slice_of({0, 1}, 4)), second = encoded(slice_of({2}, 4));
  for (int replay = 0; replay < 2; ++replay) {
    EXPECT_TRUE(table_.restore({SessionEntry::Kind::opened, {kId, 0, 0, {}}, kLeaseUs, 0, {}}, now_us_).ok());
    EXPECT_TRUE(table_.restore(results_entry(kId, 1, 4, first), now_us_).ok());
    EXPECT_TRUE(table_.restore(results_entry(kId, 1, 4, second), now_us_).ok());
  }
  EXPECT_EQ(snapshot_of(table_).front().requests.front().results, (std::vector{first, second}));
  EXPECT_EQ(begin(1, 4, sink()).remaining, Indices{3});
}

TEST_F(SessionTableTest, EntriesOfTheLogAcknowledgeAndClose) {
  const std::string bytes = encoded(slice_of({0}));
  EXPECT_TRUE(table_.restore(results_entry(kId, 1, 1, bytes), now_us_).ok());
  SessionEntry acknowledging = results_entry(kId, 2, 1, bytes);
  acknowledging.identity.acknowledged_through = 1;
  EXPECT_TRUE(table_.restore(acknowledging, now_us_).ok());
  RecordedResult large;
  large.result.outcome = engine::Outcome::committed;
  large.reads.push_back({0, "key", ValueType::bytes, 0, std::string(kTestLimits.session_bytes_max, 'x'), 1});
  const std::string large_bytes = encoded(RecordedSlice({large}));
  EXPECT_TRUE(table_.restore(results_entry(kId, 1, 1, large_bytes), now_us_).ok());
  EXPECT_EQ(refusal(header(1, 1, sink())).code(), StatusCode::failed_precondition);
  EXPECT_EQ(begin(9, 1, sink()).kind, Kind::run);  // what was acknowledged does not count
  table_.abandon(kId, 9, Status(StatusCode::unavailable, ErrorReason::draining, "draining"));
  EXPECT_EQ(snapshot_of(table_).front().requests.size(), 1u);
  for (int replay = 0; replay < 2; ++replay) {
    EXPECT_TRUE(table_.restore({SessionEntry::Kind::closed, {kId, 0, 0, {}}, 0, 0, {}}, now_us_).ok());
    EXPECT_TRUE(table_.restore(results_entry(kId, 3, 1, bytes), now_us_).ok());
  }
  EXPECT_EQ(table_.count(), 0u);
}

TEST_F(SessionTableTest, ResultsThatContradictAreDataLoss) {
  EXPECT_TRUE(table_.restore(results_entry(kId, 1, 3, encoded(slice_of({0, 1}))), now_us_).ok());
  EXPECT_EQ(table_.restore(results_entry(kId, 1, 3, encoded(slice_of({1, 2}))), now_us_).code(), StatusCode::data_loss);
  EXPECT_EQ(table_.restore(results_entry(kId, 2, 3, encoded(slice_of({3}))), now_us_).code(), StatusCode::data_loss);
  EXPECT_EQ(table_.restore(results_entry(kId, 3, 3, "garbage"), now_us_).code(), StatusCode::data_loss);
}

TEST_F(SessionTableTest, EntriesOfARequestThatIsCompleteAreCheckedAsWell) {
  EXPECT_TRUE(table_.restore(results_entry(kId, 1, 3, encoded(slice_of({0, 2}))), now_us_).ok());
  EXPECT_TRUE(table_.restore(results_entry(kId, 1, 3, encoded(slice_of({1}))), now_us_).ok());
  EXPECT_TRUE(table_.restore(results_entry(kId, 1, 3, encoded(slice_of({0, 2}))), now_us_).ok());
  EXPECT_EQ(table_.restore(results_entry(kId, 1, 3, encoded(slice_of({2, 3}))), now_us_).code(), StatusCode::data_loss);
  EXPECT_EQ(snapshot_of(table_).front().requests.front().results.size(), 2u);
  const auto retry = sink();
  EXPECT_EQ(begin(1, 3, retry).kind, Kind::answered);
  EXPECT_EQ(retry->indices(), (Indices{0, 2, 1}));
}

TEST_F(SessionTableTest, WhatIsLeftOfALongRequestRunsAfterARestart) {
  constexpr std::uint32_t kTransactions = 200;
  Indices stored, left;
  for (std::uint32_t i = 0; i < kTransactions; ++i) (i % 7 < 3 || i / 64 == 1 ? stored : left).push_back(i);
  for (std::size_t from = 0; from < stored.size(); from += 10) {
    const Indices part(stored.begin() + from, stored.begin() + std::min(from + 10, stored.size()));
    EXPECT_TRUE(table_.restore(results_entry(kId, 1, kTransactions, encoded(slice_of(part))), now_us_).ok());
  }
  EXPECT_EQ(begin(1, kTransactions, sink()).remaining, left);
}

std::uint64_t peak_memory_kib() {
  struct rusage usage = {};
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  return static_cast<std::uint64_t>(usage.ru_maxrss);
}

// A bit for each transaction that a damaged count claims would take 512 MiB for each of these requests.
TEST_F(SessionTableTest, ACountOnTheDiskTakesNoMemory) {
  constexpr std::uint32_t kClaimed = 0xFFFFFFFF, kFar = 4'000'000'000;
  const std::string bytes = encoded(slice_of({0, 5, kFar}));
  const std::uint64_t before = peak_memory_kib();
  StoredSession session;
  session.session = session_id(8);
  session.lease_us = kLeaseUs;
  session.requests = {{1, kDigest, kClaimed, {bytes}}, {2, kDigest, kClaimed, {bytes}}};
  EXPECT_TRUE(table_.restore(session, now_us_).ok());
  const auto restore = [&](std::uint64_t number, std::uint32_t transactions, const Indices& indices) {
    return table_.restore(results_entry(kId, number, transactions, encoded(slice_of(indices))), now_us_).code();
  };
  for (const std::uint64_t number : {1, 2, 3}) {
    EXPECT_EQ(restore(number, kClaimed, {0, 5, kFar}), StatusCode::ok);
    EXPECT_EQ(restore(number, kClaimed, {5, kFar}), StatusCode::ok) << "all of it is there";
    EXPECT_EQ(restore(number, kClaimed, {6, kFar}), StatusCode::data_loss);
  }
  EXPECT_EQ(table_.restore(results_entry(kId, 4, kClaimed, "garbage"), now_us_).code(), StatusCode::data_loss);
  EXPECT_EQ(restore(5, kFar, {kFar - 1}), StatusCode::ok);
  EXPECT_EQ(restore(6, kFar, {kFar}), StatusCode::data_loss);
  EXPECT_EQ(refusal(header(1, 3, sink())).reason(), ErrorReason::content_differs);
  EXPECT_LT(peak_memory_kib() - before, 16u << 10);
}

TEST(IndexSet, HoldsWhatWasInserted) {
  std::mt19937 random(20261125);
  IndexSet set;
  std::set<std::uint32_t> expected;
  for (int i = 0; i < 20000; ++i) {
    const auto index = static_cast<std::uint32_t>((i % 2 == 0 ? 0 : 0xFFFFF000) + random() % 4096);
    ASSERT_EQ(set.contains(index), expected.contains(index)) << index;
    ASSERT_EQ(set.insert(index), expected.insert(index).second) << index;
  }
}

}  // namespace
}  // namespace kilokv::server
