// The server that the demo starts, kills, and starts again on the same folder and port. It ends with this process, even
// if this process is killed. Thread safety: none; start and end it from the thread that lives longest.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kilokv/error.hpp"

namespace kilokv::bank {

class ServerProcess {
 public:
  // Runs `program` on `data_dir` and any free port. Returns when it listens. Its output goes to data_dir/kilokvd.log.
  static client::Expected<std::unique_ptr<ServerProcess>> start(const std::string& program,
                                                                const std::string& data_dir);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();  // as stop()

  void kill();                   // SIGKILL; returns when the process has ended
  client::Error start_again();   // on the same port; returns when it listens
  void stop();                   // SIGTERM; SIGKILL if the process has not ended after 10 s
  std::string endpoint() const;  // HOST:PORT
  const std::string& log_path() const { return log_path_; }

 private:
  ServerProcess(std::string program, const std::string& data_dir);
  client::Error launch();
  bool exited();  // and reaps it

  const std::string program_, data_dir_, log_path_, port_path_;
  std::string port_ = "0";
  pid_t pid_ = -1;
};

}  // namespace kilokv::bank
