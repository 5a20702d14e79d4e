// A second process with the log (crash_child.cpp), which a fail point kills. It is a new program, not a fork, because
// RocksDB's threads do not survive a fork. Thread safety: none.
#pragma once

#include <sys/types.h>

#include <string>

namespace kilokv::server::storage {

class ChildProcess {
 public:
  // `fail_points`: set in its environment. Its input and output are pipes.
  ChildProcess(const std::string& task, const std::string& directory, const std::string& fail_points);
  ~ChildProcess();  // lets the process end, and waits for it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  char read_byte();           // 0 at the end
  std::string read_to_end();  // all output until the process ends
  bool was_killed();          // waits for the end of the process

 private:
  pid_t process_ = -1;
  int in_ = -1, out_ = -1;
};

}  // namespace kilokv::server::storage
