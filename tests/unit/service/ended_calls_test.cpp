// What is left of a call that has ended while its transactions still wait: a small sink in core, and nothing else.
#include <malloc.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

class EndedCallsTest : public ServiceTest {
 protected:
  using Begin = std::function<std::unique_ptr<Request>()>;

  void SetUp() override { service_.serve(&database_); }

  static bool becomes(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return holds();
  }

  // Begins a call, and cancels it when its request waits.
  std::unique_ptr<Request> cancelled_execute(const v1::ExecuteRequest& request) {
    auto call = context();
    v1::ExecuteResponse response;
    std::promise<grpc::Status> ended;
    stub_->async()->Execute(call.get(), &request, &response,
                            [&](grpc::Status status) { ended.set_value(std::move(status)); });
    std::unique_ptr<Request> held = database_.take();
    call->TryCancel();
    EXPECT_EQ(ended.get_future().get().error_code(), grpc::StatusCode::CANCELLED);
    return held;
  }
  std::unique_ptr<Request> cancelled_batch(const v1::ExecuteBatchRequest& request) {
    auto call = context();
    const auto reader = stub_->ExecuteBatch(call.get(), request);
    std::unique_ptr<Request> held = database_.take();
    call->TryCancel();
    EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
    return held;
  }
  std::unique_ptr<Request> cancelled_stream(const v1::SessionRequest& request) {
    auto call = context();
    const auto stream = stub_->Session(call.get());
    EXPECT_TRUE(stream->Write(request));
    std::unique_ptr<Request> held = database_.take();
    call->TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
    return held;
  }

  // Every call holds its client, so the client tells whether a call is still there.
  void expect_call_to_go(const Begin& cancelled) {
    const std::unique_ptr<Request> first = cancelled();
    ASSERT_NE(first, nullptr);
    EXPECT_TRUE(becomes([&] { return first->sink->gone(); }));
    const std::shared_ptr<Client> client = first->client;
    first->client.reset();
    std::vector<std::unique_ptr<Request>> held;
    for (int i = 0; i < 20; ++i) {
      held.push_back(cancelled());
      ASSERT_NE(held.back(), nullptr);
      EXPECT_EQ(held.back()->client, client);
      held.back()->client.reset();
    }
    for (const auto& one : held) EXPECT_TRUE(becomes([&] { return one->sink->gone(); }));
    // The connection holds its client, too, but fewer than 20 times.
    EXPECT_TRUE(becomes([&] { return client.use_count() < 20; })) << client.use_count();
    for (const auto& one : held) test::FakeDatabase::commit(one.get());  // nobody is left to hear it
    first->sink->fail(Status(StatusCode::cancelled, "cancelled"));
  }
};

TEST_F(EndedCallsTest, ExecuteDetached) {
  v1::ExecuteRequest request = execute_request();
  request.set_detached(true);
  expect_call_to_go([&] { return cancelled_execute(request); });
}

TEST_F(EndedCallsTest, ExecuteInASession) {
  v1::ExecuteRequest request = execute_request();
  request.mutable_id()->set_session(std::string(16, 's'));
  request.mutable_id()->set_number(1);
  expect_call_to_go([&] { return cancelled_execute(request); });
}

TEST_F(EndedCallsTest, ExecuteBatchDetached) {
  v1::ExecuteBatchRequest request;
  *request.mutable_rows()->add_transactions() = test::transfer("a", "b", 1);
  request.set_detached(true);
  expect_call_to_go([&] { return cancelled_batch(request); });
}

TEST_F(EndedCallsTest, ExecuteBatchInASession) {
  v1::ExecuteBatchRequest request;
  *request.mutable_rows()->add_transactions() = test::transfer("a", "b", 1);
  request.mutable_id()->set_session(std::string(16, 's'));
  request.mutable_id()->set_number(1);
  expect_call_to_go([&] { return cancelled_batch(request); });
}

TEST_F(EndedCallsTest, StreamWithASession) {
  v1::SessionRequest request = session_request(1);
  request.set_session(std::string(16, 's'));
  expect_call_to_go([&] { return cancelled_stream(request); });
}

// The memory is free, and not only the objects are destroyed.
TEST_F(EndedCallsTest, LeaveOnlyTheirSinks) {
  constexpr std::size_t kWarm = 200, kCalls = 1000;
  v1::ExecuteRequest request = execute_request();
  request.set_detached(true);
  std::vector<std::shared_ptr<ResponseSink>> sinks;
  sinks.reserve(kWarm + kCalls);
  const auto call = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) sinks.push_back(cancelled_execute(request)->sink);
    for (const auto& sink : sinks) ASSERT_TRUE(becomes([&] { return sink->gone(); }));
  };
  call(kWarm);
  const std::size_t before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  call(kCalls);
  EXPECT_TRUE(becomes([&] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd < before + kCalls * 3 * kSinkBytes; }))
      << (::mallinfo2().uordblks + ::mallinfo2().hblkhd - before) / kCalls << " bytes for each call";
}

// A call that nobody has ended stays until its answer, whatever else holds it.
TEST_F(EndedCallsTest, ACallThatWaitsGetsItsAnswer) {
  auto call = context();
  v1::ExecuteRequest request = execute_request();
  request.set_detached(true);
  v1::ExecuteResponse response;
  std::promise<grpc::Status> ended;
  stub_->async()->Execute(call.get(), &request, &response,
                          [&](grpc::Status status) { ended.set_value(std::move(status)); });
  const std::unique_ptr<Request> held = database_.take();
  ASSERT_NE(held, nullptr);
  held->client.reset();
  for (int i = 0; i < 100; ++i) cancelled_execute(request);
  EXPECT_FALSE(held->sink->gone());
  test::FakeDatabase::commit(held.get());
  EXPECT_TRUE(ended.get_future().get().ok());
  EXPECT_TRUE(becomes([&] { return held->sink->gone(); })) << "gRPC has let go of it";
}

}  // namespace
}  // namespace kilokv::server
