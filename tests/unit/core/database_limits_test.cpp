// What the core holds for those who ask: boundaries, pages, commands on their way, stored results.
#include "server/core/clients/in_flight.hpp"
#include "server/core/reads/snapshot_store.hpp"
#include "tests/support/shown_limit.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

class DatabaseLimitsTest : public CoreFixture {
 protected:
  Result<ScanPage> scan(const ScanRequest& request) {
    std::optional<Result<ScanPage>> page;
    database->scan(request, [&](Result<ScanPage> got) { page.emplace(std::move(got)); });
    settle();
    return page ? std::move(*page) : Status(StatusCode::internal, "no answer");
  }
  static Build put(const std::string& key, const std::string& value) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::put, b.key(key), engine::Operand::bytes, b.value(value));
      b.end();
    };
  }
};

TEST_F(DatabaseLimitsTest, ABoundaryIsGivenUpByItsReaderAlone) {
  for (const char* key : {"a", "b", "c", "d"}) run(add(key, 1));
  const Result<ScanPage> mine = scan({"", "", 2, {}, true});
  const Result<ScanPage> theirs = scan({"", "", 2, {}, true});
  ASSERT_TRUE(mine.ok() && theirs.ok());
  EXPECT_NE(mine->reader, 0u);
  EXPECT_NE(mine->reader, theirs->reader);
  run(add("d", 1));
  const BatchNumber boundary = mine->boundary;
  for (int i = 0; i < 3; ++i) {  // whoever knows the boundary can read it, but not give it up, however often
    EXPECT_TRUE(scan({"", "", 0, boundary, false}).ok());
    EXPECT_TRUE(scan({"", "", 0, boundary, false, theirs->reader}).ok());
  }
  const Result<ScanPage> last = scan({"c", "", 0, boundary, true, mine->reader});
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(last->pairs.at(1).integer, 1);
  EXPECT_EQ(last->reader, 0u);
  EXPECT_EQ(scan({"c", "", 0, boundary, true, mine->reader}).status().code(), StatusCode::aborted);
}

TEST_F(DatabaseLimitsTest, BoundariesThatAreKeptAreBounded) {
  for (const char* key : {"a", "b"}) run(add(key, 1));
  std::size_t kept = 0;
  for (; kept < SnapshotStore::kReadersMax; ++kept) ASSERT_TRUE(scan({"", "", 1, {}, true}).ok()) << kept;
  const Result<ScanPage> refused = scan({"", "", 1, {}, true});
  ASSERT_EQ(refused.status().code(), StatusCode::resource_exhausted);
  EXPECT_EQ(refused.status().reason(), ErrorReason::scans_full);
  EXPECT_TRUE(refused.status().retry_after_us());
}

TEST_F(DatabaseLimitsTest, APageIsNoLongerThanItMayBe) {
  for (int i = 0; i < 20; ++i) run(put("key" + std::to_string(i), std::string(1000, 'x')));
  ScanRequest request{"", "", 0, {}, true};
  request.bytes_max = 8000;
  for (const bool by_option : {false, true}) {
    if (by_option) {
      options.scan_bytes_max = 8000;
      reopen();
      request.bytes_max = UINT64_MAX;
    }
    const Result<ScanPage> page = scan(request);
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(page->pairs.size(), 6u);  // and room for what stands around them
    EXPECT_TRUE(page->more);
  }
  request.bytes_max = 10;
  EXPECT_EQ(scan(request)->pairs.size(), 1u);  // or a scan would not get anywhere
}

TEST_F(DatabaseLimitsTest, CommandsOnTheirWayAreBounded) {
  options.commands_in_flight_max = 3;
  reopen();
  const SessionId session = open_session();
  int opened = 0, cancelled = 0, closed = 0;
  std::vector<Status> refused;
  const auto note = [&](const Status& status, int* count) {
    if (status.ok()) return void(++*count);
    refused.push_back(status);
  };
  for (int round = 0; round < 3; ++round) {
    database->open_session({}, nullptr, 0, [&](Result<SessionId> id, DurationUs) { note(id.status(), &opened); });
    database->cancel({}, {session, 7, {}, 0}, [&](Result<std::uint64_t> count) { note(count.status(), &cancelled); });
    if (round < 2) database->close_session({}, nullptr, session, [&](const Status& status) { note(status, &closed); });
    EXPECT_EQ(refused.size(), round == 0 ? 0u : round == 1 ? 3u : 5u);
  }
  for (const Status& status : refused) {
    expect_shown(status, "raise --commands-in-flight-max", ErrorReason::calls_full);
  }
  settle();
  EXPECT_EQ(std::vector({opened, cancelled, closed}), std::vector({1, 1, 1}));
  open_session();  // the places are free again
}

TEST_F(DatabaseLimitsTest, StoredResultsOfAllSessionsAreBoundedAndCountedAfterACrash) {
  options.session_bytes_total_max = 2400;  // what one request may take, and not one result beside it
  reopen();
  const SessionId first = open_session(), second = open_session();
  EXPECT_TRUE(run(add("a", 1), first, 1)->done);
  const auto knob_of = [](const std::shared_ptr<RecordingSink>& sink) {
    return sink->failure ? sink->failure->violation()->setting : "";
  };
  EXPECT_EQ(knob_of(run(add("a", 1), second, 1)), "--session-bytes-total-max");
  reopen();
  EXPECT_EQ(knob_of(run(add("a", 1), second, 1)), "--session-bytes-total-max");
  EXPECT_TRUE(run(add("a", 1), first, 1)->done);     // a retry
  EXPECT_TRUE(run(add("a", 1), first, 2, 1)->done);  // gives back what it acknowledges
  EXPECT_EQ(integer("a"), 2);
}

// What is in flight counts as much as it may take.
class DatabaseStoredBytesTest : public DatabaseLimitsTest {
 protected:
  static constexpr std::uint64_t kValueBytes = 60000;

  static Build gets(int count) {
    return [=](engine::ColumnsBuilder& b) {
      for (int i = 0; i < count; ++i) {
        b.begin();
        b.op(engine::OpKind::get, b.key("large"));
        b.end();
      }
    };
  }
  void SetUp() override {
    options.session_bytes_max = 1 << 20;
    DatabaseLimitsTest::SetUp();
  }
};

TEST_F(DatabaseStoredBytesTest, ARequestWhoseOutcomesTakeMoreThanASessionMayIsInvalid) {
  const SessionId session = open_session();
  const auto refused = run(gets(12000), session, 1);
  ASSERT_TRUE(refused->failure);
  EXPECT_EQ(refused->failure->code(), StatusCode::invalid_argument);
  EXPECT_EQ(refused->failure->violation()->setting, "--session-bytes-max");
  EXPECT_TRUE(run(gets(16), session, 1)->done);
  EXPECT_EQ(run(gets(12000))->answers.size(), 12000u);  // without a session nothing is stored
}

// One large value in the database, of whomever, does not make requests with many reads invalid.
TEST_F(DatabaseStoredBytesTest, ReadsThatMayBeLargeTakeAQuarterOfTheSession) {
  EXPECT_TRUE(run(put("large", std::string(kValueBytes, 'x')))->done);
  const SessionId session = open_session();
  const auto first = run(gets(1000), session, 1);
  ASSERT_TRUE(first->done);
  EXPECT_EQ(first->at(999).reads.at(0).bytes.size(), kValueBytes);  // the answer has all
  const auto again = run(gets(1000), session, 1);
  ASSERT_TRUE(again->done);
  for (const std::uint32_t t : {0u, 3u}) {
    EXPECT_EQ(again->at(t).reads.at(0).bytes.size(), kValueBytes) << t;
  }
  for (const std::uint32_t t : {4u, 999u}) {
    EXPECT_TRUE(again->at(t).result.reads_dropped) << t;
    EXPECT_EQ(again->outcome(t), engine::Outcome::committed) << t;
  }
}

TEST_F(DatabaseStoredBytesTest, RequestsInFlightLeaveRoomForEachOther) {
  EXPECT_TRUE(run(put("large", std::string(kValueBytes, 'x')))->done);
  const SessionId session = open_session();
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (std::uint64_t number = 1; number <= 5; ++number) sinks.push_back(submit(gets(5), session, number));
  settle();
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    EXPECT_EQ(sinks[i]->done, i < 3) << i;
    if (i >= 3) {
      expect_shown(*sinks[i]->failure, "raise --session-bytes-max", ErrorReason::session_full);
    }
  }
  EXPECT_TRUE(run(gets(5), session, 4, 3)->done);
}

TEST_F(DatabaseStoredBytesTest, AValueThatGrowsAfterAdmissionIsAnsweredButNotStoredBeyondTheRoom) {
  const SessionId session = open_session();
  const auto wait_and_get = [](engine::ColumnsBuilder& b) {
    for (int i = 0; i < 100; ++i) {
      b.begin(0, 1000000);
      b.guard(engine::GuardKind::exists, engine::OnFalse::wait, b.key("large"), 0);
      b.op(engine::OpKind::get, b.key("large"));
      b.end();
    }
  };
  const auto waiting = submit(wait_and_get, session, 1);
  run(put("large", std::string(kValueBytes, 'x')));
  settle();
  ASSERT_TRUE(waiting->done);
  EXPECT_EQ(waiting->at(99).reads.at(0).bytes.size(), kValueBytes);
  const auto again = run(wait_and_get, session, 1);
  ASSERT_TRUE(again->done);
  EXPECT_EQ(again->outcome(99), engine::Outcome::committed);
  EXPECT_TRUE(again->at(99).result.reads_dropped);
  EXPECT_TRUE(run(gets(10), session, 2)->done);  // there is room left
}

TEST_F(DatabaseStoredBytesTest, ManyPlainTransactionsTakeLittleRoom) {
  options.session_bytes_max = std::uint64_t{64} << 20;
  reopen();
  const SessionId session = open_session();
  const auto transfers = [](engine::ColumnsBuilder& b) {
    for (int i = 0; i < 8192; ++i) {
      b.begin();
      b.guard(engine::GuardKind::greater_equal, engine::OnFalse::fail, b.key("account-0000000001"), 0);
      b.op(engine::OpKind::get, b.key("account-0000000002"));
      b.op(engine::OpKind::add, b.key("account-0000000001"), engine::Operand::integer, 1);
      b.op(engine::OpKind::add, b.key("account-0000000002"), engine::Operand::integer, 1);
      b.end();
    }
  };
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (std::uint64_t number = 1; number <= 16; ++number) sinks.push_back(submit(transfers, session, number));
  settle();
  for (const auto& sink : sinks) EXPECT_TRUE(sink->done) << sink->failure->message();
}

}  // namespace
}  // namespace kilokv::server
