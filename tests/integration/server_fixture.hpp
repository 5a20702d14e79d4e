// The real kilokvd under test, and its protocol without the client library. Thread safety: none.
#pragma once

#include <grpcpp/create_channel.h>
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
#include <vector>

#include "kilokv/v1/kilokv.grpc.pb.h"

namespace kilokv {

inline std::string kilokvd() {
  const char* directory = std::getenv("KILOKV_BIN_DIR");
  return std::string(directory != nullptr ? directory : ".") + "/kilokvd";
}

// A kilokvd on its own folder and port. The destructor ends it with SIGKILL if the test has not stopped it.
class Server {
 public:
  explicit Server(std::vector<std::string> flags = {}) {
    std::string pattern = testing::TempDir() + "kilokvd-service-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    flags.insert(flags.begin(), {kilokvd(), "--data-dir", folder_ + "/data", "--listen", "127.0.0.1:0", "--port-file",
                                 folder_ + "/port", "--log-file", folder_ + "/log"});
    std::vector<char*> arguments;
    for (std::string& flag : flags) arguments.push_back(flag.data());
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    wait_until_ready();
  }
  Server(const Server&) = delete;
  ~Server() {
    if (process_ > 0) stop(SIGKILL);
    std::filesystem::remove_all(folder_);
  }

  bool ready() const { return port_ != 0; }
  std::unique_ptr<v1::KiloKV::Stub> stub() const {
    return v1::KiloKV::NewStub(grpc::CreateChannel(endpoint(), grpc::InsecureChannelCredentials()));
  }
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string log() const {
    std::ifstream file(folder_ + "/log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Returns the exit code; 128 + signal if a signal ended it.
  int stop(int signal) {
    ::kill(process_, signal);
    int state = 0;
    ::waitpid(process_, &state, 0);
    process_ = 0;
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  }

 private:
  void wait_until_ready() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (port_ == 0 && std::chrono::steady_clock::now() < deadline) {
      std::ifstream(folder_ + "/port") >> port_;
      if (port_ == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // polls a file, because nothing would wake it
    }
  }

  std::string folder_;
  pid_t process_ = 0;
  int port_ = 0;
};

inline void set_deadline(grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

inline v1::ErrorDetail detail_of(const grpc::ClientContext& context) {
  v1::ErrorDetail detail;
  const auto found = context.GetServerTrailingMetadata().find("kilokv-error-bin");
  if (found != context.GetServerTrailingMetadata().end()) {
    detail.ParseFromArray(found->second.data(), static_cast<int>(found->second.size()));
  }
  return detail;
}

inline v1::Transaction add(const std::string& key, std::int64_t delta) {
  v1::Transaction transaction;
  v1::Operation* operation = transaction.add_then();
  operation->set_kind(v1::OPERATION_KIND_ADD);
  operation->set_key(key);
  operation->mutable_operand()->set_integer(delta);
  return transaction;
}

}  // namespace kilokv
