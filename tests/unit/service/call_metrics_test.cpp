// The counts of calls, through the real service.
#include "server/service/call_metrics.hpp"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

using Outcome = CallMetrics::Outcome;

class CallMetricsTest : public ServiceTest {
 protected:
  const CallMetrics& metrics() { return service_.environment()->metrics; }
  const CallMetrics::Method& of(const std::string& name) {
    const auto found = std::find_if(metrics().methods().begin(), metrics().methods().end(),
                                    [&](const auto& method) { return method.name() == name; });
    EXPECT_NE(found, metrics().methods().end()) << name;
    return *found;
  }
  std::uint64_t refusals(const std::string& reason) {
    for (const auto& [name, count] : metrics().refusals()) {
      if (name == reason) return count;
    }
    ADD_FAILURE() << reason;
    return 0;
  }
  // A call ends for its client before the server has counted it.
  static bool becomes(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST_F(CallMetricsTest, EveryMethodOfTheProtocolIsKnown) {
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("kilokv.v1.KiloKV");
  for (int i = 0; i < service->method_count(); ++i) {
    const std::string& name = service->method(i)->name();
    CallMetrics own;
    EXPECT_EQ(own.method("/kilokv.v1.KiloKV/" + name)->name(), name);
    EXPECT_EQ(of(name).is_timed(), name != "Session") << name;
  }
  CallMetrics own;
  EXPECT_EQ(own.method("/kilokv.v1.KiloKV/Nothing")->name(), "Unknown");
  EXPECT_EQ(own.method("")->name(), "Unknown");
}

TEST_F(CallMetricsTest, ACallIsInFlightUntilItIsAnswered) {
  service_.serve(&database_);
  std::thread call([&] {
    const auto own = context();
    v1::ExecuteResponse response;
    EXPECT_TRUE(stub_->Execute(own.get(), execute_request(), &response).ok());
  });
  const auto request = database_.take();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(of("Execute").in_flight(), 1u);
  EXPECT_EQ(of("Execute").ended(grpc::OK), 0u);
  EXPECT_EQ(service_.logins().clients(), 1u);
  database_.commit(request.get());
  call.join();
  EXPECT_TRUE(becomes([&] { return of("Execute").in_flight() == 0; }));
  EXPECT_EQ(of("Execute").ended(grpc::OK), 1u);
  EXPECT_EQ(of("Execute").duration(Outcome::ok).count, 1u);
  EXPECT_EQ(of("Get").ended(grpc::OK), 0u);
  EXPECT_TRUE(becomes([&] { return service_.logins().clients() == 0; })) << "the connection is open, and has no call";
}

TEST_F(CallMetricsTest, ARefusedCallCountsWithCodeAndReason) {
  v1::ExecuteResponse response;
  EXPECT_FALSE(stub_->Execute(context().get(), execute_request(), &response).ok());  // there is no database yet
  EXPECT_TRUE(becomes([&] { return of("Execute").ended(grpc::UNAVAILABLE) == 1; }));
  EXPECT_EQ(of("Execute").duration(Outcome::refused).count, 1u);
  EXPECT_EQ(of("Execute").duration(Outcome::ok).count, 0u);
  EXPECT_EQ(refusals("RECOVERING"), 1u);
  service_.serve(&database_);
  v1::ExecuteRequest wrong = execute_request();
  wrong.mutable_transaction()->mutable_then(0)->set_key(std::string(5000, 'k'));
  EXPECT_FALSE(stub_->Execute(context().get(), wrong, &response).ok());
  EXPECT_TRUE(becomes([&] { return of("Execute").ended(grpc::INVALID_ARGUMENT) == 1; }));
  EXPECT_EQ(of("Execute").duration(Outcome::error).count, 1u);
  EXPECT_EQ(refusals("OUT_OF_RANGE"), 1u);
}

TEST_F(CallMetricsTest, AClientThatGoesAwayIsNoRefusal) {
  service_.serve(&database_);
  const auto own = context();
  std::thread call([&] {
    v1::ExecuteResponse response;
    EXPECT_EQ(stub_->Execute(own.get(), execute_request(), &response).error_code(), grpc::CANCELLED);
  });
  const auto request = database_.take();
  ASSERT_NE(request, nullptr);
  own->TryCancel();
  call.join();
  EXPECT_TRUE(becomes([&] { return of("Execute").ended(grpc::CANCELLED) == 1; }));
  EXPECT_EQ(of("Execute").duration(Outcome::cancelled).count, 1u);
  EXPECT_EQ(of("Execute").in_flight(), 0u);
  for (const auto& [reason, count] : metrics().refusals()) EXPECT_EQ(count, 0u) << reason;
}

TEST_F(CallMetricsTest, EachRequestOfAStreamCounts) {
  service_.serve(&database_);
  const auto own = context();
  auto stream = stub_->Session(own.get());
  for (const std::uint64_t number : {1, 2}) EXPECT_TRUE(stream->Write(session_request(number)));
  EXPECT_TRUE(stream->Write(session_request(0)));  // a number from 1 on is needed
  v1::SessionResponse response;
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_TRUE(response.has_error());
  const auto first = database_.take(), second = database_.take();
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_TRUE(becomes([&] { return of("SessionRequest").in_flight() == 2; }));
  EXPECT_EQ(of("Session").in_flight(), 1u);
  EXPECT_EQ(refusals("MISSING_FIELD"), 1u);
  database_.commit(first.get());
  EXPECT_TRUE(stream->Read(&response));
  EXPECT_TRUE(becomes([&] { return of("SessionRequest").ended(grpc::OK) == 1; }));
  EXPECT_EQ(of("SessionRequest").ended(grpc::INVALID_ARGUMENT), 1u);
  EXPECT_EQ(of("SessionRequest").duration(Outcome::ok).count, 1u);
  own->TryCancel();  // nobody waits for the second one any more
  EXPECT_TRUE(becomes([&] { return of("Session").in_flight() == 0 && of("SessionRequest").in_flight() == 0; }));
  EXPECT_EQ(of("SessionRequest").ended(grpc::CANCELLED), 1u);
  EXPECT_EQ(of("Session").duration(Outcome::cancelled).count, 0u) << "the time of a stream says nothing";
}

TEST_F(CallMetricsTest, AStreamOfAnswersCountsAsOneCall) {
  service_.serve(&database_);
  v1::ExecuteBatchRequest request;
  *request.mutable_rows()->add_transactions() = test::transfer("a", "b", 1);
  const auto own = context();
  auto stream = stub_->ExecuteBatch(own.get(), request);
  const auto taken = database_.take();
  ASSERT_NE(taken, nullptr);
  database_.commit(taken.get());
  v1::ExecuteBatchResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(becomes([&] { return of("ExecuteBatch").ended(grpc::OK) == 1; }));
  EXPECT_EQ(of("ExecuteBatch").duration(Outcome::ok).count, 1u);
}

TEST_F(CallMetricsTest, UnknownMethodsHaveOneName) {
  const auto channel = grpc::CreateChannel(server_->endpoint(), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  for (const char* path : {"/kilokv.v1.KiloKV/Nothing", "/other/Thing"}) {
    const auto own = context();
    grpc::CompletionQueue queue;
    const grpc::ByteBuffer empty;
    auto call = stub.PrepareUnaryCall(own.get(), path, empty, &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(status.error_code(), grpc::UNIMPLEMENTED);
  }
  EXPECT_TRUE(becomes([&] { return of("Unknown").ended(grpc::UNIMPLEMENTED) == 2; }));
  EXPECT_EQ(refusals("UNKNOWN_METHOD"), 2u);
}

}  // namespace
}  // namespace kilokv::server
