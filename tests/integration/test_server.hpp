// The real kilokvd under test, on a folder of its own. It can be killed and started again at the same port. The
// destructor ends it with SIGKILL if the test has not stopped it. Thread safety: none.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/test_folder.hpp"

namespace kilokv::test {

inline std::string kilokvd() {
  const char* directory = std::getenv("KILOKV_BIN_DIR");
  return std::string(directory != nullptr ? directory : ".") + "/kilokvd";
}

class TestServer {
 public:
  explicit TestServer(std::vector<std::string> flags = {}) : flags_(std::move(flags)) { start(); }
  // On a copy of the data directory `data`.
  TestServer(std::vector<std::string> flags, const std::filesystem::path& data) : flags_(std::move(flags)) {
    std::filesystem::copy(data, data_directory(), std::filesystem::copy_options::recursive);
    start();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() {
    if (process_ > 0) stop(SIGKILL);
  }

  // Requires: it does not run.
  void start() {
    std::filesystem::remove(folder_.path("port"));
    std::vector<std::string> words = {
        kilokvd(),     "--data-dir",         data_directory(), "--listen",         "127.0.0.1:" + std::to_string(port_),
        "--port-file", folder_.path("port"), "--log-file",     folder_.path("log")};
    words.insert(words.end(), flags_.begin(), flags_.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      // NOLINTNEXTLINE(concurrency-mt-unsafe): this process has one thread
      ::setenv("KILOKV_HTTP_LISTEN", "127.0.0.1:0", 0);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
  }
  // Returns the exit code; 128 + signal if a signal ended it.
  int stop(int signal) {
    ::kill(process_, signal);
    int state = 0;
    ::waitpid(process_, &state, 0);
    process_ = 0;
    return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  }
  void kill() { stop(SIGKILL); }

  // Where it listens. The first start has to find a port, so this waits for it; port 0 means that none came in a
  // minute.
  std::string endpoint() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (port_ == 0 && std::chrono::steady_clock::now() < deadline) {
      std::ifstream(folder_.path("port")) >> port_;
      // The server writes a file; nothing wakes a reader of it.
      if (port_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return "127.0.0.1:" + std::to_string(port_);
  }
  bool ready() {
    endpoint();
    return port_ != 0;
  }
  std::string data_directory() const { return folder_.path("data"); }
  std::string log() const {
    std::ifstream file(folder_.path("log"));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  const TestFolder folder_;
  const std::vector<std::string> flags_;
  int port_ = 0;
  pid_t process_ = 0;
};

}  // namespace kilokv::test
