// The client library against the real kilokvd: a server that can be killed, and a client with a session. Thread safety:
// none.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kilokv/client.hpp"

namespace kilokv::client {

// A kilokvd on its own folder. It can be killed and started again at the same port.
class Server {
 public:
  explicit Server(std::vector<std::string> flags = {}) : flags_(std::move(flags)) {
    std::string pattern = testing::TempDir() + "kilokv-client-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    start();
  }
  Server(const Server&) = delete;
  ~Server() {
    kill();
    std::filesystem::remove_all(folder_);
  }

  void start() {
    std::filesystem::remove(folder_ + "/port");
    const char* bin = std::getenv("KILOKV_BIN_DIR");
    std::vector<std::string> words = {std::string(bin != nullptr ? bin : ".") + "/kilokvd",
                                      "--data-dir",
                                      folder_ + "/data",
                                      "--listen",
                                      "127.0.0.1:" + std::to_string(port_),
                                      "--port-file",
                                      folder_ + "/port",
                                      "--log-file",
                                      folder_ + "/log"};
    words.insert(words.end(), flags_.begin(), flags_.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
  }
  void kill() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  // Waits for the port. Only the first start has to find it out.
  std::string endpoint() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (port_ == 0 && std::chrono::steady_clock::now() < deadline) {
      std::ifstream(folder_ + "/port") >> port_;
      if (port_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // polls a file
    }
    return "127.0.0.1:" + std::to_string(port_);
  }

 private:
  const std::vector<std::string> flags_;
  std::string folder_;
  int port_ = 0;
  pid_t process_ = 0;
};

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
