// Data directories that earlier versions have left open with this version: the state, the sessions with their stored
// results, the users, roles and tokens are what the earlier version said they are. The directories are in fixtures/,
// one for each version. make_fixture made them.
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/support/error_detail.hpp"
#include "tests/upgrade/work.hpp"

namespace kilokv::upgrade {
namespace {

std::vector<std::string> fixtures() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(KILOKV_FIXTURES)) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

class UpgradeTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string command = "tar -xzf '" + GetParam() + "' -C '" + folder_.path("") + "'";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    server_ = std::make_unique<test::TestServer>(
        std::vector<std::string>{"--login", "on", "--checkpoint-interval", "1s", "--tombstone-retention", "24h"},
        folder_.path("data"));
    ASSERT_TRUE(server_->ready());
    caller_ = std::make_unique<Caller>(server_->endpoint(), expected("token"));
    session_ = expected("session");
  }

  std::string expected(const std::string& name) const { return read_file(folder_.path("expected/" + name)); }
  template <class Message>
  Message expected_message(const std::string& name) const {
    Message message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(expected(name), &message)) << name;
    return message;
  }

  template <class Request, class Response>
  void call(grpc::Status (v1::KiloKV::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, Response* response) const {
    const grpc::Status status = caller_->call(method, request, response);
    ASSERT_TRUE(status.ok()) << status.error_message() << "\n" << server_->log();
  }
  // The status of a server that has recovered. A connection to a server that was killed fails once more.
  v1::StatusResponse recovered() const {
    v1::StatusResponse status;
    grpc::Status called;
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    do {
      called = caller_->call(&v1::KiloKV::Stub::Status, v1::StatusRequest(), &status);
    } while ((!called.ok() || status.server().state() != v1::ServerSection::STATE_READY) &&
             std::chrono::steady_clock::now() < end);
    EXPECT_TRUE(called.ok()) << called.error_message() << "\n" << server_->log();
    return status;
  }
  static void expect_equal(const google::protobuf::Message& wanted, const google::protobuf::Message& found) {
    google::protobuf::util::MessageDifferencer differencer;
    std::string difference;
    differencer.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differencer.Compare(wanted, found)) << difference;
  }

  const test::TestFolder folder_;
  std::unique_ptr<test::TestServer> server_;
  std::unique_ptr<Caller> caller_;
  std::string session_;
};

TEST_P(UpgradeTest, TheStateIsWhatTheEarlierVersionSaid) {
  const v1::StatusResponse status = recovered();
  const auto wanted = expected_message<v1::PositionSection>("position");
  ASSERT_GT(wanted.durable_batch(), 0u);
  EXPECT_EQ(status.position().state_hash(), wanted.state_hash());
  EXPECT_EQ(status.position().durable_batch(), wanted.durable_batch());
  EXPECT_EQ(status.position().next_version(), wanted.next_version());
  EXPECT_EQ(std::to_string(status.sessions().sessions()), expected("sessions"));

  const auto scan = expected_message<v1::ScanResponse>("scan");
  ASSERT_GT(scan.pairs_size(), 0);
  v1::ScanResponse page;
  call(&v1::KiloKV::Stub::Scan, v1::ScanRequest(), &page);
  expect_equal(scan, page);
}

TEST_P(UpgradeTest, DeletedKeysKeepTheirVersions) {
  const auto wanted = expected_message<v1::GetResponse>("gone");
  v1::GetRequest request;
  for (const v1::Read& read : wanted.reads()) {
    EXPECT_GT(read.version(), 0u);
    EXPECT_EQ(read.value().kind_case(), v1::Value::KIND_NOT_SET);
    request.add_keys(read.key());
  }
  ASSERT_GT(request.keys_size(), 0);
  v1::GetResponse found;
  call(&v1::KiloKV::Stub::Get, request, &found);
  ASSERT_EQ(found.reads_size(), wanted.reads_size());
  for (int i = 0; i < wanted.reads_size(); ++i) expect_equal(wanted.reads(i), found.reads(i));
}

TEST_P(UpgradeTest, UsersRolesAndTokensAreKept) {
  for (const int kind : {0, 1, 2}) {
    v1::ListAccessRequest request;
    request.set_kind(static_cast<v1::ListAccessRequest::Kind>(kind));
    v1::ListAccessResponse found;
    call(&v1::KiloKV::Stub::ListAccess, request, &found);
    ASSERT_GT(found.users_size() + found.roles_size() + found.tokens_size(), 1);
    expect_equal(expected_message<v1::ListAccessResponse>("access-" + std::to_string(kind)), found);
  }
}

TEST_P(UpgradeTest, RequestsThatAreSentAgainGetTheirStoredResults) {
  const std::string before = recovered().position().state_hash();
  for (std::uint64_t number = kAcknowledged + 1; number <= kRequests; ++number) {
    v1::ExecuteResponse found;
    call(&v1::KiloKV::Stub::Execute, request(session_, number), &found);
    expect_equal(expected_message<v1::ExecuteResponse>("answer-" + std::to_string(number)), found);
  }
  EXPECT_EQ(recovered().position().state_hash(), before) << "a request ran again";

  v1::ExecuteResponse none;
  EXPECT_EQ(caller_->call(&v1::KiloKV::Stub::Execute, request(session_, kAcknowledged), &none).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_P(UpgradeTest, ARequestThatIsHalfDecidedGoesOn) {
  grpc::ClientContext context;
  caller_->prepare(&context);
  const auto stream = caller_->stub().ExecuteBatch(&context, half_request(session_));
  v1::ExecuteBatchResponse message;
  ASSERT_TRUE(stream->Read(&message)) << stream->Finish().error_message();
  expect_equal(expected_message<v1::ExecuteBatchResponse>("answer-half"), message);

  v1::ExecuteRequest gate;
  operation(gate.mutable_transaction(), v1::OPERATION_KIND_PUT, "half/gate")->mutable_operand()->set_integer(1);
  v1::ExecuteResponse opened;
  call(&v1::KiloKV::Stub::Execute, gate, &opened);
  ASSERT_TRUE(stream->Read(&message));
  ASSERT_EQ(message.rows().results_size(), 1);
  EXPECT_EQ(message.rows().results(0).index(), 1u);
  EXPECT_EQ(message.rows().results(0).outcome(), v1::OUTCOME_COMMITTED);
  EXPECT_TRUE(stream->Finish().ok());

  v1::GetRequest request;
  request.add_keys("half/done");
  request.add_keys("half/waited");
  v1::GetResponse found;
  call(&v1::KiloKV::Stub::Get, request, &found);
  EXPECT_EQ(found.reads(0).value().integer(), 1);
  EXPECT_EQ(found.reads(1).value().integer(), 1);
}

// With a checkpoint by this version, and without.
TEST_P(UpgradeTest, WhatThisVersionWritesIsKeptToo) {
  const std::uint64_t next_version = recovered().position().next_version();
  for (const bool with_checkpoint : {false, true}) {
    v1::ExecuteRequest more;
    *more.mutable_transaction() = transaction(0);
    v1::ExecuteResponse response;
    call(&v1::KiloKV::Stub::Execute, more, &response);
    EXPECT_GE(response.result().version(), next_version);
    v1::StatusResponse status = recovered();
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (with_checkpoint && status.position().checkpoint_batch() < status.position().durable_batch() &&
           std::chrono::steady_clock::now() < end) {
      status = recovered();
    }
    if (with_checkpoint) {
      EXPECT_EQ(status.position().checkpoint_batch(), status.position().durable_batch());
    }
    server_->kill();
    server_->start();
    const v1::StatusResponse again = recovered();
    EXPECT_EQ(again.position().state_hash(), status.position().state_hash());
    EXPECT_EQ(again.position().next_version(), status.position().next_version());
    EXPECT_EQ(std::to_string(again.sessions().sessions()), expected("sessions"));
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, UpgradeTest, testing::ValuesIn(fixtures()), [](const auto& of) {
  std::string name = std::filesystem::path(of.param).stem().stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return "from_" + name;
});

}  // namespace
}  // namespace kilokv::upgrade
