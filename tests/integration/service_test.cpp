// Garbage against the real kilokvd: each request gets the right code and a message that names field, limit and setting,
// and a healthy client is served all the while. Also: readiness, health, drain, exit codes.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/server_fixture.hpp"

namespace kilokv {
namespace {

using namespace std::chrono_literals;

// A client that counts in one key, until it is stopped; every answer must be right.
class HealthyClient {
 public:
  explicit HealthyClient(Server& server) : stub_(server.stub()), thread_([this] { run(); }) {}
  ~HealthyClient() {
    if (thread_.joinable()) finish();
  }
  std::uint64_t answered() const { return answered_; }
  // The first error; empty: none.
  std::string finish() {
    stopping_ = true;
    thread_.join();
    return error_;
  }

 private:
  void run() {
    while (!stopping_ && error_.empty()) {
      grpc::ClientContext context;
      set_deadline(&context);
      v1::ExecuteRequest request;
      *request.mutable_transaction() = add("healthy", 1);
      v1::ExecuteResponse response;
      const grpc::Status status = stub_->Execute(&context, request, &response);
      if (!status.ok()) {
        error_ = status.error_message();
      } else if (response.result().outcome() != v1::OUTCOME_COMMITTED) {
        error_ = "not committed";
      } else {
        ++answered_;
      }
    }
  }

  std::unique_ptr<v1::KiloKV::Stub> stub_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> answered_{0};
  std::string error_;
  std::thread thread_;
};

class GarbageTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.ready()) << server_.log();
    stub_ = server_.stub();
    healthy_ = std::make_unique<HealthyClient>(server_);
  }
  // Whatever the test sent: the healthy client has been served before, meanwhile and after.
  void TearDown() override {
    if (!healthy_) return;
    const std::uint64_t before = healthy_->answered();
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (healthy_->answered() < before + 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_GE(healthy_->answered(), before + 3);
    EXPECT_EQ(healthy_->finish(), "");
    EXPECT_EQ(server_.stop(SIGTERM), 0) << server_.log();
  }

  grpc::Status execute(const v1::Transaction& transaction, v1::ExecuteResponse* response) {
    grpc::ClientContext context;
    set_deadline(&context);
    v1::ExecuteRequest request;
    *request.mutable_transaction() = transaction;
    const grpc::Status status = stub_->Execute(&context, request, response);
    detail_ = detail_of(context);
    return status;
  }

  void expect_refused(const v1::Transaction& transaction, const std::string& field, const std::string& limit,
                      const std::string& actual, const std::string& setting) {
    v1::ExecuteResponse response;
    const grpc::Status status = execute(transaction, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_EQ(detail_.field(), field);
    EXPECT_NE(detail_.limit().find(limit), std::string::npos) << detail_.limit();
    EXPECT_EQ(detail_.actual(), actual);
    EXPECT_EQ(detail_.setting(), setting);
    for (const std::string& part : {field, limit, actual, setting}) {
      EXPECT_NE(status.error_message().find(part), std::string::npos) << status.error_message();
    }
  }

  grpc::Status execute_batch(const v1::ExecuteBatchRequest& request) {
    grpc::ClientContext context;
    set_deadline(&context);
    auto reader = stub_->ExecuteBatch(&context, request);
    v1::ExecuteBatchResponse response;
    while (reader->Read(&response)) {
    }
    const grpc::Status status = reader->Finish();
    detail_ = detail_of(context);
    return status;
  }

  Server server_;
  std::unique_ptr<v1::KiloKV::Stub> stub_;
  std::unique_ptr<HealthyClient> healthy_;
  v1::ErrorDetail detail_;  // of the last call
};

TEST_F(GarbageTest, UnknownEnum) {
  v1::Transaction transaction = add("k", 1);
  transaction.mutable_then(0)->set_kind(static_cast<v1::OperationKind>(42));
  expect_refused(transaction, "transactions[0].then[0].kind", "1 to 7", "42", "");
}

TEST_F(GarbageTest, LongKey) {
  expect_refused(add(std::string(2048, 'k'), 1), "transactions[0].then[0].key", "1024 bytes", "2048 bytes",
                 "--key-bytes-max");
}

TEST_F(GarbageTest, EmptyTransaction) {
  v1::ExecuteResponse response;
  const grpc::Status status = execute(v1::Transaction(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_.field().rfind("transactions[0]", 0), 0u) << detail_.field();
  EXPECT_FALSE(detail_.limit().empty());
}

TEST_F(GarbageTest, TenThousandOperations) {
  v1::Transaction transaction;
  for (int i = 0; i < 10000; ++i) *transaction.add_then() = add("k", 1).then(0);
  v1::ExecuteResponse response;
  const grpc::Status status = execute(transaction, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_.setting(), "--operations-max");
  EXPECT_NE(status.error_message().find("10000"), std::string::npos) << status.error_message();
}

TEST_F(GarbageTest, FiveMebibyteMessage) {
  v1::ExecuteBatchRequest request;
  *request.mutable_rows()->add_transactions() = add("k", 1);
  v1::Operation* put = request.mutable_rows()->mutable_transactions(0)->add_then();
  put->set_kind(v1::OPERATION_KIND_PUT);
  put->set_key("big");
  put->mutable_operand()->set_bytes(std::string(5 << 20, 'x'));
  EXPECT_EQ(execute_batch(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_.field(), "message");
  EXPECT_EQ(detail_.limit(), "4194304 bytes");
  EXPECT_EQ(detail_.setting(), "--message-bytes-max");
  v1::ExecuteResponse response;
  EXPECT_EQ(execute(request.rows().transactions(0), &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_.setting(), "--message-bytes-max");
}

TEST_F(GarbageTest, RaggedColumns) {
  v1::ExecuteBatchRequest request;
  v1::TransactionColumns* columns = request.mutable_columns();
  columns->add_guard_ends(0);
  columns->add_guard_ends(0);
  columns->add_then_ends(1);
  EXPECT_EQ(execute_batch(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_.field(), "columns.then_ends");
  EXPECT_EQ(detail_.actual(), "1 elements");
}

TEST_F(GarbageTest, BytesThatAreNoMessage) {
  grpc::ClientContext context;
  set_deadline(&context);
  auto stream = stub_->Session(&context);
  stream->Write(v1::SessionRequest());  // number 0, no transactions
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().code(), static_cast<std::uint32_t>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_EQ(response.error().detail().field(), "number");
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

// Not malformed: an outcome, that names the operation, and leaves nothing behind.
TEST_F(GarbageTest, AddThatOverflows) {
  v1::ExecuteResponse response;
  ASSERT_TRUE(execute(add("full", std::numeric_limits<std::int64_t>::max()), &response).ok());
  v1::Transaction transaction = add("other", 1);
  *transaction.add_then() = add("full", 1).then(0);
  ASSERT_TRUE(execute(transaction, &response).ok());
  EXPECT_EQ(response.result().outcome(), v1::OUTCOME_OVERFLOW);
  EXPECT_EQ(response.result().failed_in(), v1::FAILED_IN_THEN);
  EXPECT_EQ(response.result().failed_index(), 1u);
  EXPECT_EQ(response.result().version(), 0u);
  v1::GetRequest get;
  get.add_keys("other");
  v1::GetResponse got;
  grpc::ClientContext context;
  set_deadline(&context);
  ASSERT_TRUE(stub_->Get(&context, get, &got).ok());
  EXPECT_EQ(got.reads(0).value().kind_case(), v1::Value::KIND_NOT_SET);
}

// Needs no generated health stub: the reply is one field, `status`: 1 SERVING.
TEST(Service, HealthSaysServing) {
  Server server;
  ASSERT_TRUE(server.ready()) << server.log();
  grpc::GenericStub stub(grpc::CreateChannel(server.endpoint(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  set_deadline(&context);
  grpc::CompletionQueue queue;
  const grpc::Slice no_fields;
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::ByteBuffer(&no_fields, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->Finish(&reply, &status, &queue);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  ASSERT_TRUE(status.ok()) << status.error_message();
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(reply.Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(slices[0].begin()), slices[0].size()), "\x08\x01");
}

TEST(Service, DrainAnswersWhatWaitsAndEndsWithZero) {
  Server server;
  ASSERT_TRUE(server.ready()) << server.log();
  const auto stub = server.stub();
  v1::ExecuteRequest request;
  *request.mutable_transaction() = add("k", 1);
  v1::Guard* guard = request.mutable_transaction()->add_guards();
  guard->set_kind(v1::GUARD_KIND_EXISTS);
  guard->set_on_false(v1::ON_FALSE_WAIT);
  guard->set_key("never");
  request.mutable_transaction()->set_wait_timeout_us(600000000);
  grpc::Status waited;
  std::thread waiter([&] {
    grpc::ClientContext context;
    set_deadline(&context);
    v1::ExecuteResponse response;
    waited = stub->Execute(&context, request, &response);
  });
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  v1::StatusResponse state;
  while (state.parked().parked() == 0 && std::chrono::steady_clock::now() < deadline) {
    grpc::ClientContext context;
    set_deadline(&context);
    ASSERT_TRUE(stub->Status(&context, {}, &state).ok());
  }
  EXPECT_EQ(state.parked().parked(), 1u);
  EXPECT_EQ(server.stop(SIGTERM), 0) << server.log();
  waiter.join();
  EXPECT_EQ(waited.error_code(), grpc::StatusCode::UNAVAILABLE) << waited.error_message();
}

TEST(Service, ASecondServerOnTheSamePortIsRefused) {
  Server server;
  ASSERT_TRUE(server.ready()) << server.log();
  const std::string command = kilokvd() + " --listen " + server.endpoint() + " --data-dir " + testing::TempDir() +
                              "kilokvd-unused-$$ > /dev/null 2>&1";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
}

}  // namespace
}  // namespace kilokv
