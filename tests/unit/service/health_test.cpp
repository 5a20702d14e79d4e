// The health check, by the client of gRPC: the states, the names, and what a stranger can do with it.
#include "server/service/health.hpp"

#include <grpc/health/v1/health.grpc.pb.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/service/service_fixture.hpp"

namespace kilokv::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using Stub = grpc::health::v1::Health;

class HealthTest : public ServiceTest {
 protected:
  HealthTest() : HealthTest(ServiceOptions()) {}
  explicit HealthTest(const ServiceOptions& options) : ServiceTest(options) {
    channel_ = grpc::CreateChannel(server_->endpoint(), grpc::InsecureChannelCredentials());
    health_ = Stub::NewStub(channel_);
  }
  static HealthCheckRequest request(const std::string& name) {
    HealthCheckRequest request;
    request.set_service(name);
    return request;
  }
  grpc::Status check(const std::string& name, HealthCheckResponse* response) {
    const auto call = context();
    return health_->Check(call.get(), request(name), response);
  }
  int state_of(const std::string& name) {
    HealthCheckResponse response;
    EXPECT_TRUE(check(name, &response).ok());
    return response.status();
  }

  // Begins watches until one is refused, but no more than `most`. Returns how the last one ended; OK: it is open.
  grpc::Status watch_until_refused(std::size_t most) {
    grpc::Status status;
    while (watching_.size() < most && status.ok()) {
      watching_.push_back(context());
      watches_.push_back(health_->Watch(watching_.back().get(), request("")));
      HealthCheckResponse response;
      if (!watches_.back()->Read(&response)) status = watches_.back()->Finish();
    }
    return status;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Stub::Stub> health_;
  std::vector<std::shared_ptr<grpc::ClientContext>> watching_;
  std::vector<std::unique_ptr<grpc::ClientReader<HealthCheckResponse>>> watches_;
};

TEST_F(HealthTest, BothNamesHaveTheStateOfTheServer) {
  for (const bool serving : {false, true, false}) {
    service_.set_serving(serving);
    for (const char* name : {"", "kilokv.v1.KiloKV"}) {
      EXPECT_EQ(state_of(name), serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING) << name;
    }
  }
}

TEST_F(HealthTest, AnotherNameIsNotThere) {
  HealthCheckResponse response;
  const grpc::Status status = check("kilokv\n", &response);
  EXPECT_EQ(status.error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "this server has no service \"kilokv\\n\"");
  const auto call = context();
  const auto watch = health_->Watch(call.get(), request("kilokv"));
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  call->TryCancel();
}

TEST_F(HealthTest, AWatchIsToldOfEachChange) {
  service_.set_serving(false);
  const auto call = context();
  const auto watch = health_->Watch(call.get(), request(""));
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  service_.set_serving(false);  // no change
  for (const bool serving : {true, false, true}) {
    service_.set_serving(serving);
    ASSERT_TRUE(watch->Read(&response));
    EXPECT_EQ(response.status(), serving ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING);
  }
  service_.close();
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::UNAVAILABLE);
  EXPECT_EQ(state_of(""), HealthCheckResponse::SERVING) << "a check is answered until the end";
}

TEST_F(HealthTest, ALongRequestIsRefused) {
  HealthCheckResponse response;
  EXPECT_EQ(check(std::string(Health::kRequestBytesMax, 'n'), &response).error_code(), grpc::INVALID_ARGUMENT);
  const auto call = context();
  const auto watch = health_->Watch(call.get(), request(std::string(Health::kRequestBytesMax, 'n')));
  EXPECT_FALSE(watch->Read(&response));
  EXPECT_EQ(watch->Finish().error_code(), grpc::INVALID_ARGUMENT);
}

class HealthWithLoginsTest : public HealthTest {
 protected:
  HealthWithLoginsTest() : HealthTest(ServiceOptions{.limits = {}, .login = true}) {}
};

TEST_F(HealthWithLoginsTest, ACheckNeedsNoLogin) {
  service_.set_serving(true);
  EXPECT_EQ(state_of(""), HealthCheckResponse::SERVING);
  const auto call = context();
  const auto watch = health_->Watch(call.get(), request(""));
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  call->TryCancel();
  EXPECT_EQ(service_.logins().refused(), 0u);
}

class HealthWithLittleRoomTest : public HealthTest {
 protected:
  static constexpr std::uint64_t kStrangersBytes = 1 << 20;
  HealthWithLittleRoomTest()
      : HealthTest(ServiceOptions{
            .calls_bytes_max = 16 * kStrangersBytes, .handshake_us_max = 500000, .limits = {}, .login = true}) {}
};

TEST_F(HealthWithLittleRoomTest, StrangersHaveASmallPartOfTheMemoryOfCalls) {
  const grpc::Status status = watch_until_refused(200);
  EXPECT_GT(watching_.size(), 40u);
  EXPECT_LT(watching_.size(), 100u);
  EXPECT_LE(service_.logins().open_call_bytes(), kStrangersBytes);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("bytes of open calls without a login"), std::string::npos)
      << status.error_message();
  EXPECT_EQ(detail_of(*watching_.back()).reason(), v1::ERROR_REASON_CALLS_FULL);
  EXPECT_EQ(detail_of(*watching_.back()).setting(), "--calls-bytes-max");
  for (const auto& call : watching_) call->TryCancel();
}

TEST_F(HealthWithLittleRoomTest, ACallWithoutAMessageIsCancelled) {
  grpc::GenericStub stub(channel_);
  for (const char* method : {kHealthCheckMethod, kHealthWatchMethod}) {
    const auto call = context();
    grpc::CompletionQueue queue;
    const auto began = std::chrono::steady_clock::now();
    const auto stream = stub.PrepareCall(call.get(), method, &queue);
    stream->StartCall(nullptr);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    grpc::Status status;
    stream->Finish(&status, nullptr);
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(status.error_code(), grpc::CANCELLED) << method << ": " << status.error_message();
    EXPECT_LT(std::chrono::steady_clock::now() - began, kDeadline / 2);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
  }
  // A watch that has sent its message stays.
  const auto call = context();
  const auto watch = health_->Watch(call.get(), request(""));
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  std::this_thread::sleep_for(std::chrono::seconds(1));
  service_.set_serving(true);
  EXPECT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  call->TryCancel();
}

class HealthWithoutRoomTest : public HealthTest {
 protected:
  HealthWithoutRoomTest() : HealthTest(ServiceOptions{.calls_bytes_max = 1 << 20, .limits = {}}) {}
};

// gRPC's own service would count them nowhere.
TEST_F(HealthWithoutRoomTest, OpenWatchesHaveTheirPlaceAmongAllCalls) {
  const grpc::Status status = watch_until_refused(100);
  EXPECT_GT(watching_.size(), 10u);
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("--calls-bytes-max"), std::string::npos) << status.error_message();
  for (const auto& call : watching_) call->TryCancel();
}

}  // namespace
}  // namespace kilokv::server
