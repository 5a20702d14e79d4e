// New holders of sessions in the table alone: the fence against admission in other threads, the list, and what a
// checkpoint and the log bring back.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/core/sessions/session_table.hpp"
#include "tests/unit/core/sessions/session_fixtures.hpp"

namespace kilokv::server {
namespace {

using Kind = SessionAdmission::Kind;

constexpr SessionLimits kWideLimits{.sessions_max = 100,
                                    .session_lease_us_min = 1,
                                    .session_lease_us_max = kLeaseUs,
                                    .session_requests_max = 100'000,
                                    .session_bytes_max = 1'000'000'000,
                                    .session_bytes_total_max = 1'000'000'000};

constexpr SessionLimits kWideLimitsWithUploads{.sessions_max = 100,
                                               .session_lease_us_min = 1,
                                               .session_lease_us_max = kLeaseUs,
                                               .session_requests_max = 100,
                                               .session_bytes_max = 1'000'000,
                                               .session_bytes_total_max = 1'000'000,
                                               .uploads = {.read_set_keys_max = 100,
                                                           .uploads_bytes_max = 1'000'000,
                                                           .session_uploads_bytes_max = 1'000'000,
                                                           .queue_bytes_max = 1'000'000,
                                                           .upload_idle_us_max = kLeaseUs}};

class SessionAttachTest : public SessionTableTest {
 protected:
  SessionEntry attach(std::uint64_t attempt = 0) {
    const Result<SessionEntry> entry = table_.attach(kId, nullptr, attempt, now_us_);
    EXPECT_TRUE(entry.ok()) << entry.status().message();
    return entry.ok() ? *entry : SessionEntry();
  }
  // As a later batch does.
  SessionList list(std::uint64_t holder, BatchNumber boundary) {
    Result<SessionList> list = table_.list({kId, holder}, nullptr, 0);
    EXPECT_TRUE(list.ok()) << list.status().message();
    if (!list.ok()) return {};
    EXPECT_TRUE(table_.add_results(kId, boundary, {}, 1'000'000, &*list).ok());
    return std::move(*list);
  }
  static StoredSession stored_in(const SessionTable& table) { return snapshot_of(table).at(0); }
};

TEST_F(SessionAttachTest, TheEntryNamesTheHolderAndTheAcknowledgement) {
  begin(3, 1, sink());
  RequestHeader next = header(7, 1, sink());
  next.identity.acknowledged_through = 2;
  EXPECT_EQ(table_.begin(next, now_us_).kind, Kind::run);
  const SessionEntry entry = attach();
  EXPECT_EQ(entry.kind, SessionEntry::Kind::attached);
  EXPECT_EQ(entry.identity.session, kId);
  EXPECT_EQ(entry.identity.holder, 1u);
  EXPECT_EQ(entry.identity.acknowledged_through, 2u);
}

TEST_F(SessionAttachTest, ACheckpointHasTheHolderThatIsDurable) {
  attach();
  EXPECT_EQ(stored_in(table_).holder, 0u) << "its entry may never reach the log";
  table_.attached(kId, 1);
  attach();
  EXPECT_EQ(stored_in(table_).holder, 1u);
  table_.attached(kId, 2);
  EXPECT_EQ(stored_in(table_).holder, 2u);
  const StoredSession stored = stored_in(table_);
  SessionTable again(kTestLimits);
  ASSERT_TRUE(again.restore(stored, now_us_).ok());
  EXPECT_TRUE(again.check_holder({kId, 2}, nullptr).ok());
  EXPECT_EQ(again.check_holder({kId, 1}, nullptr).reason(), ErrorReason::session_fenced);
  EXPECT_EQ(stored_in(again).holder, 2u);
}

// The log is replayed over a newer checkpoint.
TEST_F(SessionAttachTest, AnOlderEntryOfTheLogDoesNotTakeTheHolderBack) {
  const SessionEntry first = attach();
  attach();
  SessionTable again(kTestLimits);
  StoredSession stored;
  stored.session = kId;
  stored.lease_us = kLeaseUs;
  stored.holder = 2;
  stored.acknowledged_through = 5;
  ASSERT_TRUE(again.restore(stored, now_us_).ok());
  ASSERT_TRUE(again.restore(first, now_us_).ok());
  EXPECT_TRUE(again.check_holder({kId, 2}, nullptr).ok());
  EXPECT_EQ(stored_in(again).acknowledged_through, 5u);
  SessionEntry of_another = first;
  of_another.identity.session = session_id(9);
  EXPECT_TRUE(again.restore(of_another, now_us_).ok()) << "it has ended";
}

TEST_F(SessionAttachTest, TheListIsAsOfItsBoundary) {
  begin(1, 3, sink());
  begin(2, 1, sink());
  deliver(1, {1}, 5);
  attach();
  Result<SessionList> made = table_.list({kId, 1}, nullptr, 0);
  ASSERT_TRUE(made.ok());
  made->requests.at(0).parked = 1;
  deliver(1, {0, 2}, 6);  // the list is made, and the executor goes on
  deliver(2, {0}, 6);
  ASSERT_TRUE(table_.add_results(kId, 5, {}, 1'000'000, &*made).ok());
  const ListedRequest& first = made->requests.at(0);
  EXPECT_EQ(first.decided, 1u);
  EXPECT_EQ(first.parked, 1u);
  EXPECT_EQ(first.queued, 1u);
  EXPECT_EQ(made->requests.at(1).decided, 0u);
  EXPECT_EQ(made->requests.at(1).queued, 1u);
  const SessionList later = list(1, 6);
  EXPECT_EQ(later.requests.at(0).decided, 3u);
  EXPECT_EQ(later.requests.at(0).queued, 0u);
}

// It was refused for want of room after it was in the table, for example.
TEST_F(SessionAttachTest, ARequestThatEndsWithoutAResultIsNotInTheList) {
  begin(1, 2, sink());
  begin(2, 2, sink());
  deliver(2, {1}, 5);
  attach();
  Result<SessionList> made = table_.list({kId, 1}, nullptr, 0);
  ASSERT_TRUE(made.ok());
  const Status full(StatusCode::unavailable, ErrorReason::draining, "draining");
  table_.abandon(kId, 1, full);
  ASSERT_TRUE(table_.add_results(kId, 5, {}, 1'000'000, &*made).ok());
  ASSERT_EQ(made->requests.size(), 1u);
  EXPECT_EQ(made->requests.at(0).number, 2u);
  table_.abandon(kId, 2, full);
  const ListedRequest& rest = list(1, 5).requests.at(0);
  EXPECT_EQ(rest.decided, 1u);
  EXPECT_EQ(rest.queued, 0u) << "the rest does not run";
}

// All requests of a part may be gone until its results are added. The list goes on all the same.
TEST_F(SessionAttachTest, APartWhoseRequestsHaveAllEndedGoesOn) {
  SessionTable table(kWideLimits);
  ASSERT_TRUE(table.open(kId, kLeaseUs, now_us_).ok());
  for (std::uint64_t number = 1; number <= kListedRequestsMax + 1; ++number) {
    ASSERT_EQ(table.begin({{kId, 2 * number, 0, kDigest}, 1, sink()}, now_us_).kind, Kind::run);
  }
  ASSERT_TRUE(table.attach(kId, nullptr, 0, now_us_).ok());
  Result<SessionList> made = table.list({kId, 1}, nullptr, 0);
  ASSERT_TRUE(made.ok());
  const Status full(StatusCode::unavailable, ErrorReason::draining, "draining");
  for (std::uint64_t number = 1; number <= kListedRequestsMax; ++number) table.abandon(kId, 2 * number, full);
  ASSERT_TRUE(table.add_results(kId, 5, {}, 1'000'000, &*made).ok());
  EXPECT_TRUE(made->requests.empty());
  EXPECT_TRUE(made->more);
  EXPECT_EQ(made->next_number, 2 * (kListedRequestsMax + 1));
  EXPECT_EQ(table.list({kId, 1}, nullptr, made->next_number)->requests.size(), 1u);
}

TEST_F(SessionAttachTest, AListTellsTheBytesOfItsResults) {
  begin(1, 1, sink());
  begin(2, 1, sink());
  attach();
  EXPECT_EQ(table_.list({kId, 1}, nullptr, 0)->bytes, 0u);
  deliver(1, {0}, 5);
  EXPECT_EQ(table_.list({kId, 1}, nullptr, 0)->bytes, table_.stored_bytes());
  EXPECT_GT(table_.stored_bytes(), 0u);
  EXPECT_EQ(table_.list({kId, 1}, nullptr, 2)->bytes, 0u) << "of the other requests";
}

TEST_F(SessionAttachTest, ASessionThatEndsMeanwhileHasNoList) {
  begin(1, 1, sink());
  attach();
  Result<SessionList> made = table_.list({kId, 1}, nullptr, 0);
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE(table_.close(kId).ok());
  EXPECT_EQ(table_.add_results(kId, 5, {}, 1'000'000, &*made).reason(), ErrorReason::session_unknown);
  EXPECT_EQ(table_.list({kId, 1}, nullptr, 0).status().reason(), ErrorReason::session_unknown);
  EXPECT_EQ(table_.attach(kId, nullptr, 0, now_us_).status().reason(), ErrorReason::session_unknown);
}

// No lock is held while the rights to stored results are checked. The attach comes at this moment.
TEST_F(SessionAttachTest, ARetryThatWasLetInBeforeTheAttachDoesNotRunAfterIt) {
  begin(1, 2, sink());
  deliver(1, {0});
  table_.abandon(kId, 1, Status(StatusCode::unavailable, ErrorReason::draining, "draining"));
  begin(2, 1, sink());
  for (const std::uint64_t number : {1, 2}) {  // one that rests, and one in flight
    const std::shared_ptr<CheckingSink> retry = sink();
    RequestHeader again = header(number, number == 1 ? 2 : 1, retry);
    again.identity.holder = number - 1;
    again.may_show = [this](std::span<const StoredBytes>) {
      attach();
      return Status();
    };
    EXPECT_EQ(refusal(again).reason(), ErrorReason::session_fenced);
    EXPECT_TRUE(retry->indices().empty());
  }
  const SessionList list = this->list(2, 5);
  EXPECT_FALSE(list.requests.at(0).in_flight);
  EXPECT_EQ(list.requests.at(0).decided, 1u);
}

// The commit took the read set of the holder before, and was then refused.
TEST_F(SessionAttachTest, AnUploadDoesNotComeBackToAnotherHolder) {
  ReadSetChunk chunk;
  chunk.identity = {kId, 3, 0, {}};
  const Version versions[] = {0};
  chunk.keys = {"key"};
  chunk.versions = versions;
  const engine::KeyHashSecret secret{1, 2};
  SessionTable table(kWideLimitsWithUploads);
  ASSERT_TRUE(table.open(kId, kLeaseUs, now_us_).ok());
  ASSERT_TRUE(table.upload(chunk, secret, now_us_).ok());
  engine::TransactionColumns columns;
  engine::ColumnsBuilder builder(&columns, secret);
  builder.begin();
  builder.op(engine::OpKind::get, builder.key("a"));
  builder.end();
  UploadedPart part;
  part.keys = 1;
  Result<std::shared_ptr<Upload>> taken = table.take_upload(kId, 3, nullptr, part, &columns);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  ASSERT_TRUE(table.attach(kId, nullptr, 0, now_us_).ok());
  table.put_back(kId, 3, std::move(*taken), &columns);
  EXPECT_EQ(table.upload_counts().uploads, 0u);
  EXPECT_EQ(table.take_upload({kId, 1}, 3, nullptr, part, &columns).status().reason(), ErrorReason::upload_missing);
  EXPECT_EQ(table.take_upload(kId, 3, nullptr, part, &columns).status().reason(), ErrorReason::session_fenced);
}

// Acknowledged numbers that are still in flight are not listed, whatever the acknowledgement is.
TEST_F(SessionAttachTest, NothingBelowTheAcknowledgementIsListed) {
  begin(1, 1, sink());
  RequestHeader last = header(~std::uint64_t{0}, 1, sink());
  last.identity.acknowledged_through = ~std::uint64_t{0} - 1;
  EXPECT_EQ(table_.begin(last, now_us_).kind, Kind::run);
  attach();
  ASSERT_EQ(list(1, 5).requests.size(), 1u);
  EXPECT_EQ(list(1, 5).requests.at(0).number, ~std::uint64_t{0});
}

// Threads send numbers as the first holder. The attach comes in between, and the list is made as soon as it has.
TEST(SessionAttachThreadsTest, TheListHasExactlyWhatWasAdmitted) {
  constexpr int kThreads = 3, kRounds = 60;
  constexpr std::uint64_t kNumbers = 200;
  for (int round = 0; round < kRounds; ++round) {
    SessionTable table(kWideLimits);
    const SessionId id = session_id(1);
    ASSERT_TRUE(table.open(id, kLeaseUs, 0).ok());
    std::vector<std::set<std::uint64_t>> admitted(kThreads);
    std::atomic<std::uint64_t> sent{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t i = 1; i <= kNumbers; ++i) {
          const std::uint64_t number = i * kThreads + static_cast<std::uint64_t>(t);
          const SessionAdmission admission =
              table.begin({{id, number, 0, kDigest}, 1, std::make_shared<CheckingSink>()}, 0);
          ++sent;
          if (admission.kind == Kind::run) {
            admitted[static_cast<std::size_t>(t)].insert(number);
          } else if (admission.status.reason() != ErrorReason::session_fenced) {
            ++wrong;
          }
        }
      });
    }
    while (sent.load() < static_cast<std::uint64_t>(round) * 5) std::this_thread::yield();
    const Result<SessionEntry> entry = table.attach(id, nullptr, 0, 0);
    ASSERT_TRUE(entry.ok());
    std::set<std::uint64_t> listed;
    for (std::uint64_t from = 0;;) {
      const Result<SessionList> list = table.list({id, 1}, nullptr, from);
      ASSERT_TRUE(list.ok());
      for (const ListedRequest& request : list->requests) listed.insert(request.number);
      if (!list->more) break;
      from = list->requests.back().number + 1;
    }
    for (std::thread& thread : threads) thread.join();
    std::set<std::uint64_t> all;
    for (const auto& some : admitted) all.insert(some.begin(), some.end());
    EXPECT_EQ(listed, all) << "round " << round;
    EXPECT_EQ(wrong.load(), 0);
  }
}

// A part of each request has results, as after a crash. A retry of the first holder either runs the rest before the
// attach, and then it is in flight in the list; or it is refused.
TEST(SessionAttachThreadsTest, ARetryOfTheRestIsInFlightOrRefused) {
  constexpr int kRounds = 300;
  constexpr std::uint64_t kNumbers = 8;
  for (int round = 0; round < kRounds; ++round) {
    SessionTable table(kWideLimits);
    const SessionId id = session_id(1);
    ASSERT_TRUE(table.open(id, kLeaseUs, 0).ok());
    for (std::uint64_t number = 1; number <= kNumbers; ++number) {
      ASSERT_EQ(table.begin({{id, number, 0, kDigest}, 2, std::make_shared<CheckingSink>()}, 0).kind, Kind::run);
      const RecordedSlice slice = slice_of({1});
      table.deliver(id, number, slice, encoded(slice));
      table.abandon(id, number, Status(StatusCode::unavailable, ErrorReason::draining, "draining"));
    }
    std::set<std::uint64_t> ran;
    std::atomic<bool> begun{false};
    std::thread retries([&] {
      for (std::uint64_t number = 1; number <= kNumbers; ++number) {
        begun = true;
        if (table.begin({{id, number, 0, kDigest}, 2, std::make_shared<CheckingSink>()}, 0).kind == Kind::run) {
          ran.insert(number);
        }
      }
    });
    while (!begun) std::this_thread::yield();
    for (int i = 0; i < round % 50; ++i) std::this_thread::yield();
    ASSERT_TRUE(table.attach(id, nullptr, 0, 0).ok());
    const Result<SessionList> list = table.list({id, 1}, nullptr, 0);
    retries.join();
    ASSERT_TRUE(list.ok());
    ASSERT_EQ(list->requests.size(), kNumbers);
    for (const ListedRequest& request : list->requests) {
      EXPECT_EQ(request.in_flight, ran.contains(request.number)) << "number " << request.number << " round " << round;
    }
  }
}

}  // namespace
}  // namespace kilokv::server
