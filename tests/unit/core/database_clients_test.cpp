// Several clients: nobody takes the room of others, and what is sent outside a session ends with its call.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/core/clients/client.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::OpKind;
using engine::Outcome;

class DatabaseClientsTest : public CoreFixture {
 protected:
  struct Sent {
    std::shared_ptr<RecordingSink> sink = std::make_shared<RecordingSink>();
    SubmittedRequest handle;
  };
  Sent send(const std::shared_ptr<Client>& client, const Build& build, std::optional<SessionId> session = {},
            std::uint64_t number = 0) {
    auto request = database->acquire_request();
    engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
    build(builder);
    Sent sent;
    request->identity = {session, number, 0, {}};
    request->sink = sent.sink;
    request->client = client;
    sent.handle = database->submit(std::move(request));
    return sent;
  }
  static Build adds(int count, const std::string& key) {
    return [=](engine::ColumnsBuilder& b) {
      for (int i = 0; i < count; ++i) {
        b.begin();
        b.op(OpKind::add, b.key(key), engine::Operand::integer, 1);
        b.end();
      }
    };
  }
  static Build waits(int count, const std::string& key) {
    return [=](engine::ColumnsBuilder& b) {
      for (int i = 0; i < count; ++i) {
        b.begin(0, 60000000);
        b.guard(engine::GuardKind::exists, engine::OnFalse::wait, b.key("never"), 0);
        b.op(OpKind::add, b.key(key), engine::Operand::integer, 1);
        b.end();
      }
    };
  }
  static Build reads(std::uint32_t limit, int times) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      for (int i = 0; i < times; ++i) b.range_op(OpKind::range_get, "", "", limit);
      b.end();
    };
  }
  // One transaction that waits, and whose 128 PUTs copy a value.
  static Build waits_and_copies() {
    return [](engine::ColumnsBuilder& b) {
      b.begin(0, 60000000);
      b.guard(engine::GuardKind::exists, engine::OnFalse::wait, b.key("never"), 0);
      b.op(OpKind::get, b.key("large"));
      for (int i = 0; i < 128; ++i) b.op(OpKind::put, b.key("copy"), engine::Operand::get, 0);
      b.end();
    };
  }
  static Build puts(std::size_t bytes) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(OpKind::put, b.key("large"), engine::Operand::bytes, b.value(std::string(bytes, 'x')));
      b.end();
    };
  }
  // Sends until a request is refused.
  std::vector<Sent> send_all(const std::shared_ptr<Client>& client, const Build& build) {
    std::vector<Sent> sent;
    do {
      sent.push_back(send(client, build));
      settle();
    } while (!sent.back().sink->failure && sent.size() < 1000);
    return sent;
  }
  std::pair<Status, SessionId> open_as(const std::shared_ptr<Client>& who) {
    Status status(StatusCode::internal, "no answer");
    SessionId id;
    database->open_session(who, nullptr, 0, [&](Result<SessionId> session, DurationUs) {
      status = session.status();
      if (session.ok()) id = *session;
    });
    settle();
    return {status, id};
  }
  std::shared_ptr<Client> client(const std::string& name) { return std::make_shared<Client>(name); }

  const std::shared_ptr<Client> greedy = client("greedy"), light = client("light");
};

TEST_F(DatabaseClientsTest, AGreedyClientLeavesRoomInTheQueue) {
  options.queue_transactions_max = 100;
  reopen();
  std::vector<Sent> sent;
  do sent.push_back(send(greedy, adds(1, "g")));
  while (!sent.back().sink->failure);
  const Status& refused = *sent.back().sink->failure;
  EXPECT_EQ(refused.reason(), ErrorReason::queue_full);
  EXPECT_TRUE(refused.not_run());
  EXPECT_EQ(sent.size(), 80u + 1) << "four fifths";
  const Sent mine = send(light, adds(1, "l"));
  EXPECT_FALSE(mine.sink->failure);
  settle();
  EXPECT_EQ(mine.sink->outcome(0), Outcome::committed);
  EXPECT_EQ(greedy->queued_transactions.load(), 0u);
  EXPECT_EQ(greedy->queued_bytes.load(), 0u);
  EXPECT_TRUE(send(greedy, adds(1, "g")).sink->failure == std::nullopt) << "its share is free again";
}

TEST_F(DatabaseClientsTest, AGreedyClientLeavesRoomForOthersToWait) {
  options.parked_max = 100;
  reopen();
  EXPECT_FALSE(send(greedy, waits(80, "g")).sink->failure);
  settle();
  EXPECT_EQ(send(greedy, waits(1, "g")).sink->failure->reason(), ErrorReason::parked_full);
  EXPECT_FALSE(send(light, waits(2, "l")).sink->failure);
}

TEST_F(DatabaseClientsTest, ParkedBytesAreShared) {
  options.parked_bytes_max = 100000;
  reopen();
  const Sent sent = send(greedy, waits(1000, "g"));
  settle();
  ASSERT_TRUE(sent.sink->failure);
  EXPECT_EQ(sent.sink->failure->reason(), ErrorReason::parked_full);
  EXPECT_EQ(greedy->parked_bytes.load(), 0u) << "a request that fails leaves nothing";
  const Sent fits = send(greedy, waits(50, "g"));
  settle();
  EXPECT_FALSE(fits.sink->ended());
  EXPECT_GT(greedy->parked_bytes.load(), 0u);
}

TEST_F(DatabaseClientsTest, AGreedyClientLeavesSessionsForOthers) {
  options.sessions_max = 100;
  reopen();
  const auto open = [&](const std::shared_ptr<Client>& who) {
    Status status;
    SessionId id;
    database->open_session(who, nullptr, 0, [&](Result<SessionId> session, DurationUs) {
      status = session.status();
      if (session.ok()) id = *session;
    });
    settle();
    return std::pair(status, id);
  };
  std::vector<SessionId> sessions;
  for (;;) {
    const auto [status, id] = open(greedy);
    if (!status.ok()) {
      EXPECT_EQ(status.reason(), ErrorReason::sessions_full);
      EXPECT_NE(status.message().find("this client"), std::string::npos) << status.message();
      break;
    }
    sessions.push_back(id);
  }
  EXPECT_EQ(sessions.size(), 80u);
  EXPECT_TRUE(open(light).first.ok());
  database->close_session(greedy, nullptr, sessions.front(), [](const Status&) {});
  settle();
  EXPECT_EQ(greedy->sessions.load(), 79u) << "the end of a session gives its place back";
}

TEST_F(DatabaseClientsTest, TheFirstWhoUsesASessionAfterARestartOwnsIt) {
  const SessionId session = open_session();
  reopen();
  send(greedy, adds(1, "g"), session, 1);
  EXPECT_EQ(greedy->sessions.load(), 1u);
  EXPECT_GT(greedy->session_bytes.load(), 0u);
  settle();
  send(light, adds(1, "g"), session, 2);
  settle();
  EXPECT_EQ(light->sessions.load(), 0u);
  database->close_session({}, nullptr, session, [](const Status&) {});
  settle();
  EXPECT_EQ(greedy->sessions.load(), 0u);
  EXPECT_EQ(greedy->session_bytes.load(), 0u);
}

TEST_F(DatabaseClientsTest, AGreedyClientLeavesRoomForTheUploadsOfOthers) {
  options.uploads_bytes_max = 1 << 20;
  options.session_uploads_bytes_max = 1 << 20;
  reopen();
  const auto upload = [&](const std::shared_ptr<Client>& who, const SessionId& session, std::uint64_t number,
                          std::uint64_t offset = 0) {
    const std::vector<Version> versions(100, 0);
    std::vector<std::string> keys(100, std::string(100, 'k'));
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] += std::to_string(number) + '/' + std::to_string(offset + i);
    ReadSetChunk chunk;
    chunk.identity = {session, number, 0, {}};
    chunk.offset = offset;
    chunk.keys.assign(keys.begin(), keys.end());
    chunk.versions = versions;
    chunk.client = who;
    return database->upload(chunk).status();
  };
  // In as many sessions as it likes, and in one.
  std::vector<SessionId> sessions;
  Status refused;
  while (refused.ok()) {
    sessions.push_back(open_session());
    refused = upload(greedy, sessions.back(), 1);
  }
  EXPECT_EQ(refused.reason(), ErrorReason::uploads_full);
  EXPECT_NE(refused.message().find("this client"), std::string::npos) << refused.message();
  EXPECT_EQ(upload(greedy, sessions.front(), 1, 100).reason(), ErrorReason::uploads_full);
  EXPECT_LE(greedy->upload_bytes.load(), (std::uint64_t{1} << 20) * 4 / 5);
  EXPECT_GT(greedy->upload_bytes.load(), (std::uint64_t{1} << 20) / 2);
  const SessionId mine = open_session();
  EXPECT_TRUE(upload(light, mine, 1).ok());
  EXPECT_GT(light->upload_bytes.load(), 0u);
  // A session that ends gives back what its owner holds.
  for (const SessionId& session : sessions) database->close_session({}, nullptr, session, [](const Status&) {});
  settle();
  EXPECT_EQ(greedy->upload_bytes.load(), 0u);
  EXPECT_GT(light->upload_bytes.load(), 0u);
}

TEST_F(DatabaseClientsTest, AGreedyClientLeavesScansForOthers) {
  send(light, adds(1, "a"));
  send(light, adds(1, "b"));
  settle();
  const auto scan = [&](const std::shared_ptr<Client>& who) {
    ScanRequest request;
    request.limit = 1;
    request.keep_boundary = true;
    request.client = who;
    Result<ScanPage> page = Status(StatusCode::internal, "no answer");
    database->scan(request, [&](Result<ScanPage> answer) { page = std::move(answer); });
    settle();
    return page;
  };
  std::optional<Status> refused;
  std::uint64_t kept = 0;
  while (!refused) {
    const Result<ScanPage> page = scan(greedy);
    if (page.ok()) {
      ++kept;
    } else {
      refused = page.status();
    }
  }
  EXPECT_EQ(refused->reason(), ErrorReason::scans_full);
  EXPECT_NE(refused->message().find("this client"), std::string::npos) << refused->message();
  EXPECT_EQ(greedy->boundaries.load(), kept);
  const Result<ScanPage> page = scan(light);
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(page->pairs.size(), 1u);
  EXPECT_EQ(light->boundaries.load(), 1u);
  EXPECT_EQ(greedy->scans.load(), 0u) << "of pages that are read now there are none";
}

TEST_F(DatabaseClientsTest, StoredResultsAreShared) {
  options.session_bytes_total_max = 100000;
  reopen();
  const SessionId theirs = open_session(), mine = open_session();
  std::uint64_t number = 0;
  std::optional<Status> refused;
  while (!refused) {
    refused = send(greedy, adds(10, "g"), theirs, ++number + 1).sink->failure;  // number 1 has twice the limit
    settle();
  }
  EXPECT_EQ(refused->reason(), ErrorReason::session_full);
  EXPECT_NE(refused->message().find("this client"), std::string::npos) << refused->message();
  EXPECT_FALSE(send(light, adds(10, "l"), mine, 2).sink->failure);
}

TEST_F(DatabaseClientsTest, WhatHasNotStartedIsDroppedWithItsCall) {
  options.batch_max_transactions = 10;
  reopen();
  const Sent dropped = send(greedy, adds(15, "g"));
  const Sent stays = send(light, adds(1, "l"));
  database->abandon(dropped.handle);
  settle();
  EXPECT_EQ(integer("g"), 0);
  EXPECT_EQ(stays.sink->outcome(0), Outcome::committed);
  ASSERT_TRUE(dropped.sink->failure);
  EXPECT_EQ(dropped.sink->failure->code(), StatusCode::cancelled);
  EXPECT_TRUE(dropped.sink->failure->not_run());
  EXPECT_EQ(database->status().queued_transactions, 0u);
  EXPECT_EQ(database->status().queued_bytes, 0u);
  EXPECT_EQ(greedy->queued_transactions.load(), 0u);
  EXPECT_EQ(log.usage().reserved_bytes, 0u) << "its log space is free";
}

TEST_F(DatabaseClientsTest, WhatWaitsIsCancelledWithItsCallButNotWhatIsDone) {
  const Sent sent = send(greedy, [](engine::ColumnsBuilder& b) {
    adds(1, "done")(b);
    waits(3, "waited")(b);
  });
  settle();
  EXPECT_EQ(database->status().parked, 3u);
  database->abandon(sent.handle);
  settle();
  EXPECT_EQ(database->status().parked, 0u);
  EXPECT_EQ(greedy->waiting.load(), 0u);
  EXPECT_EQ(greedy->parked_bytes.load(), 0u);
  ASSERT_TRUE(sent.sink->failure);
  EXPECT_FALSE(sent.sink->failure->not_run()) << "a part has run";
  run(add("never", 1));
  EXPECT_EQ(integer("waited"), 0);
  EXPECT_EQ(integer("done"), 1);
}

TEST_F(DatabaseClientsTest, AnAnsweredRequestCannotBeAbandoned) {
  const Sent sent = send(greedy, adds(3, "g"));
  settle();
  EXPECT_TRUE(sent.sink->done);
  database->abandon(sent.handle);
  database->abandon({});
  settle();
  EXPECT_FALSE(sent.sink->failure);
  EXPECT_EQ(integer("g"), 3);
}

// In the queue, in a batch that is not durable, durable and not answered, parked, answered: what is counted for a
// request is given back once.
TEST_F(DatabaseClientsTest, ARequestCanBeAbandonedAtAnyMoment) {
  for (int round = 0; round < 300; ++round) {
    const int steps = round % 10;
    const Sent sent = send(greedy, [](engine::ColumnsBuilder& b) {
      adds(2, "g")(b);
      waits(1, "g")(b);
    });
    const Sent decided = send(greedy, adds(1, "d"));
    for (int i = 0; i < steps; ++i) sim.scheduler.run_one();
    database->abandon(sent.handle);
    database->abandon(decided.handle);
    settle();
    EXPECT_TRUE(sent.sink->failure) << steps;
    EXPECT_TRUE(decided.sink->ended()) << steps;
    EXPECT_EQ(greedy->waiting.load(), 0u) << steps;
    EXPECT_EQ(greedy->parked_bytes.load(), 0u) << steps;
    EXPECT_EQ(greedy->queued_transactions.load(), 0u) << steps;
    EXPECT_EQ(greedy->queued_bytes.load(), 0u) << steps;
    EXPECT_EQ(log.usage().reserved_bytes, 0u) << steps;
  }
  EXPECT_GT(integer("d"), 0);
  EXPECT_LT(integer("d"), 300);
}

// A request whose last transactions a Cancel has ended is answered, although its call ends before the answer.
TEST_F(DatabaseClientsTest, ACancelAndTheEndOfTheCallMeet) {
  const Sent sent = send(greedy, waits(1, "g"));
  settle();
  CancelTarget target;
  target.parked_id = 1;
  std::uint64_t cancelled = 0;
  database->cancel({}, target, [&](Result<std::uint64_t> count) { cancelled = *count; });
  database->abandon(sent.handle);
  settle();
  EXPECT_EQ(database->status().parked, 0u);
  EXPECT_EQ(greedy->waiting.load(), 0u) << "counted off once";
  EXPECT_EQ(log.usage().reserved_bytes, 0u);
  EXPECT_TRUE(sent.sink->ended());
}

// A cancel may name many transactions. They count in the queue until it is answered.
TEST_F(DatabaseClientsTest, WhatACancelNamesCountsInTheQueue) {
  const SessionId session = open_session();
  CancelTarget target;
  target.session = session;
  target.request = 1;
  target.indices.resize(1000);
  std::uint64_t cancelled = 1;
  database->cancel(greedy, target, [&](Result<std::uint64_t> count) { cancelled = *count; });
  EXPECT_EQ(database->status().queued_bytes, 8000u);
  EXPECT_EQ(greedy->queued_bytes.load(), 8000u);
  settle();
  EXPECT_EQ(cancelled, 0u);
  EXPECT_EQ(database->status().queued_bytes, 0u);
  EXPECT_EQ(greedy->queued_bytes.load(), 0u);
  target.indices.resize(options.queue_bytes_max / sizeof(std::uint32_t));
  Status refused;
  database->cancel(greedy, target, [&](Result<std::uint64_t> count) { refused = count.status(); });
  EXPECT_EQ(refused.reason(), ErrorReason::queue_full);
  EXPECT_EQ(refused.violation()->setting, "--queue-bytes-max");
  EXPECT_TRUE(refused.not_run());
  EXPECT_EQ(greedy->queued_bytes.load(), 0u);
}

TEST_F(DatabaseClientsTest, InASessionNothingEndsWithItsCall) {
  const SessionId session = open_session();
  const Sent sent = send(greedy, waits(1, "g"), session, 1);
  settle();
  EXPECT_TRUE(sent.handle.expired());
  database->abandon(sent.handle);
  settle();
  EXPECT_EQ(database->status().parked, 1u);
}

TEST_F(DatabaseClientsTest, ATransactionThatReadsTooMuchIsRefused) {
  options.transaction_reads_max = 1000;
  reopen();
  EXPECT_FALSE(send(light, reads(500, 2)).sink->failure);
  const Sent sent = send(light, reads(501, 2));
  ASSERT_TRUE(sent.sink->failure);
  EXPECT_EQ(sent.sink->failure->code(), StatusCode::invalid_argument);
  EXPECT_EQ(sent.sink->failure->message(),
            "transactions[0] is up to 1002 reads of keys; the limit is 1000 reads of keys (--transaction-reads-max)");
}

TEST_F(DatabaseClientsTest, ATransactionThatCopiesTooMuchIsRefused) {
  options.transaction_copies_max = 10;
  reopen();
  const auto copies = [](int count) {
    return [count](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(OpKind::get, b.key("large"));
      for (int i = 0; i < count; ++i) b.op(OpKind::put, b.key("copy"), engine::Operand::get, 0);
      b.end();
    };
  };
  EXPECT_FALSE(send(light, copies(10)).sink->failure);
  const Sent sent = send(light, copies(11));
  ASSERT_TRUE(sent.sink->failure);
  EXPECT_EQ(sent.sink->failure->message(),
            "transactions[0] is up to 11 PUTs that copy a value; the limit is 10 PUTs that copy a value "
            "(--transaction-copies-max)");
}

// A client that leaves takes what it has woken with it, and nobody waits for it.
TEST_F(DatabaseClientsTest, WhatIsAwakeLeavesWithItsCall) {
  options.batch_max_transactions = 100;
  reopen();
  std::vector<Sent> theirs;
  for (int i = 0; i < 10; ++i) theirs.push_back(send(greedy, waits(90, "g")));
  const Sent mine = send(light, waits(1, "l"));
  settle();
  const Sent writer = send(light, adds(1, "never"));
  for (int step = 0; step < 3; ++step) sim.scheduler.run_one();
  for (const Sent& sent : theirs) database->abandon(sent.handle);
  const TimeUs before = sim.clock.monotonic_us();
  settle();
  EXPECT_EQ(mine.sink->outcome(0), Outcome::committed);
  EXPECT_LT(sim.clock.monotonic_us() - before, 100000) << "nothing waited for a timer";
  EXPECT_EQ(database->status().parked, 0u);
}

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// What waits may keep its reservations for a day. So they are shared, as its place is.
TEST_F(DatabaseClientsTest, AGreedyClientLeavesMemoryForTheDataOfOthers) {
  options.memory_limit = 16384 * kMiB;
  options.data_bytes_max = 8192 * kMiB;
  options.transaction_copies_max = 128;
  reopen();
  ASSERT_TRUE(run(puts(kMiB))->done);
  const std::vector<Sent> sent = send_all(greedy, waits_and_copies());
  const Status& refused = *sent.back().sink->failure;
  EXPECT_EQ(refused.reason(), ErrorReason::memory_full);
  EXPECT_TRUE(refused.not_run());
  EXPECT_NE(refused.message().find("this client"), std::string::npos) << refused.message();
  EXPECT_NEAR(static_cast<double>(sent.size()), 52, 3) << "four fifths of 64 times 128 MiB";
  EXPECT_TRUE(run(puts(100))->done);
  const Sent mine = send(light, puts(kMiB));
  settle();
  EXPECT_TRUE(mine.sink->done);
  EXPECT_FALSE(send(light, waits_and_copies()).sink->failure);
  for (const Sent& request : sent) database->abandon(request.handle);
  settle();
  EXPECT_EQ(greedy->data_bytes.load(), 0u);
}

TEST_F(DatabaseClientsTest, AGreedyClientLeavesLogSpaceForOthers) {
  options.transaction_copies_max = 128;
  reopen();
  ASSERT_TRUE(run(puts(kMiB))->done);
  log.set_reserve_limit(8192 * kMiB);
  const std::vector<Sent> sent = send_all(greedy, waits_and_copies());
  const Status& refused = *sent.back().sink->failure;
  EXPECT_EQ(refused.reason(), ErrorReason::disk_full);
  EXPECT_TRUE(refused.not_run());
  EXPECT_NE(refused.message().find("this client"), std::string::npos) << refused.message();
  EXPECT_TRUE(refused.retry_after_us().has_value());
  EXPECT_NEAR(static_cast<double>(sent.size()), 52, 3) << "four fifths of 64 times 128 MiB";
  const Sent mine = send(light, puts(kMiB));
  settle();
  EXPECT_TRUE(mine.sink->done);
  EXPECT_EQ(light->log_bytes.load(), 0u) << "given back with the answer";
  for (const Sent& request : sent) database->abandon(request.handle);
  settle();
  EXPECT_EQ(greedy->log_bytes.load(), 0u);
  EXPECT_EQ(log.usage().reserved_bytes, 0u);
}

// What outlives a connection counts for its address.
TEST_F(DatabaseClientsTest, ANewConnectionGivesNoNewShareOfSessions) {
  options.sessions_max = 100;
  reopen();
  const auto address = client("ipv4:10.0.0.1");
  std::size_t opened = 0, connections = 0;
  for (; connections < 50; ++connections) {
    const auto connection = std::make_shared<Client>("ipv4:10.0.0.1:" + std::to_string(connections), address);
    while (open_as(connection).first.ok()) ++opened;
  }
  EXPECT_EQ(opened, 80u) << "four fifths for all of them together";
  EXPECT_EQ(address->sessions.load(), 80u);
  EXPECT_TRUE(open_as(std::make_shared<Client>("ipv4:10.0.0.2:1", client("ipv4:10.0.0.2"))).first.ok());
}

TEST_F(DatabaseClientsTest, WhatWaitsInASessionCountsForTheAddress) {
  options.parked_max = 100;
  reopen();
  const auto address = client("ipv4:10.0.0.1");
  const auto connection = [&](int n) {
    return std::make_shared<Client>("ipv4:10.0.0.1:" + std::to_string(n), address);
  };
  const SessionId session = open_as(connection(1)).second;
  EXPECT_FALSE(send(connection(2), waits(60, "g"), session, 1).sink->failure);
  settle();
  EXPECT_EQ(address->waiting.load(), 60u);
  EXPECT_GT(address->parked_bytes.load(), 0u);
  EXPECT_GT(address->log_bytes.load(), 0u);
  EXPECT_TRUE(send(connection(3), waits(40, "g"), session, 2).sink->failure) << "beyond four fifths";
  const auto outside = connection(4);
  const Sent sent = send(outside, waits(10, "g"));
  settle();
  EXPECT_EQ(outside->waiting.load(), 10u) << "outside a session it ends with its connection";
  EXPECT_EQ(address->waiting.load(), 60u);
}

// A client may leave very many parked transactions. They are forgotten a part at a time, and batches go on between.
TEST_F(DatabaseClientsTest, TheEndOfACallWithManyParkedTransactionsDelaysNobody) {
  constexpr std::uint64_t kParked = 40000;
  options.parked_max = 1000000;
  reopen();
  const Sent many = send(greedy, waits(kParked / 2, "g"));
  std::vector<Sent> single;
  for (std::uint64_t i = 0; i < kParked / 2; ++i) single.push_back(send(greedy, waits(1, "s")));
  settle();
  ASSERT_EQ(database->status().parked, kParked);
  database->abandon(many.handle);
  for (const Sent& sent : single) database->abandon(sent.handle);
  const Sent mine = send(light, adds(1, "l"));
  const Sent writer = send(light, adds(1, "never"));
  std::uint64_t left = kParked, left_at_answer = 0;
  while (sim.scheduler.run_one()) {
    const std::uint64_t now = database->status().parked;
    EXPECT_LE(left - now, 8000u) << "a step is short";
    left = now;
    if (left_at_answer == 0 && mine.sink->done) left_at_answer = now;
  }
  EXPECT_GT(left_at_answer, kParked / 4) << "others did not wait for it";
  EXPECT_EQ(left, 0u);
  EXPECT_TRUE(writer.sink->done);
  EXPECT_EQ(integer("g"), 0) << "what they waited for came too late";
  ASSERT_TRUE(many.sink->failure);
  for (const Sent& sent : single) ASSERT_TRUE(sent.sink->ended()) << "some may run before they are reached";
  EXPECT_EQ(greedy->waiting.load() + greedy->parked_bytes.load(), 0u);
  EXPECT_EQ(log.usage().reserved_bytes, 0u);
}

// A cancel of everything, and calls that end, meet in many places.
TEST_F(DatabaseClientsTest, ACancelOfEverythingWhileCallsEnd) {
  for (int round = 0; round < 20; ++round) {
    std::vector<Sent> sent;
    for (int i = 0; i < 300; ++i) sent.push_back(send(greedy, waits(10, "g")));
    settle();
    for (std::size_t i = 0; i < sent.size(); i += 2) database->abandon(sent[i].handle);
    for (int step = 0; step < round; ++step) sim.scheduler.run_one();
    CancelTarget target;
    target.filter = ParkedFilter{.client = "greedy"};
    std::optional<std::uint64_t> cancelled;
    database->cancel({}, target, [&](Result<std::uint64_t> count) { cancelled = *count; });
    settle();
    ASSERT_TRUE(cancelled);
    EXPECT_GE(*cancelled, 1500u);
    EXPECT_LE(*cancelled, 3000u);
    for (const Sent& one : sent) ASSERT_TRUE(one.sink->ended());
    EXPECT_EQ(database->status().parked, 0u);
    EXPECT_EQ(greedy->waiting.load() + greedy->parked_bytes.load(), 0u);
    EXPECT_EQ(log.usage().reserved_bytes, 0u);
  }
}

TEST_F(DatabaseClientsTest, AParkedTransactionPaysForItsRequest) {
  const Sent together = send(greedy, waits(100, "g"));
  settle();
  const std::uint64_t bytes = greedy->parked_bytes.load();
  std::vector<Sent> single;
  for (int i = 0; i < 100; ++i) {
    single.push_back(send(greedy, waits(1, "g")));
    settle();
  }
  EXPECT_GT(greedy->parked_bytes.load() - bytes, bytes + 90 * 400) << "each of them keeps a request";
  for (const Sent& sent : single) database->abandon(sent.handle);
  settle();
  EXPECT_EQ(greedy->parked_bytes.load(), bytes);
}

// Leases that end together: a step ends some of the sessions.
TEST_F(DatabaseClientsTest, ManySessionsThatEndTogetherDelayNobody) {
  constexpr std::uint64_t kSessions = 3000;
  for (std::uint64_t i = 0; i < kSessions; ++i) {
    database->open_session({}, nullptr, options.session_lease_us_min, [](const Result<SessionId>&, DurationUs) {});
  }
  settle();
  ASSERT_EQ(database->status().sessions, kSessions);
  sim.clock.advance(2 * options.session_lease_us_min);
  std::uint64_t left = kSessions;
  while (sim.scheduler.run_one()) {
    const std::uint64_t now = database->status().sessions;
    EXPECT_LE(left - now, 512u);
    left = now;
  }
  EXPECT_EQ(left, 0u);
}

// A page whose call is over is not read.
TEST_F(DatabaseClientsTest, AScanThatNobodyWaitsForIsNotRead) {
  run(puts(10));
  std::optional<Status> over, waited_for;
  ScanRequest scan;
  scan.client = greedy;
  scan.is_over = [] { return true; };
  database->scan(scan, [&](const Result<ScanPage>& page) { over = page.status(); });
  scan.is_over = [] { return false; };
  database->scan(scan, [&](const Result<ScanPage>& page) { waited_for = page.status(); });
  settle();
  ASSERT_TRUE(over && waited_for);
  EXPECT_EQ(over->code(), StatusCode::cancelled);
  EXPECT_TRUE(over->not_run());
  EXPECT_TRUE(waited_for->ok());
  EXPECT_EQ(greedy->scans.load(), 0u);
}

TEST_F(DatabaseClientsTest, ScansOfAGreedyClientDoNotDelayTheSessionsOfOthers) {
  std::vector<std::string> ended;
  for (int i = 0; i < 20; ++i) {
    ScanRequest scan;
    scan.client = greedy;
    scan.is_over = [&] {
      ended.emplace_back("scan");
      return false;
    };
    database->scan(scan, [](const Result<ScanPage>&) {});
  }
  database->cancel(light, CancelTarget{}, [&](const Result<std::uint64_t>&) { ended.emplace_back("cancel"); });
  ScanRequest mine;
  mine.client = light;
  mine.is_over = [&] {
    ended.emplace_back("mine");
    return false;
  };
  database->scan(mine, [](const Result<ScanPage>&) {});
  settle();
  const auto place = std::find(ended.begin(), ended.end(), "mine") - ended.begin();
  EXPECT_LE(place, 4) << "it waits for a command or two of the other, not for twenty";
}

TEST_F(DatabaseClientsTest, ALongListOfParkedTransactionsIsWhole) {
  const Sent sent = send(greedy, waits(3000, "g"));
  settle();
  for (const std::uint32_t limit : {1u, 1024u, 1025u, 2048u, 2999u, 3000u, 5000u}) {
    std::optional<ParkedPage> listed;
    database->list_parked(light, 0, limit, [&](Result<ParkedPage> list) { listed = std::move(*list); });
    settle();
    ASSERT_TRUE(listed);
    ASSERT_EQ(listed->parked.size(), std::min<std::size_t>(limit, 3000));
    EXPECT_EQ(listed->more, limit < 3000);
    for (std::size_t i = 0; i < listed->parked.size(); ++i) ASSERT_EQ(listed->parked[i].id, i + 1);
  }
  EXPECT_EQ(light->scans.load(), 0u);
}

TEST_F(DatabaseClientsTest, AListOfParkedTransactionsCountsAsAPageOfAScan) {
  options.scan_bytes_max = 300000;  // so that a page takes two steps
  reopen();
  send(greedy, waits(3000, "g"));
  settle();
  const auto held = [this] {
    for (const MemoryOwner& owner : database->status().memory) {
      if (owner.name == "scans") return owner.bytes;
    }
    return std::uint64_t{0};
  };
  std::uint64_t after = 0, pages = 0, most_held = 0;
  for (bool more = true; more; ++pages) {
    std::optional<ParkedPage> listed;
    database->list_parked(light, after, 10000, [&](Result<ParkedPage> list) {
      most_held = std::max(most_held, held());
      listed = std::move(*list);
    });
    EXPECT_EQ(light->scans.load(), 1u);
    settle();
    ASSERT_TRUE(listed);
    ASSERT_FALSE(listed->parked.empty());
    EXPECT_EQ(listed->parked.front().id, after + 1);
    after = listed->parked.back().id;
    more = listed->more;
  }
  EXPECT_EQ(after, 3000u);
  EXPECT_GE(pages, 3000 * sizeof(ParkedTransaction) / options.scan_bytes_max);
  EXPECT_GT(most_held, options.scan_bytes_max / 2);
  EXPECT_LE(most_held, options.scan_bytes_max);
  EXPECT_EQ(held(), 0u);
}

// Each transaction of the greedy client fills a batch. They wake, or are due, all together.
class ParkedTurnsTest : public DatabaseClientsTest {
 protected:
  static constexpr int kHeavy = 2000;
  static constexpr DurationUs kDeadlineUs = 10000000;

  void SetUp() override {
    options.batch_max_reads = 100;
    open();
    heavy = send(greedy, [](engine::ColumnsBuilder& b) {
      for (int i = 0; i < kHeavy; ++i) {
        b.begin(0, kDeadlineUs);
        b.guard(engine::GuardKind::exists, engine::OnFalse::wait, b.key("theirs"), 0);
        b.range_op(OpKind::range_get, "x", "y", 150);
        b.end();
      }
    });
    mine = send(light, withdraw("mine", 1, 2 * kDeadlineUs));
    settle();
    EXPECT_EQ(database->status().parked, kHeavy + 1u);
  }
  // How many of the heavy ones ran before mine.
  int before_mine() const {
    const BatchNumber batch = mine.sink->at(0).result.batch;
    int count = 0;
    for (const auto& [index, answer] : heavy.sink->answers) count += answer.result.batch < batch ? 1 : 0;
    return count;
  }

  Sent heavy, mine;
};

TEST_F(ParkedTurnsTest, OneThatWakesDoesNotWaitForTheManyOfAnother) {
  send(greedy, adds(1, "theirs"));
  while (heavy.sink->answers.size() < 20 && sim.scheduler.run_one()) continue;
  send(light, adds(1, "mine"));
  settle();
  ASSERT_EQ(mine.sink->outcome(0), Outcome::committed);
  ASSERT_EQ(heavy.sink->answers.size(), std::size_t{kHeavy});
  EXPECT_LE(before_mine(), 20 + 10);
}

TEST_F(ParkedTurnsTest, DeadlinesOfAnotherThatComeTogetherDoNotDelayIt) {
  sim.scheduler.run_for(kDeadlineUs - 1000);
  EXPECT_TRUE(heavy.sink->answers.empty());
  sim.clock.advance(2000);
  while (heavy.sink->answers.empty() && sim.scheduler.run_one()) continue;
  const int expired = static_cast<int>(heavy.sink->answers.size());
  send(light, adds(1, "mine"));
  settle();
  ASSERT_EQ(mine.sink->outcome(0), Outcome::committed);
  ASSERT_EQ(heavy.sink->outcome(kHeavy - 1), Outcome::wait_expired);
  EXPECT_LT(expired, kHeavy) << "the deadlines are still being worked off";
  EXPECT_LE(before_mine(), expired + 6);
}

}  // namespace
}  // namespace kilokv::server
