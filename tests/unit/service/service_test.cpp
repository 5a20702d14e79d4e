// The gRPC face over a fake database, through a real channel.
#include "server/service/service.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <future>

#include "server/service/grpc_server.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/status_map.hpp"
#include "tests/unit/service/fake_database.hpp"
#include "tests/unit/service/messages.hpp"

namespace kilokv::server {
namespace {

constexpr auto kDeadline = std::chrono::seconds(20);
const ServerInfo kInfo{.version = "1.2.3",
                       .strategy = "lock",
                       .threads = 3,
                       .shadow_rate = 0.25,
                       .settings = {{"order", "any"}, {"records_per_lock", "16"}}};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() : ServiceTest(ServiceOptions()) {}
  explicit ServiceTest(const ServiceOptions& options) : service_(options, kInfo) {
    auto started = GrpcServer::start("127.0.0.1:0", &service_, options);
    EXPECT_TRUE(started.ok());
    server_ = std::move(*started);
    stub_ = v1::KiloKV::NewStub(grpc::CreateChannel(server_->endpoint(), grpc::InsecureChannelCredentials()));
  }

  static std::unique_ptr<grpc::ClientContext> context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + kDeadline);
    return context;
  }

  static v1::ErrorDetail detail_of(const grpc::ClientContext& context) {
    v1::ErrorDetail detail;
    const auto found = context.GetServerTrailingMetadata().find("kilokv-error-bin");
    if (found != context.GetServerTrailingMetadata().end()) {
      detail.ParseFromArray(found->second.data(), static_cast<int>(found->second.size()));
    }
    return detail;
  }

  static v1::ExecuteRequest execute_request() {
    v1::ExecuteRequest request;
    *request.mutable_transaction() = test::transfer("a", "b", 1);
    return request;
  }

  static v1::SessionRequest session_request(std::uint64_t number) {
    v1::SessionRequest request;
    request.set_number(number);
    *request.mutable_rows()->add_transactions() = test::transfer("a", "b", 1);
    return request;
  }

  test::FakeDatabase database_;
  KiloKvService service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::KiloKV::Stub> stub_;
};

TEST_F(ServiceTest, IsUnavailableWhileRecoveringAndAfterClose) {
  v1::ExecuteResponse response;
  grpc::Status status = stub_->Execute(context().get(), execute_request(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "recovering");
  v1::StatusResponse state;
  ASSERT_TRUE(stub_->Status(context().get(), {}, &state).ok());
  EXPECT_EQ(state.server().state(), v1::ServerSection::STATE_RECOVERING);
  EXPECT_EQ(state.server().server_version(), "1.2.3");
  EXPECT_EQ(state.server().strategy(), "lock");
  EXPECT_EQ(state.server().threads(), 3u);
  EXPECT_EQ(state.checks().shadow_rate(), 0.25);
  ASSERT_EQ(state.settings_size(), 2);
  EXPECT_EQ(state.settings(0).name(), "order");
  EXPECT_EQ(state.settings(0).text(), "any");
  EXPECT_EQ(state.settings(1).text(), "16");
  EXPECT_EQ(state.device().device(), "");

  service_.serve(&database_);
  ASSERT_TRUE(stub_->Status(context().get(), {}, &state).ok());
  EXPECT_EQ(state.server().state(), v1::ServerSection::STATE_READY);
  EXPECT_EQ(state.position().durable_batch(), 17u);
  EXPECT_EQ(state.device().device(), "cpu");
  EXPECT_EQ(state.device().device_model(), "a model");
  EXPECT_EQ(state.device().device_reason(), "a reason");
  EXPECT_EQ(state.device().batches_serial(), 1u);
  EXPECT_EQ(state.device().batches_parallel(), 2u);
  EXPECT_EQ(state.device().batches_on_device(), 3u);
  EXPECT_EQ(state.checks().shadow_batches(), 4u);
  EXPECT_EQ(state.checks().shadow_skipped(), 5u);
  service_.close();
  status = stub_->Execute(context().get(), execute_request(), &response);
  EXPECT_EQ(status.error_message(), "draining");
}

TEST_F(ServiceTest, ExecuteAnswersWhenTheDatabaseDoes) {
  service_.serve(&database_);
  std::thread answerer([this] { test::FakeDatabase::commit(database_.take().get()); });
  v1::ExecuteResponse response;
  const grpc::Status status = stub_->Execute(context().get(), execute_request(), &response);
  answerer.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.result().outcome(), v1::OUTCOME_COMMITTED);
  EXPECT_EQ(response.result().version(), 100u);
}

TEST_F(ServiceTest, ErrorsCarryTheirDetail) {
  service_.serve(&database_);
  v1::ExecuteRequest request = execute_request();
  request.mutable_transaction()->mutable_then(0)->set_key(std::string(2048, 'x'));
  auto refused = context();
  v1::ExecuteResponse response;
  EXPECT_EQ(stub_->Execute(refused.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*refused).setting(), "--key-bytes-max");
  EXPECT_EQ(detail_of(*refused).field(), "transactions[0].then[0].key");
  EXPECT_TRUE(detail_of(*refused).not_run());

  std::thread answerer([this] {
    database_.take()->sink->fail(
        Status::exhausted(ErrorReason::queue_full, {"queue", "5", "6", "--queue-transactions-max"}, 1234));
  });
  auto exhausted = context();
  EXPECT_EQ(stub_->Execute(exhausted.get(), execute_request(), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  answerer.join();
  EXPECT_EQ(detail_of(*exhausted).retry_after_us(), 1234u);
  EXPECT_EQ(detail_of(*exhausted).reason(), v1::ERROR_REASON_QUEUE_FULL);
  EXPECT_FALSE(detail_of(*exhausted).not_run()) << "the database did not say so";
}

TEST_F(ServiceTest, RefusesMalformedIdentities) {
  service_.serve(&database_);
  v1::ExecuteResponse response;
  v1::ExecuteRequest request = execute_request();
  request.mutable_id()->set_session("short");
  auto bad_session = context();
  EXPECT_EQ(stub_->Execute(bad_session.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*bad_session).field(), "id.session");
  request.mutable_id()->set_session(std::string(16, 's'));
  auto no_number = context();
  EXPECT_EQ(stub_->Execute(no_number.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*no_number).field(), "id.number");
}

TEST_F(ServiceTest, TakesReadSetsAndWhatIsCommittedBesideThem) {
  service_.serve(&database_);
  v1::UploadReadSetRequest chunk;
  chunk.mutable_id()->set_session(std::string(16, 's'));
  chunk.mutable_id()->set_number(3);
  chunk.add_keys("a"), chunk.add_keys("b");
  chunk.add_versions(1), chunk.add_versions(0);
  v1::UploadReadSetResponse uploaded;
  ASSERT_TRUE(stub_->UploadReadSet(context().get(), chunk, &uploaded).ok());
  EXPECT_EQ(uploaded.keys(), 2u);
  chunk.set_offset(1);
  EXPECT_EQ(stub_->UploadReadSet(context().get(), chunk, &uploaded).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  chunk.add_versions(0);
  auto unequal = context();
  EXPECT_EQ(stub_->UploadReadSet(unequal.get(), chunk, &uploaded).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*unequal).field(), "versions");

  std::thread answerer([this] {
    const auto request = database_.take();
    EXPECT_EQ(request->uploaded_keys, 2u);
    EXPECT_EQ(request->identity.number, 3u);
    EXPECT_EQ(request->transactions.size(), 1u);
    EXPECT_EQ(request->transactions.guard_kind.size() + request->transactions.op_kind.size(), 0u);
    test::FakeDatabase::commit(request.get());
  });
  v1::ExecuteRequest request;
  *request.mutable_id() = chunk.id();
  request.set_uploaded_keys(2);
  v1::ExecuteResponse response;
  EXPECT_TRUE(stub_->Execute(context().get(), request, &response).ok()) << "the read set alone";
  answerer.join();
  request.mutable_transaction()->set_wait_timeout_us(1);
  auto waits = context();
  EXPECT_EQ(stub_->Execute(waits.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*waits).field(), "transactions[0].wait_timeout_us");
}

// An unknown part beside uploaded keys is a part of what the client wants to commit. So it is refused, too.
TEST_F(ServiceTest, UnknownPartsBesideUploadedKeysAreRefused) {
  service_.serve(&database_);
  v1::ExecuteRequest request;
  request.mutable_id()->set_session(std::string(16, 's'));
  request.mutable_id()->set_number(3);
  request.set_uploaded_keys(2);
  v1::Transaction* transaction = request.mutable_transaction();
  for (const bool empty : {true, false}) {
    if (!empty) *transaction = test::transfer("a", "b", 1);
    transaction->GetReflection()->MutableUnknownFields(transaction)->AddLengthDelimited(77)->assign("writes");
    auto call = context();
    call->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    v1::ExecuteResponse response;
    EXPECT_EQ(stub_->Execute(call.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(detail_of(*call).reason(), v1::ERROR_REASON_UNKNOWN_FIELD);
    EXPECT_EQ(detail_of(*call).field(), "transactions[0]");
    EXPECT_TRUE(detail_of(*call).not_run());
  }
  transaction->Clear();
  transaction->set_precedence(256);
  auto call = context();
  v1::ExecuteResponse response;
  EXPECT_EQ(stub_->Execute(call.get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*call).field(), "transactions[0].precedence");
  EXPECT_EQ(database_.submitted(), 0u);
}

TEST_F(ServiceTest, BatchIsAnsweredInItsOwnForm) {
  service_.serve(&database_);
  v1::TransactionRows rows;
  for (int i = 0; i < 3; ++i) *rows.add_transactions() = test::transfer("a", "b", 1);
  engine::TransactionColumns columns;
  ASSERT_TRUE(decode(rows, test::kContext, &columns).ok());
  for (const bool as_columns : {false, true}) {
    v1::ExecuteBatchRequest request;
    if (as_columns) {
      *request.mutable_columns() = test::to_message(columns);
    } else {
      *request.mutable_rows() = rows;
    }
    auto call = context();
    auto reader = stub_->ExecuteBatch(call.get(), request);
    test::FakeDatabase::commit(database_.take().get());
    v1::ExecuteBatchResponse response;
    ASSERT_TRUE(reader->Read(&response));
    EXPECT_EQ(response.has_columns(), as_columns);
    EXPECT_EQ(as_columns ? response.columns().rank_size() : response.rows().results_size(), 3);
    EXPECT_FALSE(reader->Read(&response));
    EXPECT_TRUE(reader->Finish().ok());
  }
}

TEST_F(ServiceTest, OverlongMessageIsRefusedByName) {
  service_.serve(&database_);
  v1::SessionRequest big = session_request(7);
  big.set_session(std::string(16, 's'));
  big.mutable_rows()->mutable_transactions(0)->mutable_then(0)->set_key(std::string(5 << 20, 'x'));
  auto call = context();
  auto stream = stub_->Session(call.get());
  ASSERT_TRUE(stream->Write(big));
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.number(), 7u);
  EXPECT_TRUE(response.last());
  EXPECT_EQ(response.error().code(), static_cast<std::uint32_t>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_EQ(response.error().detail().setting(), "--message-bytes-max");
  EXPECT_TRUE(response.error().detail().not_run());
  // The stream goes on.
  ASSERT_TRUE(stream->Write(session_request(8)));
  const auto request = database_.take();
  EXPECT_TRUE(request->identity.session.has_value()) << "the message that was refused named the session";
  test::FakeDatabase::commit(request.get());
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.number(), 8u);
  EXPECT_FALSE(response.has_error());
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServiceTest, StreamAnswersInAnyOrderAndEndsAfterTheLast) {
  service_.serve(&database_);
  auto call = context();
  auto stream = stub_->Session(call.get());
  v1::SessionRequest first = session_request(1);
  first.set_session(std::string(16, 's'));
  ASSERT_TRUE(stream->Write(first));
  ASSERT_TRUE(stream->Write(session_request(2)));
  ASSERT_TRUE(stream->WritesDone());
  const auto one = database_.take();
  const auto two = database_.take();
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(one->identity.session.has_value());
  EXPECT_EQ(one->identity.session, two->identity.session);
  EXPECT_EQ(two->identity.number, 2u);
  test::FakeDatabase::commit(two.get());
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.number(), 2u);
  test::FakeDatabase::commit(one.get());
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.number(), 1u);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServiceTest, MalformedSessionEndsTheStream) {
  service_.serve(&database_);
  auto call = context();
  auto stream = stub_->Session(call.get());
  v1::SessionRequest request = session_request(1);
  request.set_session("short");
  ASSERT_TRUE(stream->Write(request));
  v1::SessionResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*call).field(), "session");
}

TEST_F(ServiceTest, AnotherSessionInALaterMessageIsRefused) {
  service_.serve(&database_);
  auto call = context();
  auto stream = stub_->Session(call.get());
  ASSERT_TRUE(stream->Write(session_request(1)));
  v1::SessionRequest other = session_request(2);
  other.set_session(std::string(16, 't'));
  ASSERT_TRUE(stream->Write(other));
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.number(), 2u);
  EXPECT_EQ(response.error().detail().field(), "session");
  call->TryCancel();
  stream->Finish();
  test::FakeDatabase::commit(database_.take().get());
}

TEST_F(ServiceTest, AnswersForAClientThatIsGoneAreDropped) {
  service_.serve(&database_);
  std::unique_ptr<Request> request;
  {
    auto call = context();
    auto stream = stub_->Session(call.get());
    ASSERT_TRUE(stream->Write(session_request(1)));
    request = database_.take();
    ASSERT_NE(request, nullptr);
    call->TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  server_->shut_down(std::chrono::milliseconds(0));  // returns only when gRPC has let go of the stream
  test::FakeDatabase::commit(request.get());
}

TEST_F(ServiceTest, CloseEndsIdleStreams) {
  service_.serve(&database_);
  auto call = context();
  auto stream = stub_->Session(call.get());
  ASSERT_TRUE(stream->Write(session_request(1)));
  test::FakeDatabase::commit(database_.take().get());
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  service_.close();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_message(), "draining");
}

TEST_F(ServiceTest, ACallThatIsGoneEndsAtOnceAndItsAnswerIsDropped) {
  service_.serve(&database_);
  auto call = std::make_unique<grpc::ClientContext>();
  call->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
  v1::ExecuteResponse response;
  EXPECT_EQ(stub_->Execute(call.get(), execute_request(), &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  const std::unique_ptr<Request> request = database_.take();
  ASSERT_NE(request, nullptr);
  server_->shut_down(std::chrono::milliseconds(0));  // returns only when gRPC has let go of the call
  EXPECT_TRUE(request->sink->gone());
  test::FakeDatabase::commit(request.get());
}

ServiceOptions narrow_stream() {
  ServiceOptions options;
  options.stream_requests_max = 4;
  return options;
}

class NarrowStreamTest : public ServiceTest {
 protected:
  NarrowStreamTest() : ServiceTest(narrow_stream()) {}
};

TEST_F(NarrowStreamTest, ReadsNoFurtherThanItsLimit) {
  service_.serve(&database_);
  auto call = context();
  auto stream = stub_->Session(call.get());
  for (std::uint64_t number = 1; number <= 20; ++number) ASSERT_TRUE(stream->Write(session_request(number)));
  std::deque<std::unique_ptr<Request>> held;
  for (int i = 0; i < 4; ++i) held.push_back(database_.take());
  v1::SessionResponse response;
  for (std::uint64_t answered = 1; answered <= 20; ++answered) {
    // Never more than 4 unanswered, whatever was sent.
    EXPECT_LE(database_.submitted(), answered - 1 + 4);
    test::FakeDatabase::commit(held.front().get());
    held.pop_front();
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.number(), answered);
    if (answered <= 16) held.push_back(database_.take());
  }
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

ServiceOptions small_answers() {
  ServiceOptions options;
  options.stream_answer_bytes_max = 10;
  return options;
}

class SlowReaderTest : public ServiceTest {
 protected:
  SlowReaderTest() : ServiceTest(small_answers()) {}
};

TEST_F(SlowReaderTest, IsCutOff) {
  service_.serve(&database_);
  auto call = context();
  auto stream = stub_->Session(call.get());
  ASSERT_TRUE(stream->Write(session_request(1)));
  test::FakeDatabase::commit(database_.take().get());
  v1::SessionResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(detail_of(*call).setting(), "--stream-answer-bytes-max");
  EXPECT_EQ(detail_of(*call).reason(), v1::ERROR_REASON_SLOW_READER);
  EXPECT_FALSE(detail_of(*call).not_run()) << "the answer that was cut off is that of a transaction that ran";
  EXPECT_EQ(service_.unsent_answer_bytes(), 0u);
}

ServiceOptions little_room_for_all() {
  ServiceOptions options;
  options.answers_bytes_max = 2000;
  return options;
}

class LittleRoomForAllTest : public ServiceTest {
 protected:
  LittleRoomForAllTest() : ServiceTest(little_room_for_all()) {}
};

TEST_F(LittleRoomForAllTest, WhatIsTakenGivesItsRoomBackAndWhatDoesNotFitIsCutOff) {
  service_.serve(&database_);
  auto call = context();
  auto stream = stub_->Session(call.get());
  v1::SessionResponse response;
  for (std::uint64_t number = 1; number <= 20; ++number) {  // together more than fits, one after the other
    ASSERT_TRUE(stream->Write(session_request(number)));
    database_.take()->sink->fail(Status(StatusCode::internal, std::string(500, 'x')));
    ASSERT_TRUE(stream->Read(&response));
  }
  ASSERT_TRUE(stream->Write(session_request(21)));
  database_.take()->sink->fail(Status(StatusCode::internal, std::string(5000, 'x')));
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ||
              status.error_code() == grpc::StatusCode::CANCELLED);
  EXPECT_EQ(service_.unsent_answer_bytes(), 0u);
}

// A call that its client cancels ends its transactions, unless they are detached.
TEST_F(ServiceTest, TheEndOfACallIsTold) {
  service_.serve(&database_);
  const auto cancel_execute = [&](bool detached) {
    v1::ExecuteRequest request = execute_request();
    request.set_detached(detached);
    auto call = context();
    std::thread canceller([&] {
      const auto held = database_.take();
      call->TryCancel();
      while (!held->sink->gone()) std::this_thread::yield();
    });
    v1::ExecuteResponse response;
    EXPECT_EQ(stub_->Execute(call.get(), request, &response).error_code(), grpc::StatusCode::CANCELLED);
    canceller.join();
  };
  const auto cancel_batch = [&](bool detached) {
    v1::ExecuteBatchRequest request;
    *request.mutable_rows()->add_transactions() = test::transfer("a", "b", 1);
    request.set_detached(detached);
    auto call = context();
    const auto reader = stub_->ExecuteBatch(call.get(), request);
    const auto held = database_.take();
    call->TryCancel();
    while (!held->sink->gone()) std::this_thread::yield();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  };
  const auto abandoned_becomes = [&](std::uint64_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (database_.abandoned() != count && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return database_.abandoned() == count;
  };
  cancel_execute(true);
  cancel_batch(true);
  cancel_execute(false);
  EXPECT_TRUE(abandoned_becomes(1)) << database_.abandoned();
  cancel_batch(false);
  EXPECT_TRUE(abandoned_becomes(2)) << database_.abandoned();
}

TEST_F(ServiceTest, CallsOfOneConnectionAreOfOneClient) {
  service_.serve(&database_);
  std::vector<std::shared_ptr<Client>> clients;
  std::thread answerer([&] {
    for (int i = 0; i < 2; ++i) {
      const auto request = database_.take();
      clients.push_back(request->client);
      test::FakeDatabase::commit(request.get());
    }
  });
  v1::ExecuteResponse response;
  ASSERT_TRUE(stub_->Execute(context().get(), execute_request(), &response).ok());
  v1::GetRequest get;
  get.add_keys("a");
  v1::GetResponse got;
  EXPECT_TRUE(stub_->Get(context().get(), get, &got).ok());
  answerer.join();
  ASSERT_EQ(clients.size(), 2u);
  EXPECT_EQ(clients[0], clients[1]);
  EXPECT_TRUE(clients[0]->name.starts_with("ipv4:127.0.0.1:")) << clients[0]->name;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (service_.unsent_answer_bytes() > 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(service_.unsent_answer_bytes(), 0u) << "an answer counts until its call is done";
}

// Every method gets bad input, and what it must say.
TEST_F(ServiceTest, EveryRefusalHasAReason) {
  service_.serve(&database_);
  const auto refusal = [&](auto method, const auto& request, auto response) {
    auto call = context();
    const grpc::Status status = (stub_.get()->*method)(call.get(), request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << request.GetTypeName();
    return detail_of(*call).reason();
  };
  const auto unary = [](auto method) { return method; };
  using Stub = v1::KiloKV::Stub;
  using Context = grpc::ClientContext*;
#define KILOKV_METHOD(name) \
  unary(static_cast<grpc::Status (Stub::*)(Context, const v1::name##Request&, v1::name##Response*)>(&Stub::name))
  v1::ExecuteRequest execute = execute_request();
  execute.mutable_transaction()->mutable_then(0)->clear_operand();
  EXPECT_EQ(refusal(KILOKV_METHOD(Execute), execute, v1::ExecuteResponse()), v1::ERROR_REASON_MISSING_FIELD);
  execute = execute_request();
  execute.mutable_transaction()->set_precedence(256);
  EXPECT_EQ(refusal(KILOKV_METHOD(Execute), execute, v1::ExecuteResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  execute = execute_request();
  execute.mutable_transaction()->mutable_then(0)->set_limit(1);  // the reason that columns get, too
  EXPECT_EQ(refusal(KILOKV_METHOD(Execute), execute, v1::ExecuteResponse()), v1::ERROR_REASON_NOT_ALLOWED);
  execute = execute_request();
  execute.mutable_transaction()->mutable_then(0)->mutable_range();
  EXPECT_EQ(refusal(KILOKV_METHOD(Execute), execute, v1::ExecuteResponse()), v1::ERROR_REASON_NOT_ALLOWED);
  EXPECT_EQ(refusal(KILOKV_METHOD(UploadReadSet), v1::UploadReadSetRequest(), v1::UploadReadSetResponse()),
            v1::ERROR_REASON_MISSING_FIELD);
  v1::OpenSessionRequest open;
  open.set_lease_us(1);
  EXPECT_EQ(refusal(KILOKV_METHOD(OpenSession), open, v1::OpenSessionResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  EXPECT_EQ(refusal(KILOKV_METHOD(KeepSessionAlive), v1::KeepSessionAliveRequest(), v1::KeepSessionAliveResponse()),
            v1::ERROR_REASON_MISSING_FIELD);
  v1::CloseSessionRequest close;
  EXPECT_EQ(refusal(KILOKV_METHOD(CloseSession), close, v1::CloseSessionResponse()), v1::ERROR_REASON_MISSING_FIELD);
  close.set_session("short");
  EXPECT_EQ(refusal(KILOKV_METHOD(CloseSession), close, v1::CloseSessionResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  v1::GetRequest get;
  EXPECT_EQ(refusal(KILOKV_METHOD(Get), get, v1::GetResponse()), v1::ERROR_REASON_MISSING_FIELD);
  get.add_keys(std::string(2048, 'x'));
  EXPECT_EQ(refusal(KILOKV_METHOD(Get), get, v1::GetResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  v1::ScanRequest scan;
  scan.set_reader("short");
  EXPECT_EQ(refusal(KILOKV_METHOD(Scan), scan, v1::ScanResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  v1::ListParkedRequest list;
  list.set_limit(10'001);
  EXPECT_EQ(refusal(KILOKV_METHOD(ListParked), list, v1::ListParkedResponse()), v1::ERROR_REASON_OUT_OF_RANGE);
  EXPECT_EQ(refusal(KILOKV_METHOD(Cancel), v1::CancelRequest(), v1::CancelResponse()), v1::ERROR_REASON_MISSING_FIELD);
#undef KILOKV_METHOD

  auto batch = context();
  auto reader = stub_->ExecuteBatch(batch.get(), {});
  v1::ExecuteBatchResponse slice;
  EXPECT_FALSE(reader->Read(&slice));
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_EQ(detail_of(*batch).reason(), v1::ERROR_REASON_MISSING_FIELD);

  auto session = context();
  auto stream = stub_->Session(session.get());
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Write({}));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().detail().reason(), v1::ERROR_REASON_MISSING_FIELD);
  session->TryCancel();
  stream->Finish();
}

TEST_F(ServiceTest, MalformedMessagesAndUnknownMethodsAreRefusedInOurWords) {
  grpc::GenericStub stub(grpc::CreateChannel(server_->endpoint(), grpc::InsecureChannelCredentials()));
  const auto refusal = [&](const std::string& method, grpc::ClientContext* call) {
    const grpc::Slice garbage("\xff\xff\xff");
    grpc::ByteBuffer request(&garbage, 1), response;
    std::promise<grpc::Status> ended;
    stub.UnaryCall(call, method, {}, &request, &response, [&](grpc::Status status) { ended.set_value(status); });
    return ended.get_future().get();
  };
  service_.serve(&database_);
  const auto* methods = v1::ErrorDetail::descriptor()->file()->FindServiceByName("KiloKV");
  ASSERT_GE(methods->method_count(), 12);
  for (int i = 0; i < methods->method_count(); ++i) {
    auto call = context();
    const grpc::Status status = refusal("/kilokv.v1.KiloKV/" + methods->method(i)->name(), call.get());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << methods->method(i)->name();
    EXPECT_EQ(detail_of(*call).reason(), v1::ERROR_REASON_MALFORMED_MESSAGE) << methods->method(i)->name();
    EXPECT_EQ(detail_of(*call).field(), "message");
  }
  auto call = context();
  const grpc::Status status = refusal("/kilokv.v1.KiloKV/Jump", call.get());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(status.error_message(), "unknown method /kilokv.v1.KiloKV/Jump");
  EXPECT_EQ(detail_of(*call).reason(), v1::ERROR_REASON_UNKNOWN_METHOD);
  EXPECT_TRUE(detail_of(*call).not_run());
  EXPECT_EQ(database_.submitted(), 0u);
}

// A parsed message can take many times the memory of its bytes, so the length is checked first. Malformed bytes show
// it.
TEST_F(ServiceTest, AnOverlongMessageOfAnyMethodIsNotParsed) {
  service_.serve(&database_);
  grpc::GenericStub stub(grpc::CreateChannel(server_->endpoint(), grpc::InsecureChannelCredentials()));
  grpc::ByteBuffer response;
  const auto send = [&](const std::string& method, const std::string& bytes, grpc::ClientContext* call) {
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1);
    std::promise<grpc::Status> ended;
    stub.UnaryCall(call, "/kilokv.v1.KiloKV/" + method, {}, &request, &response,
                   [&](grpc::Status status) { ended.set_value(status); });
    return ended.get_future().get();
  };
  const std::size_t most = ServiceOptions().message_bytes_max;
  const auto* methods = v1::ErrorDetail::descriptor()->file()->FindServiceByName("KiloKV");
  for (int i = 0; i < methods->method_count(); ++i) {
    const std::string& method = methods->method(i)->name();
    if (method == "Session") continue;
    auto fits = context(), too_long = context();
    EXPECT_EQ(send(method, std::string(most, '\xff'), fits.get()).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(detail_of(*fits).reason(), v1::ERROR_REASON_MALFORMED_MESSAGE) << method;
    EXPECT_EQ(send(method, std::string(most + 1, '\xff'), too_long.get()).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
    const v1::ErrorDetail detail = detail_of(*too_long);
    EXPECT_EQ(detail.reason(), v1::ERROR_REASON_MESSAGE_TOO_LARGE) << method;
    EXPECT_EQ(detail.setting(), "--message-bytes-max") << method;
    EXPECT_EQ(detail.limit(), std::to_string(most) + " bytes") << method;
    EXPECT_EQ(detail.actual(), std::to_string(most + 1) + " bytes") << method;
    EXPECT_TRUE(detail.not_run()) << method;
  }

  // A stream reads the number, because the refusal names it. The rows are malformed inside.
  v1::SessionRequest head;
  head.set_number(7);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream out(&bytes);
    google::protobuf::io::CodedOutputStream coded(&out);
    coded.WriteTag(v1::SessionRequest::kRowsFieldNumber << 3 | 2);
    coded.WriteVarint32(static_cast<std::uint32_t>(most));
    coded.WriteString(std::string(most, '\xff'));
  }
  bytes += head.SerializeAsString();
  auto stream = context();
  EXPECT_TRUE(send("Session", bytes, stream.get()).ok());
  v1::SessionResponse refused;
  ASSERT_TRUE(parse_message(&response, UINT64_MAX, &refused).ok());
  EXPECT_EQ(refused.number(), 7u);
  EXPECT_EQ(refused.error().detail().reason(), v1::ERROR_REASON_MESSAGE_TOO_LARGE);
  EXPECT_TRUE(refused.error().detail().not_run());
  auto no_fields = context();
  EXPECT_EQ(send("Session", std::string(most + 1, '\xff'), no_fields.get()).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*no_fields).reason(), v1::ERROR_REASON_MALFORMED_MESSAGE);
  EXPECT_EQ(database_.submitted(), 0u);
}

TEST_F(ServiceTest, TheDetailRidesOnEveryCode) {
  v1::ExecuteResponse response;
  auto recovering = context();
  EXPECT_EQ(stub_->Execute(recovering.get(), execute_request(), &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(detail_of(*recovering).reason(), v1::ERROR_REASON_RECOVERING);
  EXPECT_TRUE(detail_of(*recovering).not_run());
  service_.serve(&database_);
  const std::pair<Status, v1::ErrorReason> refusals[] = {
      {Status(StatusCode::failed_precondition, ErrorReason::session_unknown, "x"), v1::ERROR_REASON_SESSION_UNKNOWN},
      {Status(StatusCode::aborted, ErrorReason::snapshot_too_old, "x"), v1::ERROR_REASON_SNAPSHOT_TOO_OLD},
      {Status(StatusCode::unavailable, ErrorReason::draining, "x"), v1::ERROR_REASON_DRAINING},
      {Status(StatusCode::data_loss, "x"), v1::ERROR_REASON_CORRUPT},
      {Status(StatusCode::internal, "x"), v1::ERROR_REASON_FAILED}};
  for (const auto& [status, reason] : refusals) {
    std::thread answerer([this, &status = status] { database_.take()->sink->fail(status); });
    auto call = context();
    EXPECT_EQ(stub_->Execute(call.get(), execute_request(), &response).error_code(), to_grpc_code(status.code()));
    answerer.join();
    EXPECT_EQ(detail_of(*call).reason(), reason) << to_string(status.code());
    EXPECT_FALSE(detail_of(*call).not_run());
  }
  service_.close();
  auto draining = context();
  EXPECT_FALSE(stub_->Execute(draining.get(), execute_request(), &response).ok());
  EXPECT_EQ(detail_of(*draining).reason(), v1::ERROR_REASON_DRAINING);
}

TEST_F(ServiceTest, TheOtherCalls) {
  service_.serve(&database_);
  v1::OpenSessionResponse opened;
  ASSERT_TRUE(stub_->OpenSession(context().get(), {}, &opened).ok());
  EXPECT_EQ(opened.session().size(), 16u);
  EXPECT_EQ(opened.lease_us(), 60000000u);
  v1::OpenSessionRequest short_lease;
  short_lease.set_lease_us(5);
  auto call = context();
  EXPECT_FALSE(stub_->OpenSession(call.get(), short_lease, &opened).ok());
  EXPECT_EQ(detail_of(*call).setting(), "--session-lease-min");

  v1::KeepSessionAliveRequest keep;
  keep.set_session(std::string(16, 's'));
  v1::KeepSessionAliveResponse kept;
  EXPECT_EQ(stub_->KeepSessionAlive(context().get(), keep, &kept).error_code(), grpc::StatusCode::FAILED_PRECONDITION);

  v1::ScanRequest scan;
  scan.mutable_range()->set_from("f");
  v1::ScanResponse page;
  ASSERT_TRUE(stub_->Scan(context().get(), scan, &page).ok());
  EXPECT_EQ(page.pairs(0).value().bytes(), "v");
  scan.set_boundary(3);
  EXPECT_EQ(stub_->Scan(context().get(), scan, &page).error_code(), grpc::StatusCode::ABORTED);
  scan.mutable_range()->set_to("e");
  EXPECT_EQ(stub_->Scan(context().get(), scan, &page).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  v1::ListParkedRequest list;
  list.set_limit(3);
  v1::ListParkedResponse parked;
  ASSERT_TRUE(stub_->ListParked(context().get(), list, &parked).ok());
  EXPECT_EQ(parked.parked_size(), 3);
  EXPECT_TRUE(parked.more());

  v1::CancelResponse cancelled;
  EXPECT_EQ(stub_->Cancel(context().get(), {}, &cancelled).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::GetResponse got;
  auto no_keys = context();
  EXPECT_EQ(stub_->Get(no_keys.get(), {}, &got).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(detail_of(*no_keys).field(), "keys");
}

}  // namespace
}  // namespace kilokv::server
