// What the database tells the program that runs it, for its log: recovery, batches, checkpoints, sessions, requests.
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

constexpr DurationUs kSecond = 1000000;

using EventsTest = CoreFixture;

TEST_F(EventsTest, ARecoveryTellsHowFarItHasCome) {
  for (int i = 0; i < 3; ++i) run(add("a", 1));
  std::vector<RecoveryProgress> told;
  events.recovering = [&](const RecoveryProgress& progress) { told.push_back(progress); };
  reopen();
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front().batch, 1u) << "at the first batch, and then once a second";
  EXPECT_FALSE(told.front().counting);
}

TEST_F(EventsTest, EachBatchIsToldWhenItHasRunAndWhenItIsDurable) {
  std::vector<BatchReport> executed;
  std::vector<AppendReport> appended;
  events.batch_executed = [&](const BatchReport& report) { executed.push_back(report); };
  events.batches_appended = [&](const AppendReport& report) { appended.push_back(report); };
  reopen();
  sim.scheduler.hold("log");
  submit(both(add("a", 1), withdraw("b", 10, kSecond)));
  settle();
  ASSERT_EQ(executed.size(), 1u);
  EXPECT_TRUE(appended.empty());
  EXPECT_EQ(executed[0].batch, 1u);
  EXPECT_EQ(executed[0].transactions, 2u);
  EXPECT_EQ(executed[0].postponed, 1u);
  EXPECT_EQ(executed[0].writes, 1u);
  EXPECT_FALSE(std::string(executed[0].strategy).empty());
  sim.clock.advance(300);
  sim.scheduler.hold("");
  settle();
  ASSERT_EQ(appended.size(), 1u);
  EXPECT_EQ(appended[0].last_batch, 1u);
  EXPECT_EQ(appended[0].batches, 1u);
}

TEST_F(EventsTest, ACheckpointIsToldWithWhatItHasWritten) {
  options.checkpoint_interval_us = kSecond;
  std::vector<BatchNumber> begun;
  std::vector<CheckpointReport> made;
  events.checkpoint_begins = [&](BatchNumber batch) { begun.push_back(batch); };
  events.checkpoint_made = [&](const CheckpointReport& report) { made.push_back(report); };
  reopen();
  open_session(3600 * kSecond);
  for (int i = 0; i < 5; ++i) run(add("k" + std::to_string(i), 1));
  EXPECT_TRUE(made.empty());
  sim.scheduler.run_for(2 * kSecond);
  ASSERT_EQ(made.size(), 1u) << "nothing has changed since then";
  EXPECT_EQ(begun, std::vector<BatchNumber>{made[0].batch});
  EXPECT_EQ(made[0].batch, log.checkpoint());
  EXPECT_EQ(made[0].records, 5u);
  EXPECT_EQ(made[0].sessions, 1u);
  EXPECT_EQ(made[0].removed, 0u);
  run(add("k0", 1));
  sim.scheduler.run_for(2 * kSecond);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[1].records, 1u) << "counted anew for each checkpoint";
}

TEST_F(EventsTest, SessionsAreToldWhenTheyOpenAndCloseAndWhenAClientAttaches) {
  std::vector<SessionEntry::Kind> told;
  std::vector<SessionId> ids;
  events.session_changed = [&](const SessionEntry& entry) {
    told.push_back(entry.kind);
    ids.push_back(*entry.identity.session);
  };
  reopen();
  const SessionId session = open_session();
  run(add("a", 1), session, 1);  // results are no change
  std::uint64_t holder = 0;
  database->attach_session({}, nullptr, AttachTarget{.session = session},
                           [&holder](Result<SessionList> list) { holder = list->holder; });
  settle();
  EXPECT_EQ(holder, 1u);
  database->close_session({}, nullptr, {session, holder}, [](const Status& status) { EXPECT_TRUE(status.ok()); });
  settle();
  using Kind = SessionEntry::Kind;
  EXPECT_EQ(told, (std::vector{Kind::opened, Kind::attached, Kind::closed}));
  EXPECT_EQ(ids, (std::vector{session, session, session}));
}

TEST_F(EventsTest, SingleRequestsAreToldOnlyWhereTheyAreWanted) {
  bool wanted = false;
  std::vector<std::string> told;
  std::string parked_key;
  events.tells_requests = [&] { return wanted; };
  events.request_admitted = [&](const RequestReport& report) {
    told.push_back("admitted " + std::to_string(report.transactions));
  };
  events.request_answered = [&](const RequestReport& report) {
    told.push_back("answered " + std::to_string(report.transactions) + " after " + std::to_string(report.took_us));
  };
  events.transaction_parked = [&](const ParkedReport& report) {
    told.push_back("parked " + std::to_string(report.index) + " guard " + std::to_string(report.guard));
    parked_key = report.key;
  };
  reopen();
  run(add("a", 1));
  EXPECT_TRUE(told.empty());
  wanted = true;
  run(both(add("a", 1), withdraw("b", 10, 60 * kSecond)));
  sim.clock.advance(700);
  run(add("b", 10));
  EXPECT_EQ(told, (std::vector<std::string>{"admitted 2", "parked 1 guard 0", "admitted 1", "answered 1 after 0",
                                            "answered 2 after 700"}));
  EXPECT_EQ(parked_key, "b");
}

TEST_F(EventsTest, ABatchThatTheRefereeChecksIsTold) {
  options.shadow_rate = 1;
  options.shadow_records_max = 1;
  std::vector<std::pair<BatchNumber, bool>> told;
  events.shadow_checked = [&](BatchNumber batch, bool too_large) { told.emplace_back(batch, too_large); };
  reopen();
  run(add("a", 1));
  run(both(add("a", 1), add("b", 1)));
  EXPECT_EQ(told, (std::vector<std::pair<BatchNumber, bool>>{{1, false}, {2, true}}));
}

}  // namespace
}  // namespace kilokv::server
