// The service over a fake database, through a real channel. Thread safety: none; one thread, except where a test says
// so.
#pragma once

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/service/grpc_server.hpp"
#include "server/service/service.hpp"
#include "tests/support/error_detail.hpp"
#include "tests/unit/service/fake_database.hpp"
#include "tests/unit/service/messages.hpp"

namespace kilokv::server {

inline constexpr auto kDeadline = std::chrono::seconds(20);
inline const ServerInfo kInfo{.version = "1.2.3",
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
    server_->accept();
    stub_ = v1::KiloKV::NewStub(grpc::CreateChannel(server_->endpoint(), grpc::InsecureChannelCredentials()));
  }

  static std::unique_ptr<grpc::ClientContext> context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + kDeadline);
    return context;
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

}  // namespace kilokv::server
