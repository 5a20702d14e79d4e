// A retry that gets stored results while its request goes on. Nobody waits for it, and it gets everything in order.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <latch>

#include "server/core/sessions/session_table.hpp"
#include "tests/unit/core/sessions/session_fixtures.hpp"

namespace kilokv::server {
namespace {

using Kind = SessionAdmission::Kind;
using Indices = std::vector<std::uint32_t>;

const Status kDraining(StatusCode::unavailable, ErrorReason::draining, "draining");

// Its first call does not return before open().
class SlowSink final : public CheckingSink {
 public:
  ~SlowSink() override { EXPECT_TRUE(opened_.try_wait()); }
  void results(const ResultSlice& slice, bool last) override {
    if (!called_.try_wait()) {
      called_.count_down();
      opened_.wait();
    }
    CheckingSink::results(slice, last);
  }
  void wait_for_call() { called_.wait(); }
  void open() {
    if (!opened_.try_wait()) opened_.count_down();
  }

 private:
  std::latch called_{1}, opened_{1};
};

class SessionReplayTest : public SessionTableTest {
 protected:
  // Sends request 1 again from another thread. Returns when its sink has been called.
  std::future<SessionAdmission> retry(const std::shared_ptr<SlowSink>& sink, std::uint32_t transactions) {
    auto admission = std::async(std::launch::async, [=, this] { return begin(1, transactions, sink); });
    sink->wait_for_call();
    return admission;
  }

  // Whether this ends while `sink` is in its call. Waits until it has ended.
  static bool ends_meanwhile(const std::shared_ptr<SlowSink>& sink, const std::function<void()>& work) {
    auto ended = std::async(std::launch::async, work);
    const bool in_time = ended.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    if (!in_time) sink->open();  // so that it ends at all
    return in_time;
  }
};

TEST_F(SessionReplayTest, ResultsDoNotWaitForARetryThatGetsThemLater) {
  const auto first = sink();
  const auto slow = std::make_shared<SlowSink>();
  begin(1, 5, first);
  deliver(1, {1});
  deliver(1, {0});
  auto admission = retry(slow, 5);
  ASSERT_TRUE(ends_meanwhile(slow, [&] {
    deliver(1, {4}, 2);
    deliver(1, {2}, 3);
  }));
  EXPECT_EQ(first->indices(), (Indices{1, 0, 4, 2}));
  slow->open();
  EXPECT_EQ(admission.get().kind, Kind::joined);
  EXPECT_EQ(slow->indices(), (Indices{1, 0, 4, 2}));
  EXPECT_FALSE(slow->ended());
  deliver(1, {3}, 4);
  EXPECT_TRUE(slow->last());
  EXPECT_EQ(slow->indices(), (Indices{1, 0, 4, 2, 3}));
  EXPECT_EQ(slow.use_count(), 1) << "the table holds no sink after its last call";
}

TEST_F(SessionReplayTest, TheLastResultsDoNotWaitEither) {
  const auto first = sink();
  const auto slow = std::make_shared<SlowSink>();
  begin(1, 3, first);
  deliver(1, {2});
  auto admission = retry(slow, 3);
  ASSERT_TRUE(ends_meanwhile(slow, [&] {
    deliver(1, {0}, 2);
    deliver(1, {1}, 3);
  }));
  EXPECT_TRUE(first->last());
  EXPECT_EQ(first.use_count(), 1);
  const auto later = sink();
  EXPECT_EQ(begin(1, 3, later).kind, Kind::answered) << "the request is complete for others";
  slow->open();
  EXPECT_EQ(admission.get().kind, Kind::joined);
  EXPECT_TRUE(slow->last());
  EXPECT_EQ(slow->indices(), (Indices{2, 0, 1}));
  EXPECT_EQ(slow.use_count(), 1);
}

TEST_F(SessionReplayTest, ARequestThatFailsDoesNotWait) {
  const auto first = sink();
  const auto slow = std::make_shared<SlowSink>();
  begin(1, 4, first);
  deliver(1, {0});
  auto admission = retry(slow, 4);
  ASSERT_TRUE(ends_meanwhile(slow, [&] {
    deliver(1, {1}, 2);
    table_.abandon(kId, 1, kDraining);
  }));
  EXPECT_EQ(first->failure().code(), StatusCode::unavailable);
  // The rest runs for another call meanwhile.
  const auto second = sink();
  EXPECT_EQ(begin(1, 4, second).remaining, (Indices{2, 3}));
  deliver(1, {2, 3}, 3);
  EXPECT_TRUE(second->last());
  slow->open();
  admission.get();
  EXPECT_EQ(slow->indices(), (Indices{0, 1}));
  EXPECT_EQ(slow->failure().code(), StatusCode::unavailable);
  EXPECT_EQ(slow.use_count(), 1);
}

TEST_F(SessionReplayTest, TheEndOfASessionDoesNotWait) {
  const auto first = sink();
  const auto slow = std::make_shared<SlowSink>();
  begin(1, 3, first);
  deliver(1, {0});
  auto admission = retry(slow, 3);
  ASSERT_TRUE(ends_meanwhile(slow, [&] {
    EXPECT_TRUE(table_.close(kId).ok());
    table_.free_ended(100);
    deliver(1, {1}, 2);
    deliver(1, {2}, 3);
  }));
  EXPECT_TRUE(first->last());
  EXPECT_EQ(table_.stored_bytes() + table_.reserved_bytes(), 0u);
  slow->open();
  admission.get();
  EXPECT_TRUE(slow->last());
  EXPECT_EQ(slow->indices(), (Indices{0, 1, 2})) << "also what is not stored any more";
}

TEST_F(SessionReplayTest, AnAcknowledgementDoesNotWait) {
  const auto slow = std::make_shared<SlowSink>();
  begin(1, 1, sink());
  deliver(1, {0});
  auto admission = retry(slow, 1);
  ASSERT_TRUE(ends_meanwhile(slow, [&] {
    EXPECT_EQ(begin(1, 1, sink()).kind, Kind::answered);
    EXPECT_EQ(snapshot_of(table_).size(), 1u);
    RequestHeader next = header(2, 1, sink());
    next.identity.acknowledged_through = 1;
    EXPECT_EQ(table_.begin(next, now_us_).kind, Kind::run);
    EXPECT_EQ(table_.stored_bytes(), 0u);
  }));
  slow->open();
  EXPECT_EQ(admission.get().kind, Kind::answered);
  EXPECT_EQ(slow->indices(), Indices{0});
  EXPECT_TRUE(slow->last());
}

TEST_F(SessionReplayTest, ARetryDoesNotWaitForTheAnswerWorker) {
  const auto slow = std::make_shared<SlowSink>();
  begin(1, 3, slow);
  auto answered = std::async(std::launch::async, [&] { deliver(1, {0}); });
  slow->wait_for_call();
  const auto quick = sink();
  ASSERT_TRUE(ends_meanwhile(slow, [&] { EXPECT_EQ(begin(1, 3, quick).kind, Kind::joined); }));
  EXPECT_EQ(quick->indices(), Indices{0});
  slow->open();
  answered.get();
  deliver(1, {1, 2});
  for (const auto& one : {static_cast<std::shared_ptr<CheckingSink>>(slow), quick}) {
    EXPECT_TRUE(one->last());
    EXPECT_EQ(one->indices(), (Indices{0, 1, 2}));
  }
}

// A client that has gone away gets no further results, and its sink ends with the next retry.
TEST_F(SessionReplayTest, AClientThatGoesAwayMeanwhileGetsNothingMore) {
  const auto slow = std::make_shared<SlowSink>();
  begin(1, 4, sink());
  deliver(1, {0});
  deliver(1, {1});
  auto admission = retry(slow, 4);
  slow->go();
  ASSERT_TRUE(ends_meanwhile(slow, [&] {
    deliver(1, {2});
    begin(1, 4, sink());
    EXPECT_FALSE(slow->ended()) << "it is in a call";
  }));
  slow->open();
  admission.get();
  EXPECT_EQ(slow->indices(), Indices{0});
  EXPECT_FALSE(slow->ended());
  begin(1, 4, sink());
  EXPECT_EQ(slow->failure().code(), StatusCode::cancelled);
  EXPECT_EQ(slow.use_count(), 1);
}

TEST_F(SessionReplayTest, RetriesThatGetStoredResultsAreAmongTheCallsThatWait) {
  const auto slow = std::make_shared<SlowSink>();
  begin(1, 2, sink());
  deliver(1, {0});
  auto admission = retry(slow, 2);
  ASSERT_TRUE(ends_meanwhile(slow, [&] {
    for (std::size_t calls = 2; calls < kSinksMax; ++calls) EXPECT_EQ(begin(1, 2, sink()).kind, Kind::joined);
    EXPECT_EQ(refusal(header(1, 2, sink())).reason(), ErrorReason::calls_full);
    slow->go();
    EXPECT_EQ(refusal(header(1, 2, sink())).reason(), ErrorReason::calls_full) << "it is in a call";
  }));
  slow->open();
  admission.get();
  EXPECT_EQ(begin(1, 2, sink()).kind, Kind::joined);
}

TEST_F(SessionReplayTest, CallsThatAreBeingAnsweredAreAmongTheCallsThatWait) {
  const auto slow = std::make_shared<SlowSink>();
  begin(1, 2, slow);
  for (std::size_t calls = 1; calls < kSinksMax; ++calls) EXPECT_EQ(begin(1, 2, sink()).kind, Kind::joined);
  auto answered = std::async(std::launch::async, [&] { deliver(1, {0}); });
  slow->wait_for_call();
  ASSERT_TRUE(
      ends_meanwhile(slow, [&] { EXPECT_EQ(refusal(header(1, 2, sink())).reason(), ErrorReason::calls_full); }));
  slow->open();
  answered.get();
}

TEST_F(SessionReplayTest, WhetherResultsMayBeShownIsAskedAgainIfMoreHaveCome) {
  begin(1, 3, sink());
  deliver(1, {0});
  std::vector<std::size_t> asked;
  std::future<void> delivered;
  RequestHeader again = header(1, 3, sink());
  again.may_show = [&](std::span<const StoredBytes> stored) {
    asked.push_back(stored.size());
    if (asked.size() > 1) return Status();
    delivered = std::async(std::launch::async, [&] { deliver(1, {1}); });
    EXPECT_EQ(delivered.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    return Status();
  };
  EXPECT_EQ(table_.begin(again, now_us_).kind, Kind::joined);
  EXPECT_EQ(asked, (std::vector<std::size_t>{1, 2}));
  again.sink = sink();
  again.may_show = [&](std::span<const StoredBytes> stored) {
    return stored.size() == 3 ? kDraining : (deliver(1, {2}), Status());
  };
  EXPECT_EQ(refusal(again).code(), StatusCode::unavailable);
}

// Otherwise it could miss results that are not stored any more.
TEST_F(SessionReplayTest, ARetryDoesNotJoinWhatIsAcknowledgedMeanwhile) {
  begin(1, 2, sink());
  deliver(1, {0});
  RequestHeader again = header(1, 2, sink());
  again.may_show = [&](std::span<const StoredBytes>) {
    RequestHeader next = header(2, 1, sink());
    next.identity.acknowledged_through = 1;
    EXPECT_EQ(table_.begin(next, now_us_).kind, Kind::run);
    return Status();
  };
  EXPECT_EQ(refusal(again).reason(), ErrorReason::number_acknowledged);
}

}  // namespace
}  // namespace kilokv::server
