// A second process with the log (crash_child.cpp), to be killed at a fail point. It is started afresh: RocksDB's
// threads do not survive a fork.
#pragma once

#include <sys/types.h>

#include <string>

namespace kilokv::server::storage {

class ChildProcess {
 public:
  // `fail_points`: of its environment. What it prints and reads is piped.
  ChildProcess(const std::string& task, const std::string& directory, const std::string& fail_points);
  ~ChildProcess();  // lets it end, and waits for it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  char read_byte();           // 0 at the end
  std::string read_to_end();  // all that it prints until it ends
  bool was_killed();          // waits for it

 private:
  pid_t process_ = -1;
  int in_ = -1, out_ = -1;
};

}  // namespace kilokv::server::storage
