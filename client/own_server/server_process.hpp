// A server that a program starts for itself on a folder and a port, ends or kills, and starts again. The server ends
// with this process, even if this process is killed. It is in a process group of its own, so Ctrl-C in a terminal
// reaches this program alone, which ends the server in order.
//
// Thread safety: none; start and end it from the thread that lives longest.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kilokv/error.hpp"

namespace kilokv::own_server {

// The path of the kilokvd in the folder of this program, else in a folder of $PATH. If there is none, the result is the
// path in the folder of this program, so that an error can name it.
std::string find_server();

class ServerProcess {
 public:
  // Runs `program` on `data_dir` and any free port, with these further flags. Returns when it listens. Its output goes
  // to data_dir/kilokvd.log.
  static client::Expected<std::unique_ptr<ServerProcess>> start(const std::string& program, const std::string& data_dir,
                                                                std::vector<std::string> flags = {});
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();  // as stop()

  void kill();  // SIGKILL; returns when the process has ended
  // On the same port; returns when it listens. The second form takes other flags than those before.
  client::Error start_again();
  client::Error start_again(std::vector<std::string> flags);
  void stop();                   // SIGTERM; SIGKILL if the process has not ended after 10 s
  bool has_ended();              // by itself, or because somebody else killed it
  std::string endpoint() const;  // HOST:PORT
  pid_t pid() const { return pid_; }
  const std::string& log_path() const { return log_path_; }
  std::string last_log_line() const;

 private:
  ServerProcess(std::string program, const std::string& data_dir, std::vector<std::string> flags);
  client::Error launch();
  const std::string program_, data_dir_, log_path_, port_path_;
  std::vector<std::string> flags_;
  std::string port_ = "0";
  pid_t pid_ = -1;
};

}  // namespace kilokv::own_server
