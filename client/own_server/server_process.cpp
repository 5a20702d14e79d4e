// Role: see server_process.hpp.
#include "client/own_server/server_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "client/measure/clock.hpp"
#include "client/measure/steady_scan.hpp"

namespace kilokv::own_server {
namespace {

using bench::make_error;
using client::ErrorCode;

constexpr std::int64_t kStartTimeoutUs = 30'000'000;
constexpr std::int64_t kStopTimeoutUs = 10'000'000;
constexpr std::chrono::milliseconds kPollInterval{5};

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

// Runs in the child, between fork and exec, so it calls only functions that are safe there.
[[noreturn]] void become(std::vector<char*>& arguments, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

std::string find_server() {
  std::error_code none;  // without /proc: in the working folder
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  std::string beside = (self.parent_path() / "kilokvd").string();
  if (access(beside.c_str(), X_OK) == 0) return beside;
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string program = folder.empty() ? "kilokvd" : folder + "/kilokvd";  // an empty one: the working folder
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return beside;
}

ServerProcess::ServerProcess(std::string program, const std::string& data_dir, std::vector<std::string> flags)
    : program_(std::move(program)),
      data_dir_(data_dir + "/data"),
      log_path_(data_dir + "/kilokvd.log"),
      port_path_(data_dir + "/port"),
      flags_(std::move(flags)) {}

ServerProcess::~ServerProcess() { stop(); }

client::Expected<std::unique_ptr<ServerProcess>> ServerProcess::start(const std::string& program,
                                                                      const std::string& data_dir,
                                                                      std::vector<std::string> flags) {
  std::unique_ptr<ServerProcess> server(new ServerProcess(program, data_dir, std::move(flags)));
  if (access(program.c_str(), X_OK) != 0) {
    return make_error(ErrorCode::invalid_argument,
                      "cannot run " + program + ": " + std::generic_category().message(errno));
  }
  std::error_code error;
  std::filesystem::create_directories(server->data_dir_, error);
  if (error)
    return make_error(ErrorCode::invalid_argument, "--data-dir: cannot make " + data_dir + ": " + error.message());
  if (const client::Error failed = server->launch()) return failed;
  return server;
}

client::Error ServerProcess::start_again() { return launch(); }

client::Error ServerProcess::start_again(std::vector<std::string> flags) {
  flags_ = std::move(flags);
  return launch();
}

client::Error ServerProcess::launch() {
  std::filesystem::remove(port_path_);
  const int log = open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0)
    return make_error(ErrorCode::internal, "cannot write " + log_path_ + ": " + std::generic_category().message(errno));
  std::vector<std::string> words = {program_,      "--data-dir", data_dir_, "--listen", "127.0.0.1:" + port_,
                                    "--port-file", port_path_};
  words.insert(words.end(), flags_.begin(), flags_.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(arguments, log, parent);
  close(log);
  if (pid_ < 0)
    return make_error(ErrorCode::internal, std::string("cannot fork: ") + std::generic_category().message(errno));
  const std::int64_t give_up_us = bench::steady_now_us() + kStartTimeoutUs;
  while (bench::steady_now_us() < give_up_us) {
    std::ifstream file(port_path_);
    std::string port;
    if (std::getline(file, port) && !port.empty()) {
      port_ = port;
      return {};
    }
    if (has_ended()) return make_error(ErrorCode::internal, program_ + " ended at once: " + last_line(log_path_));
    std::this_thread::sleep_for(kPollInterval);
  }
  return make_error(ErrorCode::internal, program_ + " does not listen: " + last_line(log_path_));
}

bool ServerProcess::has_ended() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ <= 0;
}

void ServerProcess::kill() {
  if (has_ended()) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void ServerProcess::stop() {
  if (has_ended()) return;
  ::kill(pid_, SIGTERM);
  const std::int64_t give_up_us = bench::steady_now_us() + kStopTimeoutUs;
  while (!has_ended() && bench::steady_now_us() < give_up_us) std::this_thread::sleep_for(kPollInterval);
  kill();
}

std::string ServerProcess::last_log_line() const { return last_line(log_path_); }
std::string ServerProcess::endpoint() const { return "127.0.0.1:" + port_; }

}  // namespace kilokv::own_server
