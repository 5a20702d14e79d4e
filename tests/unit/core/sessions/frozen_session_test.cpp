// Sessions of an earlier incarnation: they return what they stored, and run nothing more.
#include <gtest/gtest.h>

#include "server/core/sessions/session_table.hpp"
#include "tests/unit/core/sessions/session_fixtures.hpp"

namespace kilokv::server {
namespace {

using Kind = SessionAdmission::Kind;
using Indices = std::vector<std::uint32_t>;

class FrozenSessionTest : public SessionTableTest {
 protected:
  // Request 1 is stored whole, and request 2 in part.
  FrozenSessionTest() {
    for (const std::uint64_t number : {1, 2}) {
      EXPECT_EQ(begin(number, 2, sink()).kind, Kind::run);
      deliver(number, {0});
    }
    deliver(1, {1});
    stored_ = snapshot_of(table_).at(0);
  }
  // The session as a restored database has it, from a checkpoint.
  void restore(SessionTable* table) {
    stored_.frozen = true;
    ASSERT_TRUE(table->restore(stored_, now_us_).ok());
  }
  StoredSession stored_;
};

TEST_F(FrozenSessionTest, AWholeResultIsReturnedAndNothingElseRuns) {
  SessionTable restored{kTestLimits};
  restore(&restored);
  const auto answered = sink();
  EXPECT_EQ(restored.begin(header(1, 2, answered), now_us_).kind, Kind::answered);
  EXPECT_EQ(answered->indices(), (Indices{0, 1}));
  for (const std::uint64_t number : {2, 3}) {
    const auto refused = sink();
    const SessionAdmission admission = restored.begin(header(number, 2, refused), now_us_);
    EXPECT_EQ(admission.kind, Kind::refused) << number;
    EXPECT_EQ(admission.status.code(), StatusCode::failed_precondition);
    EXPECT_EQ(admission.status.reason(), ErrorReason::session_frozen);
    EXPECT_TRUE(refused->indices().empty());
  }
  EXPECT_TRUE(restored.touch(kId, now_us_).ok()) << "its lease goes on";
}

TEST_F(FrozenSessionTest, StaysFrozenInCheckpoints) {
  SessionTable restored{kTestLimits};
  restore(&restored);
  const std::vector<StoredSession> sessions = snapshot_of(restored);
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_TRUE(sessions.front().frozen);
  EXPECT_FALSE(snapshot_of(table_).front().frozen);
}

// Who attaches learns what is stored, may read it, and lets nothing new in.
TEST_F(FrozenSessionTest, AHolderOfALaterIncarnationGetsWhatIsStored) {
  SessionTable restored{kTestLimits};
  restore(&restored);
  const Result<SessionEntry> entry = restored.attach(kId, nullptr, 0, now_us_);
  ASSERT_TRUE(entry.ok()) << entry.status().message();
  restored.attached(kId, entry->identity.holder);
  Result<SessionList> list = restored.list({kId, 1}, nullptr, 0);
  ASSERT_TRUE(list.ok());
  EXPECT_TRUE(list->frozen);
  ASSERT_TRUE(restored.add_results(kId, 100, {}, 1'000'000, &*list).ok());
  ASSERT_EQ(list->requests.size(), 2u);
  EXPECT_EQ(list->requests[0].decided, 2u);
  EXPECT_EQ(list->requests[1].decided, 1u);
  EXPECT_EQ(restored.begin(header(1, 2, sink()), now_us_).status.reason(), ErrorReason::session_fenced);
  for (const std::uint64_t number : {1, 2, 3}) {
    RequestHeader again = header(number, 2, sink());
    again.identity.holder = 1;
    const SessionAdmission admission = restored.begin(again, now_us_);
    EXPECT_EQ(admission.kind, number == 1 ? Kind::answered : Kind::refused);
    if (number == 1) continue;
    EXPECT_EQ(admission.status.reason(), ErrorReason::session_frozen);
  }
  const StoredSession stored = snapshot_of(restored).at(0);
  EXPECT_EQ(stored.holder, 1u);
  EXPECT_TRUE(stored.frozen);
  SessionTable replayed{kTestLimits};  // the attach is in the log of the new incarnation
  restore(&replayed);
  ASSERT_TRUE(replayed.restore(*entry, now_us_).ok());
  EXPECT_TRUE(replayed.check_holder({kId, 1}, nullptr).ok());
  EXPECT_TRUE(snapshot_of(replayed).front().frozen);
}

TEST_F(FrozenSessionTest, ASessionThatTheLogOpensIsFrozenIfTheBatchIsOfAnEarlierIncarnation) {
  for (const bool frozen : {true, false}) {
    SessionTable restored{kTestLimits};
    SessionEntry opened{.identity = {.session = kId, .digest = {}}, .lease_us = kLeaseUs, .results = {}};
    ASSERT_TRUE(restored.restore(opened, now_us_, frozen).ok());
    EXPECT_EQ(restored.begin(header(1, 2, sink()), now_us_).kind, frozen ? Kind::refused : Kind::run);
    EXPECT_EQ(snapshot_of(restored).front().frozen, frozen);
  }
}

TEST_F(FrozenSessionTest, OnAServerThatOnlyReadsNothingRunsEither) {
  const auto answered = sink();
  RequestHeader known = header(1, 2, answered), in_part = header(2, 2, sink()), unknown = header(3, 2, sink());
  known.read_only = in_part.read_only = unknown.read_only = true;
  EXPECT_EQ(table_.begin(known, now_us_).kind, Kind::answered);
  table_.abandon(kId, 2, Status(StatusCode::unavailable, ErrorReason::draining, "draining"));  // it is not in flight
  for (const RequestHeader& refused : {in_part, unknown}) {
    EXPECT_EQ(refusal(refused).code(), StatusCode::failed_precondition);
  }
}

}  // namespace
}  // namespace kilokv::server
