#include "tests/unit/storage/child_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kilokv::server::storage {

ChildProcess::ChildProcess(const std::string& task, const std::string& directory, const std::string& fail_points) {
  int in[2], out[2];
  EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
  process_ = fork();
  if (process_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    setenv("KILOKV_FAIL_POINTS", fail_points.c_str(), 1);
    execl(KILOKV_CRASH_CHILD, KILOKV_CRASH_CHILD, task.c_str(), directory.c_str(), nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  in_ = in[1];
  out_ = out[0];
}

ChildProcess::~ChildProcess() {
  close(in_);
  close(out_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

char ChildProcess::read_byte() {
  char byte = 0;
  return read(out_, &byte, 1) == 1 ? byte : '\0';
}

std::string ChildProcess::read_to_end() {
  std::string text;
  for (char byte = read_byte(); byte != 0; byte = read_byte()) text += byte;
  return text;
}

bool ChildProcess::was_killed() {
  int state = 0;
  EXPECT_EQ(waitpid(process_, &state, 0), process_);
  process_ = -1;
  return WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL;
}

}  // namespace kilokv::server::storage
