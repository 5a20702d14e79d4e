#include "kilokv/interactive.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/client/fake_server.hpp"

namespace kilokv::client {
namespace {

// The server holds a = 1 (version 5), b absent (deleted at 6), r1 and r2; reads are counted.
class InteractiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.on_get = [this](const v1::GetRequest& request, v1::GetResponse* response) -> grpc::Status {
      ++gets_;
      v1::Read* read = response->add_reads();
      read->set_key(request.keys(0));
      if (request.keys(0) == "a") read->mutable_value()->set_integer(1);
      read->set_version(request.keys(0) == "a" ? 5 : 6);
      return {};
    };
    server_.on_scan = [](const auto&, v1::ScanResponse* response) -> grpc::Status {
      for (const char* key : {"r1", "r2"}) {
        v1::Read* read = response->add_pairs();
        read->set_key(key);
        read->mutable_value()->set_integer(10);
        read->set_version(3);
      }
      response->set_boundary(4);
      response->set_boundary_version(44);
      return {};
    };
    client_ = std::move(*Client::connect(server_.client_options()));
    session_ = std::move(*client_->open_session());
  }

  // The next `conflicts` commits fail their guard `guard`.
  void conflict(int conflicts, std::uint32_t guard) {
    conflicts_left_ = conflicts;
    server_.on_request = [this, guard](const v1::SessionRequest& request,
                                       const auto& write) -> std::optional<grpc::Status> {
      if (conflicts_left_-- <= 0) return server_.answer(request, write);
      v1::SessionResponse response;
      response.set_number(request.number());
      response.set_last(true);
      v1::ResultColumns* columns = response.mutable_columns();
      *columns = FakeServer::committed(1);
      columns->set_outcome(std::string(1, static_cast<char>(v1::OUTCOME_GUARD_FAILED)));
      columns->set_failed_in(std::string(1, static_cast<char>(v1::FAILED_IN_GUARDS)));
      columns->add_failed_index(guard);
      write(response);
      return std::nullopt;
    };
  }

  FakeServer server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
  std::atomic<int> gets_ = 0;
  std::atomic<int> conflicts_left_ = 0;
};

TEST_F(InteractiveTest, CommitGuardsEveryReadAndWritesWhatWasBuffered) {
  InteractiveTransaction t(client_.get(), session_.get());
  EXPECT_EQ(t.get("a").value(), Value{std::int64_t{1}});
  EXPECT_EQ(t.get("b").value(), Value{});
  t.put("a", std::int64_t{2});
  t.put("c", "text");
  t.del("d");
  EXPECT_EQ(t.get("a").value(), Value{std::int64_t{2}}) << "own write";
  EXPECT_EQ(t.get("d").value(), Value{});
  EXPECT_EQ(gets_, 2);
  ASSERT_TRUE(t.scan("r", "s"));
  EXPECT_EQ(t.commit().value(), CommitResult::committed);
  EXPECT_EQ(t.version(), 100u);
  const v1::TransactionColumns sent = server_.seen().at(0).columns();
  EXPECT_EQ(sent.guard_kind(), std::string("\x09\x09\x0c"));
  EXPECT_EQ(sent.guard_operand(0), 5);
  EXPECT_EQ(sent.guard_operand(1), 6);
  EXPECT_EQ(sent.guard_operand(2), 44);
  EXPECT_EQ(sent.range_bytes(), "rs");
  EXPECT_EQ(sent.operation_kind(), std::string("\2\2\3"));
  EXPECT_EQ(t.commit().error().code, ErrorCode::failed_precondition);
}

TEST_F(InteractiveTest, ScanShowsOwnWrites) {
  InteractiveTransaction t(client_.get(), session_.get());
  t.put("r0", std::int64_t{7});
  t.put("r2", "new");
  t.del("r1");
  t.put("s", std::int64_t{1});
  const auto pairs = t.scan("r", "s");
  ASSERT_TRUE(pairs);
  ASSERT_EQ(pairs->size(), 2u);
  EXPECT_EQ((*pairs)[0].key, "r0");
  EXPECT_EQ(std::get<std::int64_t>((*pairs)[0].value), 7);
  EXPECT_EQ(std::get<std::string>((*pairs)[1].value), "new");
}

// From the last pair of the answer on. Own writes count, and own deletes do not.
TEST_F(InteractiveTest, AReverseScanGuardsWhatItHasRead) {
  server_.on_scan = [](const v1::ScanRequest& request, v1::ScanResponse* response) -> grpc::Status {
    EXPECT_TRUE(request.reverse());
    for (const char* key : {"r5", "r4", "r3", "r2"}) {
      v1::Read* read = response->add_pairs();
      read->set_key(key);
      read->mutable_value()->set_integer(10);
    }
    response->set_boundary_version(44);
    response->set_reverse(true);
    return {};
  };
  const auto guarded = [&](std::size_t limit) {
    InteractiveTransaction t(client_.get(), session_.get());
    t.del("r5");
    t.put("r45", std::int64_t{7});
    std::string keys;
    const auto pairs = t.scan_reverse("r", "s", limit);
    EXPECT_TRUE(pairs);
    if (!pairs) return std::string();
    for (const Pair& pair : *pairs) keys += pair.key + " ";
    EXPECT_EQ(t.commit().value(), CommitResult::committed);
    return keys + server_.seen().back().columns().range_bytes();
  };
  EXPECT_EQ(guarded(1), "r45 r45s");
  EXPECT_EQ(guarded(2), "r45 r4 r4s");
  EXPECT_EQ(guarded(4), "r45 r4 r3 r2 r2s");
  EXPECT_EQ(guarded(9), "r45 r4 r3 r2 rs") << "the whole range, because it has ended";
  InteractiveTransaction t(client_.get(), session_.get());
  EXPECT_EQ(t.scan_reverse("r", "s", 0).error().code, ErrorCode::invalid_argument);
}

TEST_F(InteractiveTest, AConflictNamesItsKey) {
  conflict(1, 1);
  InteractiveTransaction t(client_.get(), session_.get());
  ASSERT_TRUE(t.get("a"));
  ASSERT_TRUE(t.get("b"));
  t.put("a", std::int64_t{2});
  EXPECT_EQ(t.commit().value(), CommitResult::conflict);
  EXPECT_EQ(t.conflicting_key(), "b");
  EXPECT_EQ(t.version(), std::nullopt);
}

TEST_F(InteractiveTest, RunRepeatsUntilItCommits) {
  conflict(3, 0);
  int bodies = 0;
  const auto body = [&](InteractiveTransaction& t) -> Error {
    ++bodies;
    const auto value = t.get("a");
    if (!value) return value.error();
    t.put("a", std::get<std::int64_t>(*value) + 1);
    return {};
  };
  EXPECT_FALSE(InteractiveTransaction::run(client_.get(), session_.get(), body));
  EXPECT_EQ(bodies, 4);
  EXPECT_EQ(gets_, 4) << "each attempt reads again";
  conflict(100, 0);
  const Error error = InteractiveTransaction::run(client_.get(), session_.get(), body, 2);
  EXPECT_EQ(error.code, ErrorCode::aborted);
  EXPECT_NE(error.message.find("key a"), std::string::npos);
}

TEST_F(InteractiveTest, NothingReadAndNothingWrittenSendsNothing) {
  InteractiveTransaction t(client_.get(), session_.get());
  EXPECT_EQ(t.commit().value(), CommitResult::committed);
  EXPECT_TRUE(server_.seen().empty());
}

}  // namespace
}  // namespace kilokv::client
