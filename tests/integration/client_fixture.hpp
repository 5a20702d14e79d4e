// The client library against the real kilokvd: a server that can be killed, and a client with a session. Thread safety:
// none.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kilokv/client.hpp"
#include "tests/integration/test_server.hpp"

namespace kilokv::client {

using Server = test::TestServer;

class ClientIntegration : public ::testing::Test {
 protected:
  explicit ClientIntegration(std::vector<std::string> flags = {}) : server_(std::move(flags)) {}
  void SetUp() override {
    ClientOptions options;
    options.endpoint = server_.endpoint();
    options.connect_timeout_us = options.request_timeout_us = 60'000'000;
    auto client = Client::connect(options);
    ASSERT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
    session_ = open_session();
  }
  std::unique_ptr<Session> open_session() {
    auto session = client_->open_session();
    EXPECT_TRUE(session) << session.error().message;
    return std::move(*session);
  }
  std::int64_t integer(const std::string& key) {
    const auto results = client_->get({key});
    EXPECT_TRUE(results) << results.error().message;
    const ValueView value = results->read(0, 0).value;
    const auto* found = std::get_if<std::int64_t>(&value);
    return found == nullptr ? 0 : *found;
  }
  void put(const std::string& key, const Operand& value) {
    Batch batch;
    batch.begin();
    batch.put(batch.key(key), value);
    batch.end();
    const auto result = session_->execute(batch);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->results.outcome(0), Outcome::committed);
  }

  Server server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
};

}  // namespace kilokv::client
