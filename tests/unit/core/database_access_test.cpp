// Rights in a whole database: what is refused, what a revoke ends, and what a restart keeps.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/core/access/access_record.hpp"
#include "server/core/digest.hpp"
#include "tests/unit/core/access_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::GuardKind;
using engine::OnFalse;
using engine::Outcome;
using Kind = AccessChange::Kind;
using DatabaseAccessTest = AccessFixture;

// Refuses work as a log does whose archive is required and late.
class LateLog : public MemoryLog {
 public:
  bool is_late = false;
  Status reserve(std::uint64_t bytes, LogUse use) override {
    if (is_late && use != LogUse::access_changes) {
      return Status::exhausted(ErrorReason::archive_late, {"archive", "", "", "--archive-lag-max"}, 1000000);
    }
    return MemoryLog::reserve(bytes, use);
  }
};

// It may be late for hours. What was stolen meanwhile must not stay valid.
TEST_F(DatabaseAccessTest, ARightCanBeTakenAwayWhileTheArchiveIsLate) {
  LateLog late;
  open(&late, sim.environment());
  SetUpRights();
  late.is_late = true;
  const auto refused = submit_and_settle(adding("a1"));
  ASSERT_TRUE(refused->failure);
  EXPECT_EQ(refused->failure->reason(), ErrorReason::archive_late);
  change(removal(Kind::remove_token, "t1"));
  change(user("alice", {}));
  late.is_late = false;
  EXPECT_TRUE(submit_and_settle(adding("a1"))->failure);
  database.reset();
}

TEST_F(DatabaseAccessTest, GuardsReadsAndWritesNeedTheirRights) {
  AccessChange split = role("teller", {});
  split.role.read = {{"r", "s"}};
  split.role.write = {{"w", "x"}};
  change(split);
  struct Case {
    const char* what;
    bool allowed;
    Build build;
  };
  const auto one = [](auto part) {
    return Build([part](engine::ColumnsBuilder& b) {
      b.begin();
      part(b);
      b.end();
    });
  };
  using B = engine::ColumnsBuilder;
  using engine::OpKind;
  for (const Case& c : {
           Case{"get", true, one([](B& b) { b.op(OpKind::get, b.key("r1")); })},
           {"get other", false, one([](B& b) { b.op(OpKind::get, b.key("w1")); })},
           {"put", true, one([](B& b) { b.op(OpKind::put, b.key("w1")); })},
           {"put other", false, one([](B& b) { b.op(OpKind::put, b.key("r1")); })},
           {"add", true, one([](B& b) { b.op(OpKind::add, b.key("w2")); })},
           {"add other", false, one([](B& b) { b.op(OpKind::add, b.key("r2")); })},
           {"delete", true, one([](B& b) { b.op(OpKind::del, b.key("w1")); })},
           {"delete other", false, one([](B& b) { b.op(OpKind::del, b.key("r1")); })},
           {"range get", true, one([](B& b) { b.range_op(OpKind::range_get, "r1", "s", 10); })},
           {"reverse", true, one([](B& b) { b.range_op(OpKind::range_get_reverse, "r1", "s", 10); })},
           {"reverse beyond", false, one([](B& b) { b.range_op(OpKind::range_get_reverse, "r1", "s0", 10); })},
           {"range get beyond", false, one([](B& b) { b.range_op(OpKind::range_get, "r1", "s0", 10); })},
           {"range get without end", false, one([](B& b) { b.range_op(OpKind::range_get, "r1", "", 10); })},
           {"delete range", true, one([](B& b) { b.range_op(OpKind::delete_range, "w", "x", 10); })},
           {"delete range other", false, one([](B& b) { b.range_op(OpKind::delete_range, "r", "s", 10); })},
           {"guard", true, one([](B& b) {
              b.guard(GuardKind::absent, OnFalse::fail, b.key("r9"), 0);
              b.op(OpKind::put, b.key("w1"));
            })},
           {"guard on a key to write", false, one([](B& b) {
              b.guard(GuardKind::absent, OnFalse::fail, b.key("w9"), 0);
              b.op(OpKind::put, b.key("w1"));
            })},
           {"guard on two keys", false, one([](B& b) {
              b.guard(GuardKind::less, OnFalse::fail, b.key("r1"), 0, b.key("w1"));
              b.op(OpKind::put, b.key("w1"));
            })},
           {"range guard", true, one([](B& b) {
              b.range_guard(GuardKind::range_unchanged, OnFalse::fail, "r", "s", kVersionMax);
              b.op(OpKind::put, b.key("w1"));
            })},
           {"range guard beyond", false, one([](B& b) {
              b.range_guard(GuardKind::range_unchanged, OnFalse::fail, "r", "t", kVersionMax);
              b.op(OpKind::put, b.key("w1"));
            })},
           {"else that does not run", false, one([](B& b) {
              b.guard(GuardKind::absent, OnFalse::fail, b.key("r9"), 0);
              b.op(OpKind::put, b.key("w1"));
              b.begin_else();
              b.op(OpKind::put, b.key("r1"));
            })},
       }) {
    const auto sink = alice(c.build);
    settle();
    EXPECT_EQ(denied(sink), !c.allowed) << c.what;
    EXPECT_EQ(sink->done, c.allowed) << c.what;
    EXPECT_TRUE(!denied(sink) || sink->failure->not_run()) << c.what;
  }
}

TEST_F(DatabaseAccessTest, ALoginThatDoesNotCountRunsNothing) {
  for (const auto& [name, id] : {std::pair{"alice", "t0"}, {"alice", ""}, {"carol", "t1"}}) {
    const auto sink = submit_as(name, id, adding("a1"));
    settle();
    EXPECT_TRUE(denied(sink)) << name << ' ' << id;
  }
}

// Also on a stream that was opened before.
TEST_F(DatabaseAccessTest, AnExpiredTokenRunsNothingNew) {
  const auto login = std::make_shared<const Login>(
      Login{.user = "alice", .token = "t1", .certificate = {}, .expires_us = sim.clock.wall_us() + 1000});
  const auto submit_with = [&] {
    auto request = database->acquire_request();
    engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
    adding("a1")(builder);
    auto sink = std::make_shared<RecordingSink>();
    request->sink = sink;
    request->client = client_of("alice");
    request->login = login;
    database->submit(std::move(request));
    settle();
    return sink;
  };
  EXPECT_TRUE(submit_with()->done);
  sim.clock.advance(1000);
  const auto late = submit_with();
  ASSERT_TRUE(late->failure);
  EXPECT_EQ(late->failure->code(), StatusCode::unauthenticated);
  EXPECT_TRUE(late->failure->not_run());
}

// The stamps of batches do not go back with the clock, and a restart keeps them.
TEST_F(DatabaseAccessTest, AClockThatGoesBackMakesNoTokenValidAgain) {
  const TimeUs expires_us = sim.clock.wall_us() + 1000000;
  const auto login =
      std::make_shared<const Login>(Login{.user = "alice", .token = "t1", .certificate = {}, .expires_us = expires_us});
  const auto submit = [&] {
    const auto sink = submit_with(login, adding("a1"));
    settle();
    return sink;
  };
  EXPECT_TRUE(submit()->done);
  sim.clock.advance(2000000);
  const auto of_other = submit_as("root", "t0", adding("b1"));
  settle();
  EXPECT_TRUE(of_other->done) << "a batch has seen the token expire";
  sim.clock.jump_wall(-3600 * DurationUs{1000000});
  for (int round = 0; round < 2; ++round) {
    EXPECT_GE(database->time_of_day(), expires_us);
    const auto late = submit();
    ASSERT_TRUE(late->failure) << round;
    EXPECT_EQ(late->failure->code(), StatusCode::unauthenticated);
    reopen();
  }
}

// Otherwise a crash could undo the grant, and nothing would tell why the user has seen the keys.
TEST_F(DatabaseAccessTest, APageWaitsUntilTheGrantThatItNeedsIsDurable) {
  run(adding("z1"));
  sim.scheduler.hold("log");
  const auto grant = post_change(role("teller", {{"a", "c"}, {"z", ""}}));
  ScanRequest request{"z", "", 0, {}, false};
  request.client = client_of("alice");
  request.login = login_of("alice", "t1");
  std::optional<Status> answered;
  database->scan(request, [&](const Result<ScanPage>& page) { answered = page.status(); });
  settle();
  EXPECT_FALSE(*grant || answered);
  sim.scheduler.hold("");
  settle();
  ASSERT_TRUE(*grant && answered);
  EXPECT_TRUE(answered->ok()) << answered->message();
}

// As the stamps of batches, tokens do not follow a clock that is wrong by years.
TEST_F(DatabaseAccessTest, AClockThatJumpsFarAheadExpiresNoToken) {
  const TimeUs before = database->time_of_day();
  sim.clock.jump_wall(options.clock_jump_us_max + 1000000);
  EXPECT_LT(database->time_of_day(), before + 1000000);
  EXPECT_TRUE(submit_and_settle(adding("a1"))->done);
  sim.clock.advance(3600 * DurationUs{1000000});
  EXPECT_GE(database->time_of_day(), before + 3600 * DurationUs{1000000}) << "time goes on";
  EXPECT_LT(database->time_of_day(), before + 3601 * DurationUs{1000000});
  sim.clock.jump_wall(-options.clock_jump_us_max);
  EXPECT_LT(database->time_of_day(), before + 3602 * DurationUs{1000000}) << "it is followed when it is right again";
}

// A refusal such as NOT_FOUND may show a change that a crash can still take back.
TEST_F(DatabaseAccessTest, WhatARefusalShowsOfAChangeIsDurable) {
  sim.scheduler.hold("log");
  const auto first = post_change(removal(Kind::remove_token, "t1"));
  settle();
  const auto second = post_change(removal(Kind::remove_token, "t1"));
  settle();
  EXPECT_FALSE(database->access().latest()->tokens().contains("t1"));
  EXPECT_TRUE(database->durable_access()->tokens().contains("t1")) << "what is shown is durable";
  EXPECT_FALSE(*first);
  EXPECT_FALSE(*second);
  sim.scheduler.hold("");
  settle();
  ASSERT_TRUE(*first && *second);
  EXPECT_TRUE((*first)->ok());
  EXPECT_EQ((*second)->code(), StatusCode::not_found);
  EXPECT_FALSE(database->durable_access()->tokens().contains("t1"));
}

// The reserve that new data leaves free is for this, too.
TEST_F(DatabaseAccessTest, ARightCanBeTakenAwayWhenTheDiskIsFull) {
  log.set_reserve_limit(0);
  change(role("teller", {{"a", "b"}}));
  EXPECT_TRUE(denied(submit_and_settle(adding("b1"))));
  EXPECT_EQ(submit_and_settle(adding("a1"))->failure->reason(), ErrorReason::disk_full);
  EXPECT_EQ(log.reserved(), 0u);
}

TEST_F(DatabaseAccessTest, AScanNeedsItsRightWhenItIsRead) {
  const auto scan = [this] {
    std::optional<Status> answer;
    ScanRequest request{.from = "a", .to = "c", .boundary = {}};
    request.client = client_of("alice");
    request.login = std::make_shared<const Login>(Login{.user = "alice", .token = "t1", .certificate = {}});
    database->scan(std::move(request), [&](const Result<ScanPage>& page) { answer = page.status(); });
    settle();
    return answer->code();
  };
  EXPECT_EQ(scan(), StatusCode::ok);
  change(role("teller", {{"a", "b"}}));
  EXPECT_EQ(scan(), StatusCode::permission_denied);
  change(removal(Kind::remove_token, "t1"));
  EXPECT_EQ(scan(), StatusCode::permission_denied);
}

// Every kind of change that takes the right away.
TEST_F(DatabaseAccessTest, WhatWasParkedBeforeARevokeDoesNotRun) {
  for (const AccessChange& revoke :
       {role("teller", {{"b", "c"}}), removal(Kind::remove_role, "teller"), user("alice", {}),
        removal(Kind::remove_token, "t1"), removal(Kind::remove_user, "alice")}) {
    change(role("teller", {{"a", "c"}}));
    change(user("alice", {"teller"}));
    change(token("t1", "alice"));
    const auto waits = alice(waiting_for("a1")), of_root = submit_as("root", "t0", waiting_for("a2"));
    settle();
    ASSERT_FALSE(waits->ended());
    change(revoke);
    EXPECT_TRUE(denied(waits)) << static_cast<int>(revoke.kind);
    EXPECT_FALSE(of_root->ended());
    EXPECT_EQ(database->status().parked, 1u);
    const auto deposit = submit_as("root", "t0", [](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::put, b.key("a1"), engine::Operand::integer, 100);
      b.op(engine::OpKind::put, b.key("a2"), engine::Operand::integer, 10);
      b.end();
    });
    settle();
    EXPECT_TRUE(deposit->done);
    EXPECT_EQ(of_root->outcome(0), Outcome::committed);
    const auto read = submit_as("root", "t0", [](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::get, b.key("a1"));
      b.end();
    });
    settle();
    EXPECT_EQ(read->at(0).reads.at(0).integer, 100);
    static_cast<void>(submit_as("root", "t0", [](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::del, b.key("a1"));
      b.op(engine::OpKind::del, b.key("a2"));
      b.end();
    }));
    settle();
  }
}

TEST_F(DatabaseAccessTest, WhatNeedsNothingOfTheRevokedStaysParked) {
  const auto waits = alice(waiting_for("b1"));
  settle();
  change(role("teller", {{"b", "c"}}));
  EXPECT_FALSE(waits->ended());
  const auto deposit = submit_as("root", "t0", [](engine::ColumnsBuilder& b) {
    b.begin();
    b.op(engine::OpKind::put, b.key("b1"), engine::Operand::integer, 10);
    b.end();
  });
  settle();
  EXPECT_EQ(waits->outcome(0), Outcome::committed);
}

// The search for them takes many steps. What it has not found yet is checked before it runs.
TEST_F(DatabaseAccessTest, AmongManyParkedOnesNoneRunsThatARevokeDenies) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    sim.scheduler.reseed(seed);
    change(role("teller", {{"a", "c"}}));
    std::vector<std::shared_ptr<RecordingSink>> others;
    for (int i = 0; i < 4000; ++i) {
      others.push_back(submit_as("root", "t0", waiting_for("never")));
    }
    settle();
    const std::string key = "a" + std::to_string(seed);
    const auto hers = alice(waiting_for(key));
    settle();
    ASSERT_FALSE(hers->ended());
    bool answered = false;
    database->change_access(
        nullptr,
        [](const AccessTable&) -> Result<AccessChange> {
          return role("teller", {{"b", "c"}});
        },
        [&](const Result<BatchNumber>& batch) { answered = batch.ok(); });
    std::shared_ptr<RecordingSink> writer;
    for (std::uint64_t step = 0; step < 200; ++step) {
      sim.scheduler.run_one();
      if (step == seed) writer = submit(add(key, 10));
    }
    settle();
    EXPECT_TRUE(answered);
    EXPECT_TRUE(writer->done);
    EXPECT_TRUE(denied(hers)) << seed;
    EXPECT_EQ(integer(key), 10) << "it did not run";
    CancelTarget target;
    target.filter = ParkedFilter{};
    database->cancel({}, target, [](const Result<std::uint64_t>&) {});
    settle();
    for (const auto& other : others) ASSERT_TRUE(other->done) << "of others nothing was denied";
    EXPECT_EQ(database->status().parked, 0u);
    EXPECT_EQ(log.reserved(), 0u);
  }
}

// The search looks at a bounded number of bytes in each step.
TEST_F(DatabaseAccessTest, ARevokeFindsAllThatIsParkedAlsoIfItIsLarge) {
  std::vector<std::shared_ptr<RecordingSink>> parked;
  for (int i = 0; i < 30; ++i) {
    parked.push_back(alice([](engine::ColumnsBuilder& b) {
      b.begin(0, 60000000);
      b.guard(engine::GuardKind::bytes_equal, engine::OnFalse::wait, b.key("a1"), b.value(std::string(64 << 10, 'x')));
      b.op(engine::OpKind::get, b.key("a1"));
      b.end();
    }));
  }
  settle();
  ASSERT_EQ(database->status().parked, 30u);
  change(role("teller", {{"b", "c"}}));
  for (const auto& sink : parked) EXPECT_TRUE(denied(sink));
  EXPECT_EQ(database->status().parked, 0u);
}

// The first transaction of a request is parked, and the revoke covers its key alone. The rest still waits in the queue,
// and is allowed. The search for parked transactions takes several steps, because many others are parked before, and
// the batches between these steps look at the rest.
TEST_F(DatabaseAccessTest, APartThatIsParkedIsFoundWhileTheRestIsQueued) {
  options.batch_max_transactions = 2;
  int parked_before = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    sim.scheduler.reseed(seed);
    reopen();
    change(role("teller", {{"a", "c"}}));
    std::vector<std::shared_ptr<RecordingSink>> others;
    for (int i = 0; i < 4000; ++i) others.push_back(submit_as("root", "t0", waiting_for("never")));
    settle();
    const std::string key = "a" + std::to_string(seed);
    const auto hers = alice([&key](engine::ColumnsBuilder& b) {
      waiting_for(key)(b);
      for (int i = 0; i < 200; ++i) adding("b1")(b);
    });
    const std::uint64_t parked = database->status().parked;
    for (std::uint64_t step = 0; step < 400 && database->status().parked == parked; ++step) sim.scheduler.run_one();
    const auto changed = post_change(role("teller", {{"b", "c"}}));
    std::shared_ptr<RecordingSink> writer;
    for (int step = 0; step < 2000 && !*changed; ++step) sim.scheduler.run_one();
    ASSERT_TRUE(*changed && (*changed)->ok());
    if (database->status().queued_transactions > 0 || hers->ended()) ++parked_before;
    writer = submit(add(key, 10));
    settle();
    EXPECT_TRUE(writer->done);
    EXPECT_TRUE(denied(hers)) << seed;
    EXPECT_EQ(integer(key), 10) << "it ran after the revoke was answered";
    ASSERT_FALSE(fatal);
  }
  EXPECT_GT(parked_before, 8) << "too few requests had a part in the queue";
}

// The executor makes the change before it takes what is queued.
TEST_F(DatabaseAccessTest, WhatIsQueuedWhenARevokeComesDoesNotRun) {
  const auto queued = alice(adding("a1"));
  const Status status = begin_change(removal(Kind::remove_token, "t1"));
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(denied(queued));
  const auto later = alice(adding("a1"));
  settle();
  EXPECT_TRUE(denied(later));
}

// The name of a certificate is the same before and after, but what was queued before was taken away.
TEST_F(DatabaseAccessTest, ACertificateNameThatIsGivenAgainIsAnotherLogin) {
  AccessChange with_name = user("alice", {"teller"});
  with_name.user.certificates = {"alice.example"};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    sim.scheduler.reseed(seed);
    change(with_name);
    const CertificateHolder* const holder = database->access().latest()->holder_of("alice.example");
    ASSERT_NE(holder, nullptr);
    const auto login = std::make_shared<const Login>(
        Login{.user = "alice", .token = {}, .certificate = "alice.example", .certificate_since = holder->since});
    change(user("carol", {}));
    change(with_name);
    const auto before = submit_with(login, adding("a1"));
    settle();
    EXPECT_EQ(before->outcome(0), Outcome::committed) << "a change that leaves the name takes nothing away";

    const auto queued = submit_with(login, adding("a1"));
    const auto taken = post_change(seed % 2 == 0 ? user("alice", {"teller"}) : removal(Kind::remove_user, "alice"));
    const auto given = post_change(with_name);
    settle();
    ASSERT_TRUE(*taken && (*taken)->ok() && *given && (*given)->ok());
    EXPECT_TRUE(denied(queued)) << seed;
    const auto later = submit_with(login, adding("a1"));
    settle();
    EXPECT_TRUE(denied(later)) << seed;
  }
}

// A request of several batches, of which the first transaction is parked and may run, and the rest is denied. It ends
// once, in whatever order the workers run, and its retry after the right was given back applies what is left once.
TEST_F(DatabaseAccessTest, ARequestOfWhichTheRestIsDeniedEndsOnce) {
  options.batch_max_transactions = 2;
  int ended_with_some = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    sim.scheduler.reseed(seed);
    reopen();
    SessionId session;
    database->open_session(std::make_shared<Client>("user:alice"), nullptr, 0,
                           [&](Result<SessionId> opened, DurationUs) { session = *opened; });
    static_cast<void>(submit_as("root", "t0", [](engine::ColumnsBuilder& b) {
      b.begin();
      for (const char* key : {"a1", "b1"}) b.op(engine::OpKind::put, b.key(key), engine::Operand::integer, 0);
      b.end();
    }));
    settle();
    const Build build = [](engine::ColumnsBuilder& b) {
      waiting_for("b1")(b);
      for (int i = 0; i < 15; ++i) adding("a1")(b);
    };
    const auto request = submit_as("alice", "t1", build, session, 1);
    std::optional<Status> changed;
    const auto run_some = [this](std::uint64_t steps) {
      while (steps > 0 && sim.scheduler.run_one()) --steps;
    };
    run_some(seed % 20);  // the deposit comes at some moment of its batches, and the change at a later one
    const auto deposit = submit_as("root", "t0", [](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::add, b.key("b1"), engine::Operand::integer, 10);
      b.end();
    });
    run_some(seed / 20 % 10);
    database->change_access(
        nullptr,
        [](const AccessTable&) -> Result<AccessChange> {
          return role("teller", {{"b", "c"}});
        },
        [&changed](const Result<BatchNumber>& batch) { changed = batch.status(); });
    settle();
    ASSERT_TRUE(changed && changed->ok() && deposit->done) << seed;
    ASSERT_TRUE(request->ended()) << seed;
    ASSERT_TRUE(request->done || denied(request)) << seed << request->failure->message();
    if (!request->answers.empty() && denied(request)) ++ended_with_some;
    change(role("teller", {{"a", "c"}}));
    const auto again = submit_as("alice", "t1", build, session, 1);
    settle();
    ASSERT_TRUE(again->done) << seed;
    EXPECT_EQ(again->answers.size(), 16u);
    ASSERT_FALSE(fatal) << fatal->message();
    EXPECT_EQ(integer("a1"), 15) << seed;
    EXPECT_EQ(integer("b1"), 0) << seed;
    const DatabaseStatus status = database->status();
    EXPECT_EQ(status.parked + status.queued_transactions + status.queued_bytes, 0u) << seed;
  }
  EXPECT_GT(ended_with_some, 20) << "too few requests were denied in the middle";
}

// The table is full, so the batch runs again in parts. A revoke comes between the parts.
TEST_F(DatabaseAccessTest, TheRestOfARefusedBatchNeedsItsRightsToo) {
  table_records_max = 64;
  int denied_parts = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    sim.scheduler.reseed(seed);
    database.reset();
    log = MemoryLog();
    open();
    SetUpRights();
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    for (int i = 0; i < 40; ++i) {
      sinks.push_back(alice([i](engine::ColumnsBuilder& b) {
        b.begin();
        for (int j = 0; j < 4; ++j) {
          b.op(engine::OpKind::add, b.key("a" + std::to_string(i) + "/" + std::to_string(j)), engine::Operand::integer,
               1);
        }
        b.end();
      }));
    }
    std::optional<Status> changed;
    std::vector<bool> done_before;
    for (std::uint64_t steps = seed % 30; steps > 0 && sim.scheduler.run_one();) --steps;
    database->change_access(
        nullptr,
        [](const AccessTable&) -> Result<AccessChange> {
          return role("teller", {{"b", "c"}});
        },
        [&](const Result<BatchNumber>& batch) {
          changed = batch.status();
          for (const auto& sink : sinks) done_before.push_back(sink->ended());
        });
    settle();
    ASSERT_TRUE(changed && changed->ok()) << seed;
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      ASSERT_TRUE(sinks[i]->ended());
      EXPECT_TRUE(done_before[i] || !sinks[i]->done) << "it ran after the revoke was answered";
      denied_parts += denied(sinks[i]);
    }
  }
  EXPECT_GT(denied_parts, 20);
}

// First the table is in the log alone, then in a checkpoint alone, then in a checkpoint and in the log after it.
TEST_F(DatabaseAccessTest, ARestartKeepsTheTable) {
  const auto write_checkpoint = [this] {
    const BatchNumber before = log.checkpoint();
    sim.scheduler.run_for(2 * options.checkpoint_interval_us);
    settle();
    EXPECT_GT(log.checkpoint(), before);
  };
  for (int round = 0; round < 3; ++round) {
    if (round == 1) {
      change(user("carol", {"teller"}));
      write_checkpoint();
    }
    if (round == 2) change(user("dora", {"teller"}));
    reopen();
    const auto allowed = alice(adding("a1")), other = alice(adding("z1"));
    settle();
    EXPECT_TRUE(allowed->done);
    EXPECT_TRUE(denied(other));
    EXPECT_EQ(database->access().latest()->users().contains("carol"), round >= 1);
    EXPECT_EQ(database->access().latest()->users().contains("dora"), round >= 2);
  }
}

TEST_F(DatabaseAccessTest, ARefusedChangeChangesNothing) {
  const std::string before = encode_table(*database->access().latest());
  EXPECT_EQ(begin_change(removal(Kind::remove_user, "nobody")).code(), StatusCode::not_found);
  EXPECT_EQ(begin_change(removal(Kind::remove_user, "root")).code(), StatusCode::failed_precondition);
  EXPECT_EQ(encode_table(*database->access().latest()), before);
  reopen();
  EXPECT_EQ(encode_table(*database->access().latest()), before);
}

TEST_F(DatabaseAccessTest, ASessionIsForItsUserAlone) {
  SessionId session, without;
  const auto open = [this](const std::shared_ptr<Client>& client, SessionId* id) {
    database->open_session(client, nullptr, 1000 * 1000000LL,
                           [id](Result<SessionId> opened, DurationUs) { *id = *opened; });
    settle();
  };
  open(client_of("alice"), &session);
  open(std::make_shared<Client>("ipv4:127.0.0.1:1"), &without);
  std::uint64_t number = 0;
  // First the session is in memory, then it comes from the log, then from a checkpoint.
  for (int round = 0; round < 3; ++round) {
    if (round == 2) {
      sim.scheduler.run_for(2 * options.checkpoint_interval_us);
      settle();
    }
    if (round > 0) reopen();
    const auto own = submit_as("alice", "t1", adding("a1"), session, ++number);
    // Nobody else can acknowledge, or upload and use what is uploaded.
    const auto of_other = submit_as("root", "t0", adding("a1"), session, number + 1, UINT64_MAX - 1);
    const auto of_nobody = submit_as("root", "t0", adding("a1"), without, 1);
    settle();
    EXPECT_TRUE(own->done) << round;
    const auto retry = submit_as("alice", "t1", adding("a1"), session, number);
    settle();
    EXPECT_TRUE(retry->done) << "its results are kept";
    EXPECT_EQ(upload_as("root", session, number + 2, UINT64_MAX - 1).code(), StatusCode::permission_denied);
    EXPECT_TRUE(upload_as("alice", session, ++number, 0).ok());
    EXPECT_TRUE(denied(submit_as("root", "t0", adding("a1"), session, number, 0, 2)));
    const auto uploaded = submit_as("alice", "t1", adding("a1"), session, number, 0, 1);
    settle();
    EXPECT_TRUE(uploaded->done) << "the upload is still there";
    EXPECT_TRUE(denied(of_other)) << round;
    EXPECT_TRUE(denied(of_nobody)) << round;
    EXPECT_EQ(database->keep_alive(client_of("root"), session).code(), StatusCode::permission_denied);
    EXPECT_EQ(database->check_session(client_of("root"), session).code(), StatusCode::permission_denied);
    EXPECT_TRUE(database->keep_alive(client_of("alice"), session).ok());
    std::optional<Status> closed;
    database->close_session(client_of("root"), nullptr, session, [&](const Status& status) { closed = status; });
    settle();
    ASSERT_TRUE(closed);
    EXPECT_EQ(closed->code(), StatusCode::permission_denied);
  }
}

TEST_F(DatabaseAccessTest, TheSessionsOfARemovedUserEnd) {
  SessionId session;
  database->open_session(std::make_shared<Client>("user:alice"), nullptr, 0,
                         [&](Result<SessionId> opened, DurationUs) { session = *opened; });
  settle();
  change(removal(Kind::remove_user, "alice"));
  EXPECT_EQ(database->status().sessions, 0u);
  change(user("alice", {"teller"}));
  change(token("t5", "alice"));
  const auto again = submit_as("alice", "t5", adding("a1"), session, 1);
  settle();
  ASSERT_TRUE(again->failure);
  EXPECT_EQ(again->failure->reason(), ErrorReason::session_unknown);
}

// Runs something when somebody asks for the time.
class HookedClock : public Clock {
 public:
  explicit HookedClock(const Clock* clock) : clock_(clock) {}
  TimeUs wall_us() const override {
    if (const auto hook = std::exchange(at_wall, nullptr)) hook();
    return clock_->wall_us();
  }
  TimeUs monotonic_us() const override { return clock_->monotonic_us(); }
  TimeUs boot_us() const override { return clock_->boot_us(); }

  mutable std::function<void()> at_wall;

 private:
  const Clock* const clock_;
};

// A revoke may come, and be answered, while a retry is between the check of its rights and its session.
TEST_F(DatabaseAccessTest, ARetryShowsNothingAfterARevokeThatCameMeanwhile) {
  HookedClock clock(&sim.clock);
  Environment environment = sim.environment();
  environment.clock = &clock;
  open(&log, environment);
  for (const AccessChange& revoke : {role("teller", {{"b", "c"}}), removal(Kind::remove_token, "t1")}) {
    change(role("teller", {{"a", "c"}}));
    SessionId session;
    database->open_session(std::make_shared<Client>("user:alice"), nullptr, 0,
                           [&](Result<SessionId> opened, DurationUs) { session = *opened; });
    settle();
    const Build reading = [](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::get, b.key("a1"));
      b.end();
    };
    const auto first = submit_as("alice", "t1", reading, session, 1);
    settle();
    ASSERT_TRUE(first->done);
    const auto retry = submit_as("alice", "t1", reading, session, 1);
    EXPECT_TRUE(retry->done);
    bool revoked = false;
    clock.at_wall = [&] {
      change(revoke);
      revoked = true;
    };
    const auto late = submit_as("alice", "t1", reading, session, 1);
    EXPECT_TRUE(revoked);
    EXPECT_TRUE(denied(late)) << static_cast<int>(revoke.kind);
    EXPECT_TRUE(late->answers.empty());
  }
  database.reset();  // before its clock
}

// A log that begins with a checkpoint of an access table, and knows the table after each batch.
class FilledLog : public MemoryLog {
 public:
  explicit FilledLog(AccessTable table) : table_(std::move(table)) {
    hashes_[0] = table_.hash();
    static_cast<void>(MemoryLog::checkpoint_end({}, encode_table(table_)));
  }
  Result<RecoveredPosition> recover(RecoveryVisitor* visitor) override {
    Result<RecoveredPosition> position = MemoryLog::recover(visitor);
    if (position.ok() && position->batch == 0) position->state_hash = state_hash_with({}, hashes_[0]);
    return position;
  }
  Status append(std::span<const LogRecord> records) override {
    for (const LogRecord& record : records) {
      for (const std::string& change : record.access) table_.apply(*decode_change(change));
      const Hash128 hash = record.access.empty() ? newest() : table_.hash();
      hashes_[record.header.number] = hash;
    }
    return MemoryLog::append(records);
  }
  Status checkpoint_end(const RecoveredPosition& covers, std::string_view access_table) override {
    const Hash128& expected = hashes_.at(covers.batch);
    EXPECT_EQ(digest_of(access_table), expected) << "the table is that of batch " << covers.batch;
    if (newest() != expected) ++overtaken;
    return MemoryLog::checkpoint_end(covers, access_table);
  }

  int overtaken = 0;  // checkpoints that ended after a later change

 private:
  const Hash128& newest() const { return hashes_.rbegin()->second; }
  AccessTable table_;
  std::map<BatchNumber, Hash128> hashes_;
};

class FullAccessTableTest : public DatabaseAccessTest {
 protected:
  void SetUp() override {}
  // `tokens`: of root, which never expire.
  void fill(std::size_t tokens, const std::vector<AccessChange>& more) {
    AccessTable table;
    for (const AccessChange& one : {role("boss", {{"", ""}}, true), user("root", {"boss"}),
                                    role("teller", {{"a", "c"}}), user("alice", {"teller"})}) {
      table.apply(one);
    }
    for (std::size_t i = 0; i < tokens; ++i) table.apply(token("t0" + (i == 0 ? "" : std::to_string(i)), "root"));
    for (const AccessChange& one : more) table.apply(one);
    filled.emplace(std::move(table));
    open(&*filled, sim.environment());
  }
  void TearDown() override { database.reset(); }
  static AccessChange expiring(const std::string& id, const std::string& of, TimeUs expires_us) {
    AccessChange change = token(id, of);
    change.token.expires_us = expires_us;
    return change;
  }

  std::optional<FilledLog> filled;
};

// Changes come while a checkpoint is made, and the server is killed at any moment.
TEST_F(FullAccessTableTest, ACheckpointHasTheTableOfItsBatch) {
  options.checkpoint_interval_us = 1000;
  fill(AccessTable::kTokensMax - 2, {expiring("old", "alice", 1)});  // there is room for one more
  int changes = 0;
  for (int i = 0; i < 400; ++i) {
    static_cast<void>(submit_as("root", "t0", adding("k" + std::to_string(i % 7))));
    if (i % 3 == 0) {
      const std::string id = "n" + std::to_string(changes);
      const AccessChange wanted =
          ++changes % 3 == 0 ? removal(Kind::remove_token, "t0" + std::to_string(changes)) : token(id, "root");
      database->change_access(
          nullptr, [wanted](const AccessTable&) -> Result<AccessChange> { return wanted; },
          [](const Result<BatchNumber>&) {});
    }
    for (int step = 0; step < i % 11; ++step) sim.scheduler.run_one();
    sim.clock.advance(100000);
    if (i % 50 == 49) {
      open(&*filled, sim.environment());
      ASSERT_FALSE(HasFatalFailure()) << i;
    }
  }
  settle();
  EXPECT_FALSE(fatal);
  EXPECT_GT(filled->overtaken, 3);
  EXPECT_GT(changes, 50);
}

// What was accepted under a token may go on when the token has expired.
TEST_F(FullAccessTableTest, ATokenIsReplacedWhenNothingOfItCanBeParked) {
  options.wait_timeout_us_max = 60000000;
  const TimeUs expires_us = sim.clock.wall_us() + 1000;
  fill(AccessTable::kTokensMax - 1, {expiring("t1", "alice", expires_us)});
  const auto waits = alice(waiting_for("a1"));
  settle();
  sim.clock.advance(2000);
  EXPECT_EQ(begin_change(token("new", "root")).reason(), ErrorReason::access_full);
  EXPECT_FALSE(waits->ended());
  const auto deposit = submit_as("root", "t0", [](engine::ColumnsBuilder& b) {
    b.begin();
    b.op(engine::OpKind::put, b.key("a1"), engine::Operand::integer, 10);
    b.end();
  });
  settle();
  EXPECT_EQ(waits->outcome(0), Outcome::committed);
  sim.clock.advance(2 * options.wait_timeout_us_max);
  change(token("new", "root"));
  const Access::Table table = database->access().latest();
  EXPECT_EQ(table->tokens().size(), AccessTable::kTokensMax);
  EXPECT_FALSE(table->tokens().contains("t1"));
  EXPECT_TRUE(table->tokens().contains("new"));
  open(&*filled, sim.environment());  // the log has both changes
  EXPECT_TRUE(database->access().latest()->tokens().contains("new"));
}

}  // namespace
}  // namespace kilokv::server
