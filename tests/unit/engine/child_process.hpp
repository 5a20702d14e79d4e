// Runs a function in a child process that is expected to die. Thread safety: none; the caller has no other threads.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <string>

namespace kilokv::test {

struct Death {
  int signal = 0;     // that ended the child; 0: it ended by itself
  std::string words;  // what it wrote to its error output

  // By a fault of its own: a child that stalls is ended from outside.
  bool died() const { return signal != 0 && signal != SIGALRM; }
};

// The child is ended after a minute: a stall does not outlive the test.
inline Death run_in_child(const std::function<void()>& body) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[0]);
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) std::signal(signal, SIG_DFL);
    alarm(60);
    body();
    _exit(0);
  }
  close(pipe_ends[1]);
  Death death;
  std::array<char, 256> part{};
  for (ssize_t got = 0; (got = read(pipe_ends[0], part.data(), part.size())) > 0;) {
    death.words.append(part.data(), static_cast<std::size_t>(got));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) death.signal = WTERMSIG(status);
  return death;
}

}  // namespace kilokv::test
