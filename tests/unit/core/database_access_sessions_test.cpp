// Sessions of users: what becomes of them, and of what is in flight in them, when their user is removed; and commits
// with uploaded read sets, whose keys need rights.
#include <string>

#include "tests/unit/core/access_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

class DatabaseAccessSessions : public AccessFixture {
 protected:
  void SetUp() override {
    AccessFixture::SetUp();
    session_ = open_for_alice();
  }

  SessionId open_for_alice() {
    SessionId session;
    database->open_session(client_of("alice"), login_of("alice", "t1"), 0, [&](Result<SessionId> opened, DurationUs) {
      session = opened.ok() ? *opened : SessionId();
    });
    settle();
    return session;
  }
  std::shared_ptr<RecordingSink> in_session(const Build& build, std::uint64_t number = 1,
                                            const std::string& token_id = "t1") {
    return submit_as("alice", token_id, build, session_, number);
  }
  void create_alice(const std::string& token_id) {
    change(user("alice", {"teller"}));
    change(token(token_id, "alice"));
  }

  // Nothing of the session counts any more: not for the server, and not for its user.
  void expect_nothing_left() {
    const DatabaseStatus status = database->status();
    EXPECT_EQ(status.sessions + status.parked + status.queued_transactions + status.queued_bytes + status.uploads, 0u);
    for (const MemoryOwner& owner : status.memory) {
      if (owner.name == "sessions" || owner.name == "parked" || owner.name == "uploads") {
        EXPECT_EQ(owner.bytes, 0u) << owner.name;
      }
    }
    const Client& alice = *client_of("alice");
    for (const Held* held : {&alice.sessions, &alice.session_bytes, &alice.queued_transactions, &alice.queued_bytes,
                             &alice.waiting, &alice.parked_bytes, &alice.upload_bytes}) {
      EXPECT_EQ(held->load(), 0u);
    }
  }
  // A user with the same name, who is created later, has nothing of the session, also not after a restart.
  void expect_closed_for_the_next_alice() {
    create_alice("t5");
    for (const bool restarted : {false, true}) {
      if (restarted) reopen();
      const auto request = in_session(adding("a1"), 1, "t5");
      settle();
      ASSERT_TRUE(request->failure);
      EXPECT_EQ(request->failure->reason(), ErrorReason::session_unknown) << request->failure->message();
      EXPECT_EQ(upload_as("alice", session_, 2, 0).code(), StatusCode::failed_precondition);
      EXPECT_EQ(database->keep_alive(client_of("alice"), session_).code(), StatusCode::failed_precondition);
      EXPECT_EQ(database->status().sessions, 0u);
    }
  }

  // A commit with one uploaded key.
  std::shared_ptr<RecordingSink> commit(std::uint64_t number, const Build& build, std::uint64_t uploaded_keys = 1) {
    auto sink = submit_as("alice", "t1", build, session_, number, 0, uploaded_keys);
    settle();
    return sink;
  }
  static StatusCode code(const std::shared_ptr<RecordingSink>& sink) {
    return sink->failure ? sink->failure->code() : StatusCode::ok;
  }

  SessionId session_;
};

TEST_F(DatabaseAccessSessions, WhatIsQueuedWhenTheUserIsRemovedDoesNotRun) {
  const auto queued = in_session(adding("a1")), joined = in_session(adding("a1"));
  EXPECT_TRUE(upload_as("alice", session_, 2, 0).ok());
  change(removal(Kind::remove_user, "alice"));
  for (const auto& sink : {queued, joined}) {
    EXPECT_TRUE(denied(sink));
    EXPECT_TRUE(sink->failure->not_run());
  }
  expect_nothing_left();
  expect_closed_for_the_next_alice();
  EXPECT_EQ(integer("a1"), 0);
}

TEST_F(DatabaseAccessSessions, WhatHasRunWhenTheUserIsRemovedIsAnsweredAndNotStored) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    sim.scheduler.reseed(seed);
    const auto request = in_session(adding("a1"));
    const BatchNumber before = database->status().executed_batch;
    while (database->status().executed_batch == before) ASSERT_TRUE(sim.scheduler.run_one());
    ASSERT_FALSE(request->ended());
    change(removal(Kind::remove_user, "alice"));
    ASSERT_TRUE(request->done) << seed;
    EXPECT_EQ(request->outcome(0), Outcome::committed);
    EXPECT_EQ(integer("a1"), static_cast<std::int64_t>(seed));
    expect_nothing_left();
    create_alice("t1");
    session_ = open_for_alice();
  }
  change(removal(Kind::remove_user, "alice"));
  expect_closed_for_the_next_alice();
}

TEST_F(DatabaseAccessSessions, WhatIsParkedWhenTheUserIsRemovedDoesNotRun) {
  const auto alone = in_session(waiting_for("a1"), 1);
  const auto with_other = in_session(both(adding("b1"), waiting_for("a1")), 2);
  settle();
  ASSERT_FALSE(alone->ended() || with_other->ended());
  EXPECT_EQ(with_other->outcome(0), Outcome::committed);
  change(removal(Kind::remove_user, "alice"));
  EXPECT_TRUE(denied(alone));
  EXPECT_TRUE(alone->failure->not_run());
  EXPECT_TRUE(denied(with_other));
  EXPECT_FALSE(with_other->failure->not_run()) << "a part of it has run";
  expect_nothing_left();
  run(add("a1", 100));
  expect_closed_for_the_next_alice();
  EXPECT_EQ(integer("a1"), 100);
  EXPECT_EQ(integer("b1"), 1);
}

// Whatever the request does at the moment of the removal: it ends once, and nothing of it is left.
TEST_F(DatabaseAccessSessions, ARemovalMayComeAtAnyMoment) {
  options.batch_max_transactions = 2;
  reopen();
  int done = 0, denied_in_part = 0, denied_as_a_whole = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    sim.scheduler.reseed(seed);
    session_ = open_for_alice();
    static_cast<void>(run([](engine::ColumnsBuilder& b) {
      b.begin();
      for (const char* key : {"a1", "b1"}) b.op(engine::OpKind::put, b.key(key), engine::Operand::integer, 0);
      b.end();
    }));
    const auto request = in_session([](engine::ColumnsBuilder& b) {
      waiting_for("b1")(b);
      for (int i = 0; i < 7; ++i) adding("a1")(b);
    });
    static_cast<void>(submit(add("b1", 10)));
    for (std::uint64_t steps = seed % 25; steps > 0 && sim.scheduler.run_one();) --steps;
    change(removal(Kind::remove_user, "alice"));
    ASSERT_TRUE(request->ended()) << seed;
    ASSERT_TRUE(request->done || denied(request)) << seed << request->failure->message();
    const auto answers = static_cast<std::int64_t>(request->answers.size());
    EXPECT_EQ(!request->done && request->failure->not_run(), answers == 0) << seed;
    ++(request->done ? done : answers > 0 ? denied_in_part : denied_as_a_whole);
    const bool withdrawn = request->outcome(0) == Outcome::committed;
    EXPECT_EQ(integer("a1"), answers - withdrawn) << seed;
    EXPECT_EQ(integer("b1"), withdrawn ? 0 : 10) << seed;
    expect_nothing_left();
    ASSERT_FALSE(fatal) << fatal->message();
    create_alice("t1");
  }
  EXPECT_GT(std::min({done, denied_in_part, denied_as_a_whole}), 10) << done << ' ' << denied_in_part;
}

// The user stays, and has another token.
TEST_F(DatabaseAccessSessions, ALoginThatWasTakenAwayOpensAndClosesNothing) {
  change(token("t2", "alice"));
  change(removal(Kind::remove_token, "t1"));
  const std::uint64_t before = database->status().sessions;
  std::optional<Status> opened, closed;
  const auto try_both = [&](const std::string& token_id) {
    opened = closed = {};
    const auto login = login_of("alice", token_id);
    database->open_session(client_of("alice"), login, 0,
                           [&](const Result<SessionId>& session, DurationUs) { opened = session.status(); });
    database->close_session(client_of("alice"), login, session_, [&](const Status& status) { closed = status; });
    settle();
  };
  try_both("t1");
  ASSERT_TRUE(opened && closed);
  for (const Status& status : {*opened, *closed}) {
    EXPECT_EQ(status.code(), StatusCode::permission_denied);
    EXPECT_TRUE(status.not_run());
  }
  EXPECT_EQ(database->status().sessions, before);
  try_both("t2");
  ASSERT_TRUE(opened && closed);
  EXPECT_TRUE(opened->ok() && closed->ok());
  EXPECT_EQ(database->status().sessions, before) << "one more, and one less";
}

// The session table does not have the session before it is durable.
// The share of a user with many sessions is not empty again after a restart.
TEST_F(DatabaseAccessSessions, AfterARestartTheSessionsOfAUserCountWhenItOpensAnother) {
  for (const bool by_checkpoint : {false, true}) {
    options.sessions_max = 8;
    options.checkpoint_interval_us = by_checkpoint ? 1 : options.checkpoint_interval_us;
    reopen();
    while (open_for_alice() != SessionId()) continue;
    const std::uint64_t before = client_of("alice")->sessions.load();
    EXPECT_GT(before, 1u);
    sim.scheduler.run_for(1'000'000);
    reopen();
    clients_.clear();
    EXPECT_EQ(client_of("alice")->sessions.load(), 0u);
    EXPECT_EQ(open_for_alice(), SessionId()) << "they are as many as before";
    EXPECT_EQ(client_of("alice")->sessions.load(), before);
  }
}

TEST_F(DatabaseAccessSessions, ASessionThatIsBeingOpenedEndsWithItsUserToo) {
  int opened = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    sim.scheduler.reseed(seed);
    std::optional<Result<SessionId>> answer;
    const auto open = [&] {
      database->open_session(client_of("alice"), login_of("alice", "t1"), 0,
                             [&](Result<SessionId> session, DurationUs) { answer = std::move(session); });
    };
    const bool removed_first = seed % 4 == 0;
    if (!removed_first) open();
    for (std::uint64_t steps = seed % 11; !removed_first && steps > 0 && sim.scheduler.run_one();) --steps;
    const auto removed = post_change(removal(Kind::remove_user, "alice"));
    if (removed_first) open();
    settle();
    ASSERT_TRUE(*removed && (*removed)->ok() && answer) << seed;
    EXPECT_EQ(answer->ok(), !removed_first) << seed;
    if (answer->ok()) {
      ++opened;
      session_ = **answer;
    } else {
      ++refused;
      EXPECT_EQ(answer->status().code(), StatusCode::permission_denied);
      EXPECT_TRUE(answer->status().not_run());
    }
    expect_nothing_left();
    create_alice("t1");
    const auto request = in_session(adding("a1"));
    settle();
    ASSERT_TRUE(request->failure) << seed;
    EXPECT_EQ(request->failure->reason(), ErrorReason::session_unknown) << seed;
  }
  EXPECT_GT(std::min(opened, refused), 10);
  reopen();
  EXPECT_EQ(database->status().sessions, 0u);
}

TEST_F(DatabaseAccessSessions, ARetryBesideTheCommitInFlightJoinsIt) {
  EXPECT_TRUE(upload_as("alice", session_, 1, 0).ok());
  const auto submit_commit = [this](const Build& build, std::uint64_t uploaded_keys = 1) {
    return submit_as("alice", "t1", build, session_, 1, 0, uploaded_keys);
  };
  const auto first = submit_commit(adding("a1")), again = submit_commit(adding("a1"));
  const auto other = submit_commit(adding("a2")), more_keys = submit_commit(adding("a1"), 2);
  const auto forbidden = submit_commit(adding("z1")), without = submit_commit(adding("a1"), 0);
  settle();
  EXPECT_EQ(first->outcome(0), Outcome::committed);
  EXPECT_EQ(again->outcome(0), Outcome::committed);
  for (const auto& sink : {other, more_keys, without}) EXPECT_EQ(code(sink), StatusCode::invalid_argument);
  EXPECT_TRUE(denied(forbidden));
  EXPECT_EQ(integer("a1"), 1);
  EXPECT_EQ(integer("a2"), 0);
  EXPECT_EQ(database->status().uploads, 0u);
}

TEST_F(DatabaseAccessSessions, ACommitWhoseUploadedKeysAreForbiddenLeavesThemThere) {
  EXPECT_TRUE(upload_as("alice", session_, 1, 0, "z9").ok());
  for (int i = 0; i < 2; ++i) {
    const auto refused = commit(1, adding("a1"));
    ASSERT_TRUE(denied(refused)) << i;
    EXPECT_TRUE(refused->failure->not_run());
    EXPECT_NE(refused->failure->message().find("guards[0]"), std::string::npos) << refused->failure->message();
    EXPECT_EQ(database->status().uploads, 1u);
  }
  change(role("teller", {{"a", "c"}, {"z", ""}}));
  EXPECT_EQ(commit(1, adding("a1"))->outcome(0), Outcome::committed);
  EXPECT_EQ(database->status().uploads, 0u);
}

// The stored result may have the key, value and version of an uploaded guard.
TEST_F(DatabaseAccessSessions, AStoredResultNeedsTheRightsToTheUploadedKeys) {
  run(add("b9", 7));
  EXPECT_TRUE(upload_as("alice", session_, 1, 0, "b9").ok());
  const auto first = commit(1, adding("a1"));
  ASSERT_EQ(first->outcome(0), Outcome::guard_failed);
  EXPECT_EQ(first->at(0).guard->integer, 7);
  change(user("carol", {"teller"}));
  EXPECT_TRUE(commit(1, adding("a1"))->done) << "others have changed, and not the rights of alice";

  change(role("teller", {{"a", "b"}}));
  const auto without_keys = commit(1, adding("a1"));
  EXPECT_TRUE(without_keys->answers.empty());
  ASSERT_TRUE(without_keys->failure);
  EXPECT_EQ(without_keys->failure->code(), StatusCode::failed_precondition);
  EXPECT_TRUE(upload_as("alice", session_, 1, 0, "b9").ok());
  const auto refused = commit(1, adding("a1"));
  EXPECT_TRUE(denied(refused));
  EXPECT_TRUE(refused->answers.empty());

  change(role("teller", {{"a", "c"}}));
  for (int i = 0; i < 2; ++i) {
    const auto again = commit(1, adding("a1"));
    ASSERT_TRUE(again->done) << "the keys are there again, and after that they are known";
    EXPECT_EQ(again->at(0).guard->integer, 7);
  }
  EXPECT_EQ(database->status().uploads, 0u);
}

TEST_F(DatabaseAccessSessions, ARetryBesideACommitThatLosesItsRightsGetsNoResult) {
  EXPECT_TRUE(upload_as("alice", session_, 1, 0, "b9").ok());
  const auto first = submit_as("alice", "t1", adding("a1"), session_, 1, 0, 1);
  change(role("teller", {{"a", "b"}}));
  EXPECT_TRUE(denied(first));
  EXPECT_TRUE(first->failure->not_run());
  EXPECT_EQ(code(commit(1, adding("a1"))), StatusCode::failed_precondition) << "its keys went with it";
  EXPECT_TRUE(upload_as("alice", session_, 1, 0, "b9").ok());
  EXPECT_TRUE(denied(commit(1, adding("a1"))));
  change(removal(Kind::remove_token, "t1"));
  EXPECT_TRUE(denied(commit(1, adding("a1")))) << "not whether there are keys";
  EXPECT_TRUE(denied(commit(7, adding("a1"))));
  change(removal(Kind::remove_user, "alice"));
  EXPECT_TRUE(denied(commit(1, adding("a1"))));
  expect_nothing_left();
  EXPECT_EQ(integer("a1"), 0);
}

}  // namespace
}  // namespace kilokv::server
