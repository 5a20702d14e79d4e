// UploadReadSet and Execute beside it, as any gRPC client may send them to the real kilokvd: what is malformed or too
// much, what is sent again, and what a crash leaves.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kilokv/v1/kilokv.grpc.pb.h"
#include "tests/integration/client_fixture.hpp"
#include "tests/integration/server_fixture.hpp"

namespace kilokv {
namespace {

// The calls of one session, against whatever server `stub` leads to.
class Caller {
 public:
  void connect(const std::string& endpoint) {
    stub_ = v1::KiloKV::NewStub(grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials()));
  }
  template <class Request, class Response>
  grpc::Status call(grpc::Status (v1::KiloKV::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);  // the server may be starting
    set_deadline(&context);
    grpc::Status status = (stub_.get()->*method)(&context, request, response);
    detail = detail_of(context);
    return status;
  }
  void open_session() {
    v1::OpenSessionResponse opened;
    ASSERT_TRUE(call(&v1::KiloKV::Stub::OpenSession, v1::OpenSessionRequest(), &opened).ok());
    session = opened.session();
  }
  v1::StatusResponse server_status() {
    v1::StatusResponse response;
    EXPECT_TRUE(call(&v1::KiloKV::Stub::Status, v1::StatusRequest(), &response).ok());
    return response;
  }

  // Keys k<begin> to k<end>, never written.
  v1::UploadReadSetRequest chunk(std::uint64_t number, int begin, int end) const {
    v1::UploadReadSetRequest request;
    request.mutable_id()->set_session(session);
    request.mutable_id()->set_number(number);
    request.set_offset(static_cast<std::uint64_t>(begin));
    for (int i = begin; i < end; ++i) {
      request.add_keys("k" + std::to_string(i));
      request.add_versions(0);
    }
    return request;
  }
  grpc::Status upload(const v1::UploadReadSetRequest& request) {
    v1::UploadReadSetResponse response;
    const grpc::Status status = call(&v1::KiloKV::Stub::UploadReadSet, request, &response);
    keys = response.keys();
    return status;
  }
  v1::ExecuteRequest commit_request(std::uint64_t number, std::uint64_t uploaded) const {
    v1::ExecuteRequest request;
    request.mutable_id()->set_session(session);
    request.mutable_id()->set_number(number);
    *request.mutable_transaction() = add("sum", 1);
    request.set_uploaded_keys(uploaded);
    return request;
  }
  grpc::Status commit(const v1::ExecuteRequest& request) {
    v1::ExecuteResponse response;
    const grpc::Status status = call(&v1::KiloKV::Stub::Execute, request, &response);
    result = response.result();
    return status;
  }
  std::int64_t sum() {
    v1::GetRequest request;
    request.add_keys("sum");
    v1::GetResponse response;
    EXPECT_TRUE(call(&v1::KiloKV::Stub::Get, request, &response).ok());
    return response.reads_size() == 1 ? response.reads(0).value().integer() : -1;
  }

  std::string session;
  std::uint64_t keys = 0;        // as the last chunk was answered
  v1::TransactionResult result;  // of the last commit
  v1::ErrorDetail detail;        // of the last call

 private:
  std::unique_ptr<v1::KiloKV::Stub> stub_;
};

class ReadSetTest : public testing::Test, protected Caller {
 protected:
  explicit ReadSetTest(std::vector<std::string> flags = {}) : server_(std::move(flags)) {}
  void SetUp() override {
    ASSERT_TRUE(server_.ready()) << server_.log();
    connect(server_.endpoint());
    open_session();
  }
  void TearDown() override { EXPECT_EQ(server_.stop(SIGTERM), 0) << server_.log(); }

  void expect_invalid(const grpc::Status& status, const std::string& field, const std::string& setting = "") {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << field << ": " << status.error_message();
    EXPECT_EQ(detail.field(), field);
    EXPECT_EQ(detail.setting(), setting);
    EXPECT_EQ(server_status().uploads().uploads(), 0u) << field;
  }

  Server server_;
};

TEST_F(ReadSetTest, CommitsBesideWhatWasUploaded) {
  ASSERT_TRUE(upload(chunk(1, 0, 1500)).ok());
  EXPECT_EQ(keys, 1500u);
  ASSERT_TRUE(upload(chunk(1, 1500, 3000)).ok());
  ASSERT_TRUE(upload(chunk(1, 0, 1500)).ok()) << "once more";
  EXPECT_EQ(keys, 3000u);
  EXPECT_EQ(server_status().uploads().uploads(), 1u);
  EXPECT_GT(server_status().uploads().uploads_bytes(), 3000u * 40);
  ASSERT_TRUE(commit(commit_request(1, 3000)).ok());
  EXPECT_EQ(result.outcome(), v1::OUTCOME_COMMITTED);
  EXPECT_EQ(server_status().uploads().uploads(), 0u);
  EXPECT_EQ(server_status().uploads().uploads_bytes(), 0u);
  const std::uint64_t version = result.version();
  ASSERT_TRUE(commit(commit_request(1, 3000)).ok()) << "a retry";
  EXPECT_EQ(result.version(), version);
  // What was written by the commit is read by nobody else: the next one meets a change.
  v1::UploadReadSetRequest changed = chunk(2, 0, 2000);
  changed.set_keys(1777, "sum");
  ASSERT_TRUE(upload(changed).ok());
  v1::ExecuteRequest request = commit_request(2, 2000);
  *request.mutable_transaction()->add_else_() = add("conflicts", 1).then(0);
  ASSERT_TRUE(commit(request).ok());
  EXPECT_EQ(result.outcome(), v1::OUTCOME_GUARD_FAILED);
  EXPECT_EQ(result.failed_in(), v1::FAILED_IN_GUARDS);
  EXPECT_EQ(result.failed_index(), 1777u);
  EXPECT_EQ(result.guard_value().key(), "sum");
  EXPECT_EQ(result.guard_value().version(), version);
  EXPECT_EQ(sum(), 1);
}

TEST_F(ReadSetTest, RefusesMalformedChunks) {
  using Change = std::function<void(v1::UploadReadSetRequest*)>;
  const auto refuses = [&](const char* field, const Change& change, const char* setting = "") {
    v1::UploadReadSetRequest request = chunk(1, 0, 3);
    change(&request);
    expect_invalid(upload(request), field, setting);
  };
  refuses("keys", [](auto* r) { r->clear_keys(), r->clear_versions(); });
  refuses("versions", [](auto* r) { r->add_versions(1); });
  refuses("versions", [](auto* r) { r->clear_versions(); });
  refuses("versions[2]", [](auto* r) { r->set_versions(2, std::uint64_t{1} << 60); });
  refuses(
      "keys[1]", [](auto* r) { r->set_keys(1, ""); }, "--key-bytes-max");
  refuses(
      "keys[2]", [](auto* r) { r->set_keys(2, std::string(1025, 'k')); }, "--key-bytes-max");
  refuses("id.session", [](auto* r) { r->clear_id(); });
  refuses("id.session", [](auto* r) { r->mutable_id()->set_session("short"); });
  refuses("id.number", [](auto* r) { r->mutable_id()->set_number(0); });
  refuses(
      "message", [](auto* r) { r->set_keys(0, std::string(std::size_t{5} << 20, 'k')); }, "--message-bytes-max");
  v1::UploadReadSetRequest request = chunk(1, 0, 3);
  for (const std::uint64_t offset : {std::uint64_t{1}, std::uint64_t{3}, ~std::uint64_t{0}}) {
    request.set_offset(offset);
    EXPECT_EQ(upload(request).error_code(), grpc::StatusCode::FAILED_PRECONDITION) << offset;
  }
  request = chunk(1, 0, 3);
  request.mutable_id()->set_session(std::string(16, 'x'));
  EXPECT_EQ(upload(request).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  request = chunk(3, 0, 3);
  request.mutable_id()->set_acknowledged_through(3);
  EXPECT_EQ(upload(request).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(server_status().uploads().uploads(), 0u);
  ASSERT_TRUE(upload(chunk(1, 0, 3)).ok());
  request = chunk(1, 0, 3);
  request.set_versions(1, 7);
  EXPECT_EQ(upload(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  ASSERT_TRUE(commit(commit_request(1, 3)).ok());
}

TEST_F(ReadSetTest, RefusesMalformedCommits) {
  using Change = std::function<void(v1::ExecuteRequest*)>;
  const auto refuses = [&](const char* field, const Change& change) {
    v1::ExecuteRequest request = commit_request(1, 3);
    change(&request);
    expect_invalid(commit(request), field);
  };
  const auto wait_for = [](auto* r) {
    v1::Guard* guard = r->mutable_transaction()->add_guards();
    guard->set_kind(v1::GUARD_KIND_EXISTS);
    guard->set_key("gate");
    guard->set_on_false(v1::ON_FALSE_WAIT);
  };
  refuses("id.session", [](auto* r) { r->clear_id(); });
  refuses("transactions[0].wait_timeout_us", [](auto* r) { r->mutable_transaction()->set_wait_timeout_us(1); });
  refuses("transactions[0].guards[0].on_false", wait_for);
  refuses("transactions[0].precedence", [](auto* r) {
    r->clear_transaction();
    r->mutable_transaction()->set_precedence(256);
  });
  for (const std::uint64_t uploaded : {std::uint64_t{3}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    EXPECT_EQ(commit(commit_request(1, uploaded)).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
  v1::ExecuteRequest unknown = commit_request(1, 3);
  unknown.mutable_id()->set_session(std::string(16, 'x'));
  EXPECT_EQ(commit(unknown).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  ASSERT_TRUE(upload(chunk(1, 0, 3)).ok());
  EXPECT_EQ(commit(commit_request(2, 3)).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  v1::ExecuteRequest alone = commit_request(1, 3);
  alone.clear_transaction();
  ASSERT_TRUE(commit(alone).ok()) << "it validates the read set";
  EXPECT_EQ(result.outcome(), v1::OUTCOME_COMMITTED);
  EXPECT_EQ(sum(), 0);
}

class LittleRoomTest : public ReadSetTest {
 protected:
  LittleRoomTest()
      : ReadSetTest({"--read-set-keys-max", "5000", "--session-uploads-bytes-max", "128KiB", "--uploads-bytes-max",
                     "192KiB"}) {}
};

TEST_F(LittleRoomTest, LimitsNameTheirSettings) {
  expect_invalid(upload(chunk(1, 0, 5001)), "keys", "--read-set-keys-max");
  expect_invalid(upload(chunk(1, 0, 4000)), "keys", "--session-uploads-bytes-max");
  ASSERT_TRUE(upload(chunk(1, 0, 2500)).ok());
  EXPECT_EQ(upload(chunk(2, 0, 2500)).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(detail.setting(), "--session-uploads-bytes-max");
  EXPECT_GT(detail.retry_after_us(), 0u);
  const std::string first = session;
  open_session();
  EXPECT_EQ(upload(chunk(1, 0, 2500)).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(detail.setting(), "--uploads-bytes-max");
  v1::CloseSessionRequest close;
  close.set_session(first);
  v1::CloseSessionResponse closed;
  ASSERT_TRUE(call(&v1::KiloKV::Stub::CloseSession, close, &closed).ok());
  EXPECT_EQ(server_status().uploads().uploads(), 0u);
  EXPECT_TRUE(upload(chunk(1, 0, 2500)).ok());
  EXPECT_TRUE(commit(commit_request(1, 2500)).ok());
}

class ForgetfulTest : public ReadSetTest {
 protected:
  ForgetfulTest() : ReadSetTest({"--upload-idle-max", "300ms"}) {}
};

// The session is there, what was uploaded in it is not.
TEST_F(ForgetfulTest, AnIdleUploadIsDropped) {
  ASSERT_TRUE(upload(chunk(1, 0, 2000)).ok());
  while (server_status().uploads().uploads() != 0) std::this_thread::yield();
  EXPECT_EQ(server_status().uploads().uploads_bytes(), 0u);
  EXPECT_EQ(server_status().sessions().sessions(), 1u);
  EXPECT_EQ(commit(commit_request(1, 2000)).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(upload(chunk(1, 1000, 2000)).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  grpc::Status status;
  do {  // where the machine is slow, it is dropped once more
    ASSERT_TRUE(upload(chunk(1, 0, 2000)).ok());
    status = commit(commit_request(1, 2000));
  } while (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(sum(), 1);
}

// Others go on while large read sets are uploaded and committed.
TEST_F(ReadSetTest, OthersGoOnMeanwhile) {
  std::thread uploader([this] {
    Caller caller;
    caller.connect(server_.endpoint());
    caller.open_session();
    for (std::uint64_t number = 1; number <= 5; ++number) {
      for (int begin = 0; begin < 100'000; begin += 20'000) {
        ASSERT_TRUE(caller.upload(caller.chunk(number, begin, begin + 20'000)).ok());
      }
      ASSERT_TRUE(caller.commit(caller.commit_request(number, 100'000)).ok());
      EXPECT_EQ(caller.result.outcome(), v1::OUTCOME_COMMITTED);
    }
  });
  for (std::uint64_t number = 1; number <= 100; ++number) {
    EXPECT_TRUE(commit(commit_request(number, 0)).ok());
  }
  uploader.join();
  EXPECT_EQ(sum(), 105);
}

// A crash takes what was uploaded; what was committed stays.
TEST(ReadSetCrashTest, TheKeysAreUploadedAgainUnderTheSameNumber) {
  client::Server server;
  Caller caller;
  caller.connect(server.endpoint());
  caller.open_session();
  ASSERT_TRUE(caller.upload(caller.chunk(1, 0, 2000)).ok());
  ASSERT_TRUE(caller.commit(caller.commit_request(1, 2000)).ok());
  const std::uint64_t version = caller.result.version();
  ASSERT_TRUE(caller.upload(caller.chunk(2, 0, 2000)).ok());
  server.kill();
  server.start();
  caller.connect(server.endpoint());
  for (const std::uint64_t number : {1u, 2u}) {
    EXPECT_EQ(caller.commit(caller.commit_request(number, 2000)).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(caller.upload(caller.chunk(number, 1000, 2000)).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    ASSERT_TRUE(caller.upload(caller.chunk(number, 0, 2000)).ok());
  }
  EXPECT_EQ(caller.sum(), 1);
  ASSERT_TRUE(caller.commit(caller.commit_request(1, 2000)).ok());
  EXPECT_EQ(caller.result.version(), version) << "its old result";
  ASSERT_TRUE(caller.commit(caller.commit_request(2, 2000)).ok());
  EXPECT_GT(caller.result.version(), version);
  EXPECT_EQ(caller.sum(), 2);
}

}  // namespace
}  // namespace kilokv
