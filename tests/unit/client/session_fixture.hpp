// A client with a session, against a fake server. Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "client/lib/src/error.hpp"
#include "tests/unit/client/fake_server.hpp"
#include "tests/unit/client/test_batch.hpp"

namespace kilokv::client {

class SessionTest : public ::testing::Test {
 protected:
  void open(const SessionOptions& options = {}) {
    auto client = Client::connect(server_.client_options());
    ASSERT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
    auto session = client_->open_session(options);
    ASSERT_TRUE(session) << session.error().message;
    session_ = std::move(*session);
  }

  static CallOptions within(std::uint64_t timeout_us, Encoding encoding = Encoding::columns) {
    CallOptions options;
    options.timeout_us = timeout_us;
    options.encoding = encoding;
    return options;
  }

  static ErrorCode error_code_of(grpc::StatusCode code) { return client::error_code(static_cast<std::uint32_t>(code)); }

  // A transaction that can be sent with an upload, and one that must be.
  static Batch one_read() { return reads(1); }
  static Batch many_reads() { return reads(2'000); }
  static Batch reads(int keys) {
    Batch batch;
    batch.begin();
    for (int i = 0; i < keys; ++i) batch.guard_version(batch.key("read" + std::to_string(i)), 0);
    batch.add(batch.key("sum"), 1);
    batch.end();
    return batch;
  }

  // Sends until a message acknowledges `number`: that happens soon after an answer, not with it.
  void expect_acknowledged(std::uint64_t number) {
    for (int i = 0; i < 1'000 && server_.seen().back().acknowledged_through() < number; ++i) {
      ASSERT_TRUE(session_->execute(adds(1)));
    }
    EXPECT_GE(server_.seen().back().acknowledged_through(), number);
  }

  static v1::SessionResponse refusal(std::uint64_t number, grpc::StatusCode code, std::uint64_t retry_after_us) {
    v1::SessionResponse response;
    response.set_number(number);
    response.set_last(true);
    response.mutable_error()->set_code(static_cast<std::uint32_t>(code));
    response.mutable_error()->set_message("refused");
    response.mutable_error()->mutable_detail()->set_retry_after_us(retry_after_us);
    response.mutable_error()->mutable_detail()->set_not_run(true);
    response.mutable_error()->mutable_detail()->set_setting("--some-setting");
    return response;
  }
  static v1::SessionResponse refusal_for_load(std::uint64_t number, std::uint64_t retry_after_us) {
    v1::SessionResponse response = refusal(number, grpc::StatusCode::RESOURCE_EXHAUSTED, retry_after_us);
    response.mutable_error()->mutable_detail()->set_reason(v1::ERROR_REASON_QUEUE_FULL);
    return response;
  }

  FakeServer server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
};

}  // namespace kilokv::client
