// Streams, answers that clients do not take, and calls that end without their answer.
#include <malloc.h>

#include <chrono>
#include <deque>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

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

// What the stream has sent without a session ends with it, also if it is the server that ends it.
TEST_F(ServiceTest, TheEndOfAStreamByTheServerIsTold) {
  service_.serve(&database_);
  auto call = context();
  auto stream = stub_->Session(call.get());
  ASSERT_TRUE(stream->Write(session_request(1)));
  const auto held = database_.take();
  ASSERT_NE(held, nullptr);
  v1::SessionRequest later = session_request(2);
  later.set_session("short");  // refused, and the stream goes on
  ASSERT_TRUE(stream->Write(later));
  v1::SessionResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().detail().field(), "session");
  EXPECT_EQ(database_.abandoned(), 0u);
  service_.close();
  EXPECT_FALSE(stream->Read(&response));
  stream->Finish();
  EXPECT_EQ(database_.abandoned(), 1u);
  test::FakeDatabase::commit(held.get());
}

// A parsed request does not live as long as its call, which may wait long for its end.
TEST_F(ServiceTest, CallsThatWaitDoNotHoldTheirRequests) {
  constexpr std::size_t kCalls = 100;
  constexpr int kIndices = 65536;  // 256 KiB when they are parsed
  service_.serve(&database_);
  database_.hold_cancels();
  v1::CancelRequest request;
  request.mutable_transactions()->set_session(std::string(16, 's'));
  for (int i = 0; i < kIndices; ++i) request.mutable_transactions()->add_indices(1);
  struct Waiting {
    std::unique_ptr<grpc::ClientContext> context = ServiceTest::context();
    v1::CancelResponse response;
    std::promise<grpc::Status> ended;
  };
  std::vector<std::unique_ptr<Waiting>> calls;
  const auto call_all = [&](std::size_t count) {
    while (calls.size() < count) {
      Waiting* const call = calls.emplace_back(std::make_unique<Waiting>()).get();
      stub_->async()->Cancel(call->context.get(), &request, &call->response,
                             [call](grpc::Status status) { call->ended.set_value(std::move(status)); });
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (database_.held_cancels() < calls.size() && std::chrono::steady_clock::now() < end) {
        std::this_thread::yield();
      }
    }
  };
  call_all(4);
  const std::size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  call_all(kCalls);
  ASSERT_EQ(database_.held_cancels(), kCalls);
  const std::size_t after = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  // The client of the test is in this process, and holds the bytes of each message, a quarter of the parsed ones.
  EXPECT_LT(after, before + kCalls * kIndices * sizeof(std::uint32_t) / 2);
  database_.answer_cancels();
  for (const auto& call : calls) EXPECT_TRUE(call->ended.get_future().get().ok());
}

ServiceOptions few_streams() {
  ServiceOptions options;
  options.streams_max = 1;
  return options;
}

class FewStreamsTest : public ServiceTest {
 protected:
  FewStreamsTest() : ServiceTest(few_streams()) {}
};

TEST_F(FewStreamsTest, AFurtherOneIsRefusedUntilOneEnds) {
  service_.serve(&database_);
  const auto opens = [&] {
    auto call = context();
    auto stream = stub_->Session(call.get());
    v1::SessionResponse response;
    static_cast<void>(stream->Write(session_request(1)));
    stream->WritesDone();
    static_cast<void>(stream->Read(&response));
    return stream->Finish();
  };
  {
    auto call = context();
    auto held = stub_->Session(call.get());
    ASSERT_TRUE(held->Write(session_request(1)));
    const auto request = database_.take();  // so it is open
    const grpc::Status refused = opens();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_NE(refused.error_message().find("--streams-max"), std::string::npos) << refused.error_message();
    call->TryCancel();
    held->Finish();
    test::FakeDatabase::commit(request.get());
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  grpc::Status status;
  std::thread answerer([&] {
    if (const auto request = database_.take()) test::FakeDatabase::commit(request.get());
  });
  do {
    status = opens();
  } while (!status.ok() && std::chrono::steady_clock::now() < end);
  EXPECT_TRUE(status.ok()) << status.error_message();
  answerer.join();
}

ServiceOptions small_grpc() {
  ServiceOptions options;
  options.grpc_memory_max = std::uint64_t{32} << 20;
  return options;
}

class SmallGrpcTest : public ServiceTest {
 protected:
  SmallGrpcTest() : ServiceTest(small_grpc()) {}
};

// gRPC forgets a message when it is decoded, and not only when the transaction has its answer.
TEST_F(SmallGrpcTest, TransactionsThatWaitDoNotHoldTheirMessages) {
  constexpr int kCalls = 32;  // of 3 MiB: three times what gRPC has
  service_.serve(&database_);
  v1::ExecuteRequest request = execute_request();
  for (int i = 0; i < 3; ++i) {
    v1::Operation* put = request.mutable_transaction()->add_then();
    put->set_kind(v1::OPERATION_KIND_PUT);
    put->set_key("v" + std::to_string(i));
    put->mutable_operand()->set_bytes(std::string(std::size_t{1} << 20, 'v'));
  }
  struct Waiting {
    std::unique_ptr<grpc::ClientContext> context = ServiceTest::context();
    v1::ExecuteResponse response;
    std::promise<grpc::Status> ended;
  };
  std::vector<std::unique_ptr<Waiting>> calls;
  std::vector<std::unique_ptr<Request>> held;
  for (int i = 0; i < kCalls; ++i) {
    Waiting* const call = calls.emplace_back(std::make_unique<Waiting>()).get();
    stub_->async()->Execute(call->context.get(), &request, &call->response,
                            [call](grpc::Status status) { call->ended.set_value(std::move(status)); });
    std::unique_ptr<Request> one = database_.take();
    ASSERT_NE(one, nullptr) << "call " << i << " does not arrive";
    one->transactions.clear();
    held.push_back(std::move(one));
  }
  for (const auto& one : held) one->sink->results(test::CommittedSlice(1), true);
  for (const auto& call : calls) EXPECT_TRUE(call->ended.get_future().get().ok());
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

ServiceOptions room_for_no_answer() {
  ServiceOptions options;
  options.stream_answer_bytes_max = 400;  // the answer has less than 40
  return options;
}

class SmallAnswerTest : public ServiceTest {
 protected:
  SmallAnswerTest() : ServiceTest(room_for_no_answer()) {}
};

// An answer counts with gRPC's buffer for it, which is longer than most answers.
TEST_F(SmallAnswerTest, CountsWithItsBuffer) {
  service_.serve(&database_);
  auto call = context();
  auto stream = stub_->Session(call.get());
  ASSERT_TRUE(stream->Write(session_request(1)));
  test::FakeDatabase::commit(database_.take().get());
  v1::SessionResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(detail_of(*call).setting(), "--stream-answer-bytes-max");
}

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
    while (service_.unsent_answer_bytes() > 0) std::this_thread::yield();  // the server learns a moment later
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

}  // namespace
}  // namespace kilokv::server
