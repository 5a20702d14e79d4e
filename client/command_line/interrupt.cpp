// Role: see interrupt.hpp.
#include "client/command_line/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace kilokv::client::interrupt {
namespace {

Lines texts;  // set before a handler can run
std::atomic<bool> held{false};
std::atomic<int> noted{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);  // a handler uses them

// Calls only what a signal handler may call.
void say(const char* line) { [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, std::strlen(line)); }

void on_signal(int signal) {
  if (!held.load()) {
    say(texts.ended);
    ::_exit(exit_code(signal));
  }
  int none = 0;
  if (noted.compare_exchange_strong(none, signal)) {
    say(texts.noted);
    return;
  }
  say(texts.ended_second);
  ::_exit(exit_code(signal));
}

}  // namespace

void install(const Lines& lines) {
  texts = lines;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

void hold() { held.store(true); }
int received() { return noted.load(); }
int exit_code(int signal) { return 128 + signal; }

void ignore_broken_pipes() {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace kilokv::client::interrupt
