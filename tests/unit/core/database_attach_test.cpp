// Sessions that get a new holder: what its client is told, and what becomes of what earlier holders send.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/core/access_fixture.hpp"
#include "tests/unit/core/attach_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

constexpr DurationUs kHour = DurationUs{3600} * 1000000;

class DatabaseAttach : public AttachFixture {
 protected:
  DatabaseAttach() { options.session_lease_us_default = kHour; }
  void SetUp() override {
    open();
    session = open_session();
  }
  SessionId session;
};

TEST_F(DatabaseAttach, EachStateIsListed) {
  run(add("a", 1), session, 1);
  run(withdraw("none", 5, kHour), session, 2);
  run(both(add("a", 1), withdraw("none", 5, kHour)), session, 3);
  run(both(withdraw("none", 5, kHour), withdraw("none", 6, kHour)), session, 4);
  const SessionList list = attach(session);
  EXPECT_EQ(list.holder, 1u);
  EXPECT_EQ(list.lease_us, options.session_lease_us_default);
  EXPECT_EQ(list.acknowledged_through, 0u);
  EXPECT_FALSE(list.more);
  ASSERT_EQ(list.requests.size(), 4u);
  expect_counts(find(list, 1), 1, 0, 0);
  expect_counts(find(list, 2), 0, 1, 0);
  expect_counts(find(list, 3), 1, 1, 0);
  expect_counts(find(list, 4), 0, 2, 0);
  EXPECT_EQ(outcomes(*find(list, 3)), (Outcomes{{0, Outcome::committed}}));
  EXPECT_EQ(find(list, 3)->transactions, 2u);
  EXPECT_FALSE(find(list, 1)->in_flight);
  EXPECT_TRUE(find(list, 3)->in_flight);
}

// The log that a required archive keeps must not grow by sessions while other work is refused.
TEST_F(DatabaseAttach, NoSessionIsOpenedOrAttachedWhereTheArchiveIsLate) {
  log.hold_up(true);
  Status opened;
  database->open_session({}, nullptr, 0, [&](const Result<SessionId>& id, DurationUs) { opened = id.status(); });
  const auto attach_now = begin_attach(target_of(session));
  settle();
  EXPECT_EQ(opened.reason(), ErrorReason::archive_late);
  EXPECT_TRUE(opened.not_run());
  ASSERT_TRUE(attach_now->answer);
  EXPECT_EQ(attach_now->answer->status().reason(), ErrorReason::archive_late);
  EXPECT_EQ(attach_now->begun_holder, 0u);
  log.hold_up(false);
  open_session();
  EXPECT_EQ(attach(session).holder, 1u);
  EXPECT_EQ(log.reserved(), 0u) << "the room is free again";
}

// What waits decides later. The holder asks again.
TEST_F(DatabaseAttach, TheHolderAsksAgainWithoutAnotherAttach) {
  run(both(add("a", 1), withdraw("b", 5, kHour)), session, 1);
  attach(session);
  run(add("b", 7));
  const SessionList later = list(session, 1);
  EXPECT_EQ(later.holder, 1u);
  expect_counts(find(later, 1), 2, 0, 0);
  EXPECT_EQ(outcomes(*find(later, 1)), (Outcomes{{0, Outcome::committed}, {1, Outcome::committed}}));
  EXPECT_EQ(integer("b"), 2);
  EXPECT_EQ(attach(session).holder, 2u);
}

// A batch takes one transaction, so most of them are still in the queue when the list is made.
TEST_F(DatabaseAttach, WhatIsQueuedIsListedAsQueued) {
  options.batch_max_transactions = 1;
  options.batch_in_flight_max = 1;
  reopen();
  session = open_session();
  const auto attach = begin_attach(target_of(session));
  std::vector<Sink> sinks;
  for (std::uint64_t number = 1; number <= 20; ++number) sinks.push_back(send(add("a", 1), session, number, 0));
  settle();
  ASSERT_TRUE(attach->answer && attach->answer->ok());
  const SessionList& list = **attach->answer;
  ASSERT_EQ(list.requests.size(), 20u);
  std::uint32_t decided = 0, queued = 0;
  for (const ListedRequest& listed : list.requests) {
    EXPECT_EQ(listed.decided + listed.queued, 1u);
    decided += listed.decided;
    queued += listed.queued;
  }
  EXPECT_GT(decided, 0u);
  EXPECT_GT(queued, 0u);
  for (const Sink& sink : sinks) EXPECT_EQ(sink->outcome(0), Outcome::committed) << "what was admitted goes on";
  EXPECT_EQ(integer("a"), 20);
}

TEST_F(DatabaseAttach, NothingOfAnEarlierHolderComesIn) {
  run(add("a", 1), session, 1);
  run(both(add("a", 1), withdraw("none", 5, kHour)), session, 2);
  ASSERT_TRUE(upload_status(session, 5, 0).ok());
  attach(session);
  expect_fenced(run(add("a", 1), session, 3));                                    // a new request
  expect_fenced(run(add("a", 1), session, 1));                                    // one that is answered
  expect_fenced(run(both(add("a", 1), withdraw("none", 5, kHour)), session, 2));  // one in flight
  expect_fenced(send(add("a", 1), session, 5, 0, 0, 1));                          // one with uploaded keys
  expect_fenced(upload_status(session, 6, 0));
  expect_fenced(database->keep_alive({}, session));
  expect_fenced(database->check_session({}, session));
  std::optional<Status> closed;
  database->close_session({}, nullptr, session, [&](const Status& status) { closed = status; });
  settle();
  ASSERT_TRUE(closed);
  expect_fenced(*closed);
  EXPECT_EQ(integer("a"), 2);
  // All of this is open to the holder.
  const HeldSession held(session, 1);
  EXPECT_TRUE(database->keep_alive({}, held).ok());
  EXPECT_TRUE(database->check_session({}, held).ok());
  EXPECT_TRUE(upload_status(session, 6, 1).ok());
  const Sink retry = send(add("a", 1), session, 1, 1);
  settle();
  EXPECT_EQ(retry->outcome(0), Outcome::committed);
  EXPECT_EQ(integer("a"), 2) << "it was applied once";
  database->close_session({}, nullptr, held, [&](const Status& status) { closed = status; });
  settle();
  EXPECT_TRUE(closed->ok());
}

// A holder that there never was, or that a crash took back.
TEST_F(DatabaseAttach, ALaterHolderDoesNotComeInEither) {
  attach(session);
  const Sink sink = send(add("a", 1), session, 1, 2);
  settle();
  expect_fenced(sink);
}

// The acknowledgement of an earlier holder would drop results that the new one has not seen.
TEST_F(DatabaseAttach, AnEarlierHolderDoesNotAcknowledge) {
  run(add("a", 1), session, 1);
  attach(session);
  expect_fenced(run(add("a", 1), session, 2, 1));
  expect_counts(find(list(session, 1), 1), 1, 0, 0);
  const Sink next = send(add("a", 1), session, 2, 1, 1);
  settle();
  EXPECT_TRUE(next->done);
  const SessionList after = list(session, 1);
  EXPECT_EQ(after.acknowledged_through, 1u);
  EXPECT_EQ(find(after, 1), nullptr);
}

// The request is on its way, and comes after the answer, or after any number of restarts.
TEST_F(DatabaseAttach, NotKnownIsFinal) {
  auto delayed = make(add("late", 1), session, 7, 0);
  const Sink sink = std::static_pointer_cast<RecordingSink>(delayed->sink);
  EXPECT_TRUE(attach(session).requests.empty());
  database->submit(std::move(delayed));
  settle();
  expect_fenced(sink);
  for (int restart = 0; restart < 3; ++restart) {
    reopen();
    expect_fenced(run(add("late", 1), session, 7));
    EXPECT_EQ(find(list(session, 1), 7), nullptr);
    if (restart == 1) sim.scheduler.run_for(2 * options.checkpoint_interval_us);
  }
  EXPECT_EQ(integer("late"), 0);
  const Sink own = send(add("late", 2), session, 7, 1);  // the number is free for the holder
  settle();
  EXPECT_EQ(own->outcome(0), Outcome::committed);
  EXPECT_EQ(integer("late"), 2);
}

TEST_F(DatabaseAttach, TheHolderOutlivesARestart) {
  run(add("a", 1), session, 1);
  attach(session);
  reopen();  // from the log
  expect_counts(find(list(session, 1), 1), 1, 0, 0);
  expect_fenced(run(add("a", 1), session, 2));
  sim.scheduler.run_for(2 * options.checkpoint_interval_us);
  EXPECT_EQ(database->status().log.first_batch, 0u) << "the log is trimmed";
  reopen();  // from the checkpoint
  expect_fenced(run(add("a", 1), session, 2));
  EXPECT_EQ(attach(session).holder, 2u);
  reopen();  // from both
  expect_fenced(database->keep_alive({}, HeldSession(session, 1)));
  EXPECT_TRUE(database->keep_alive({}, HeldSession(session, 2)).ok());
}

// What is queued or parked has not happened.
TEST_F(DatabaseAttach, ARestartForgetsWhatWasNotDecided) {
  run(both(add("a", 1), withdraw("none", 5, kHour)), session, 1);
  run(withdraw("none", 5, kHour), session, 2);
  attach(session);
  reopen();
  const SessionList after = list(session, 1);
  ASSERT_EQ(after.requests.size(), 1u);
  expect_counts(find(after, 1), 1, 0, 0);
  EXPECT_EQ(find(after, 1)->transactions, 2u) << "one of them does not run";
  EXPECT_FALSE(find(after, 1)->in_flight);
}

// The acknowledgement that the answer named is durable with it.
TEST_F(DatabaseAttach, AcknowledgedNumbersStayAcknowledged) {
  run(add("a", 1), session, 1);
  const Sink refused = run(add("a", 1), session, 1, 1);  // it only acknowledges
  EXPECT_EQ(refused->failure->reason(), ErrorReason::number_acknowledged);
  const Sink waits = run(withdraw("none", 5, kHour), session, 2, 1);
  EXPECT_EQ(attach(session).acknowledged_through, 1u);
  reopen();
  const SessionList after = list(session, 1);
  EXPECT_EQ(after.acknowledged_through, 1u);
  EXPECT_TRUE(after.requests.empty());
}

// Nobody was told of the attach, so the first client may go on.
TEST_F(DatabaseAttach, ACrashBeforeItIsDurableTakesItBack) {
  sim.scheduler.hold("log");
  const auto attach = begin_attach(target_of(session));
  settle();
  EXPECT_EQ(attach->begun_holder, 1u);
  EXPECT_FALSE(attach->answer);
  expect_fenced(run(add("a", 1), session, 1));
  sim.scheduler.hold("");
  reopen();
  EXPECT_EQ(run(add("a", 1), session, 1)->outcome(0), Outcome::committed);
  EXPECT_EQ(this->attach(session).holder, 1u);
}

// Somebody guesses the number of the next holder, and asks before the attach goes into its batch.
TEST_F(DatabaseAttach, AListIsNotAnsweredBeforeItsHolderIsDurable) {
  sim.scheduler.hold("log");
  const auto attach = begin_attach(target_of(session));
  AttachTarget target = target_of(session);
  target.holder = 1;
  const auto early = begin_attach(target);
  settle();
  EXPECT_EQ(attach->begun_holder, 1u);
  EXPECT_FALSE(early->answer) << "a crash may still take the holder back";
  sim.scheduler.hold("");
  EXPECT_EQ(finish(early).holder, 1u);
  EXPECT_TRUE(attach->answer && attach->answer->ok());
}

TEST_F(DatabaseAttach, TheLastOfTwoAttachesHasTheSession) {
  const auto first = begin_attach(target_of(session)), second = begin_attach(target_of(session));
  const SessionList list = finish(second);
  EXPECT_EQ(list.holder, 2u);
  expect_fenced(refusal(first));
  EXPECT_TRUE(database->keep_alive({}, HeldSession(session, 2)).ok());
  expect_fenced(database->keep_alive({}, HeldSession(session, 1)));
}

// The answer was lost, and the client sends the attach again. The first sending may come last.
TEST_F(DatabaseAttach, AnAttachThatIsSentAgainKeepsTheHolder) {
  const auto first = begin_attach(target_of(session, 17)), second = begin_attach(target_of(session, 17));
  EXPECT_EQ(finish(first).holder, 1u);
  EXPECT_EQ(finish(second).holder, 1u);
  ASSERT_TRUE(upload_status(session, 5, 1).ok());
  EXPECT_EQ(attach(session, 17).holder, 1u);
  EXPECT_EQ(database->status().uploads, 1u) << "the holder goes on";
  EXPECT_EQ(attach(session, 18).holder, 2u);
  EXPECT_EQ(attach(session, 17).holder, 3u) << "another client was there in between";
  EXPECT_EQ(attach(session).holder, 4u);
  EXPECT_EQ(attach(session).holder, 5u) << "without a name, each is another one";
}

// An upload of an earlier holder would be in the way of the new one.
TEST_F(DatabaseAttach, UploadsOfEarlierHoldersAreDropped) {
  ASSERT_TRUE(upload_status(session, 1, 0, "key").ok());
  EXPECT_EQ(database->status().uploads, 1u);
  attach(session);
  EXPECT_EQ(database->status().uploads, 0u);
  EXPECT_TRUE(upload_status(session, 1, 1, "other").ok()) << "another read set under the same number";
  const Sink commit = send(add("a", 1), session, 1, 1, 0, 1);
  settle();
  EXPECT_EQ(commit->outcome(0), Outcome::committed);
}

TEST_F(DatabaseAttach, ASessionThatEndsHasNoNewHolder) {
  std::optional<Status> closed;
  database->close_session({}, nullptr, session, [&](const Status& status) { closed = status; });
  const auto attach = begin_attach(target_of(session));  // when its close is on its way
  EXPECT_EQ(refusal(attach).reason(), ErrorReason::session_unknown);
  EXPECT_TRUE(closed && closed->ok());
  EXPECT_EQ(attach_status(session).reason(), ErrorReason::session_unknown);
  reopen();
  EXPECT_EQ(attach_status(session).reason(), ErrorReason::session_unknown);
  EXPECT_EQ(attach_status(SessionId()).reason(), ErrorReason::session_unknown);
}

// The close waits for the executor, and the attach comes first.
TEST_F(DatabaseAttach, ACloseOfAnEarlierHolderDoesNotEndTheSession) {
  const auto attach = begin_attach(target_of(session));
  std::optional<Status> closed;
  database->close_session({}, nullptr, session, [&](const Status& status) { closed = status; });
  EXPECT_EQ(finish(attach).holder, 1u);
  ASSERT_TRUE(closed);
  expect_fenced(*closed);
  reopen();
  EXPECT_TRUE(database->keep_alive({}, HeldSession(session, 1)).ok());
}

TEST_F(DatabaseAttach, AnAttachRenewsTheLease) {
  const DurationUs lease_us = options.session_lease_us_default;
  sim.scheduler.run_for(lease_us * 9 / 10);
  attach(session);
  sim.scheduler.run_for(lease_us * 9 / 10);
  EXPECT_TRUE(database->keep_alive({}, HeldSession(session, 1)).ok());
  sim.scheduler.run_for(2 * lease_us);
  EXPECT_EQ(attach_status(session).reason(), ErrorReason::session_unknown);
}

TEST_F(DatabaseAttach, RefusalsSayThatNothingHappened) {
  EXPECT_TRUE(attach_status(SessionId()).not_run());
  options.commands_in_flight_max = 1;
  reopen();
  session = open_session();
  const auto first = begin_attach(target_of(session)), second = begin_attach(target_of(session));
  ASSERT_TRUE(second->answer) << "at once";
  EXPECT_EQ(second->answer->status().reason(), ErrorReason::calls_full);
  EXPECT_TRUE(second->answer->status().not_run());
  EXPECT_EQ(finish(first).holder, 1u);
  database->drain([] {}, [] {});
  EXPECT_EQ(attach_status(session).reason(), ErrorReason::draining);
}

class DatabaseAttachLists : public DatabaseAttach {
 protected:
  // Asks for all parts of the list, each of about so many bytes. A client goes on in the same way.
  std::vector<ListedRequest> all_parts(std::uint64_t bytes_max, std::size_t* parts) {
    std::vector<ListedRequest> all;
    SessionListPosition from;
    for (*parts = 0;;) {
      SessionList part = list(session, 1, from, bytes_max);
      ++*parts;
      if (part.requests.empty()) return all;
      for (ListedRequest& listed : part.requests) {
        const std::uint64_t shown = listed.number == from.number ? from.results : 0;
        from = {listed.number, shown + outcomes(listed).size()};
        if (from.results == listed.decided) from = {listed.number + 1, 0};
        all.push_back(std::move(listed));
      }
      if (!part.more && from.results == 0) return all;
    }
  }
};

TEST_F(DatabaseAttachLists, AListOfManyRequestsComesInParts) {
  constexpr std::uint64_t kRequests = 2 * kListedRequestsMax + 7;
  for (std::uint64_t number = 1; number <= kRequests; ++number) send(add("a", 1), session, 2 * number, 0);
  settle();
  const SessionList first = attach(session);
  EXPECT_EQ(first.requests.size(), kListedRequestsMax);
  EXPECT_TRUE(first.more);
  std::size_t parts = 0;
  const std::vector<ListedRequest> all = all_parts(std::uint64_t{4} << 20, &parts);
  EXPECT_EQ(parts, 3u);
  ASSERT_EQ(all.size(), kRequests);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].number, 2 * (i + 1));
    EXPECT_EQ(outcomes(all[i]).size(), 1u);
  }
}

// What was parked has a slice for each transaction.
TEST_F(DatabaseAttachLists, ARequestOfManyResultsComesInParts) {
  constexpr std::uint32_t kTransactions = 40;
  const Build many = [](engine::ColumnsBuilder& b) {
    for (std::uint32_t i = 0; i < kTransactions; ++i) withdraw("k" + std::to_string(i / 2), 1, kHour)(b);
  };
  run(many, session, 3);
  run(add("a", 1), session, 4);
  for (std::uint32_t i = 0; i < kTransactions / 2; ++i) run(add("k" + std::to_string(i), 2));
  attach(session);
  for (const std::uint64_t bytes_max : {1, 100, 300, 100000}) {
    std::size_t parts = 0;
    std::set<std::uint32_t> indices;
    std::size_t others = 0;
    for (const ListedRequest& listed : all_parts(bytes_max, &parts)) {
      EXPECT_EQ(listed.decided, listed.transactions) << "of the whole request";
      for (const auto& [index, outcome] : outcomes(listed)) {
        EXPECT_EQ(outcome, Outcome::committed);
        if (listed.number == 3) {
          EXPECT_TRUE(indices.insert(index).second) << index;
        } else {
          ++others;
        }
      }
    }
    EXPECT_EQ(indices.size(), kTransactions) << bytes_max;
    EXPECT_EQ(others, 1u);
    if (bytes_max == 1) {
      EXPECT_EQ(parts, kTransactions + 1) << "one slice in each";
    }
    if (bytes_max == 100000) {
      EXPECT_EQ(parts, 1u);
    }
  }
}

// The position may name anything.
TEST_F(DatabaseAttachLists, AListBeginsWhereItIsTold) {
  run(add("a", 1), session, 3);
  run(add("a", 1), session, 9);
  attach(session);
  EXPECT_EQ(list(session, 1, {4, 0}).requests.size(), 1u);
  EXPECT_EQ(list(session, 1, {4, 77}).requests.front().number, 9u);
  EXPECT_EQ(outcomes(list(session, 1, {4, 77}).requests.front()).size(), 1u) << "77 results of another request";
  EXPECT_TRUE(outcomes(list(session, 1, {9, 1}).requests.front()).empty());
  EXPECT_TRUE(outcomes(list(session, 1, {9, ~std::uint64_t{0}}).requests.front()).empty());
  EXPECT_TRUE(list(session, 1, {~std::uint64_t{0}, 0}).requests.empty());
}

class DatabaseAttachRights : public AccessFixture {
 protected:
  void SetUp() override {
    AccessFixture::SetUp();
    database->open_session(client_of("alice"), login_of("alice", "t1"), 0,
                           [&](Result<SessionId> opened, DurationUs) { session_ = *opened; });
    settle();
  }
  Status attach_as(const std::string& name, const std::string& token_id) {
    Status status(StatusCode::internal, "no answer");
    database->attach_session(client_of(name), login_of(name, token_id),
                             {.session = session_, .bytes_max = std::uint64_t{4} << 20},
                             [&](const Result<SessionList>& list) { status = list.status(); });
    settle();
    return status;
  }
  SessionId session_;
};

TEST_F(DatabaseAttachRights, OnlyTheUserWhoOpenedItAttaches) {
  const Status root = attach_as("root", "t0");
  EXPECT_EQ(root.code(), StatusCode::permission_denied) << "not an administrator either";
  EXPECT_EQ(root.reason(), ErrorReason::right_missing);
  change(token("t2", "alice"));
  EXPECT_TRUE(attach_as("alice", "t2").ok()) << "another login of the same user";
  change(removal(Kind::remove_token, "t2"));
  EXPECT_EQ(attach_as("alice", "t2").code(), StatusCode::permission_denied);
}

TEST_F(DatabaseAttachRights, ASessionWithoutAUserIsForNoUser) {
  session_ = open_session();
  EXPECT_EQ(attach_as("alice", "t1").code(), StatusCode::permission_denied);
}

// The session counts for the client that holds it.
TEST_F(DatabaseAttach, TheSessionCountsForItsHolder) {
  const auto first = std::make_shared<Client>("ipv4:10.0.0.1:1", std::make_shared<Client>("10.0.0.1"));
  const auto second = std::make_shared<Client>("ipv4:10.0.0.2:1", std::make_shared<Client>("10.0.0.2"));
  SessionId counted;
  database->open_session(first, nullptr, 0, [&](Result<SessionId> opened, DurationUs) { counted = *opened; });
  settle();
  auto request = make(add("a", 1), counted, 1, 0);
  request->client = first;
  database->submit(std::move(request));
  settle();
  EXPECT_EQ(first->address->sessions.load(), 1u);
  const std::uint64_t bytes = first->address->session_bytes.load();
  EXPECT_GT(bytes, 0u);
  database->attach_session(second, nullptr, target_of(counted), [](const Result<SessionList>&) {});
  settle();
  EXPECT_EQ(first->address->sessions.load(), 0u);
  EXPECT_EQ(first->address->session_bytes.load(), 0u);
  EXPECT_EQ(second->address->sessions.load(), 1u);
  EXPECT_EQ(second->address->session_bytes.load(), bytes);
  database->close_session(second, nullptr, {counted, 1}, [](const Status&) {});
  settle();
  EXPECT_EQ(second->address->sessions.load(), 0u);
  EXPECT_EQ(second->address->session_bytes.load(), 0u);
}

}  // namespace
}  // namespace kilokv::server
