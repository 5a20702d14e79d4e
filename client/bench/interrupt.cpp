// Role: see interrupt.hpp.
#include "client/bench/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

namespace kilokv::bench::interrupt {
namespace {

std::atomic<bool> held{false};
std::atomic<int> noted{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);  // a handler uses them

// Calls only what a signal handler may call.
template <std::size_t kSize>
void say(const char (&text)[kSize]) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, kSize - 1);
}

void on_signal(int signal) {
  if (!held.load()) {
    say("\nkilokv-bench: ended before anything was measured; nothing was checked\n");
    ::_exit(exit_code(signal));
  }
  int none = 0;
  if (noted.compare_exchange_strong(none, signal)) {
    say("\nkilokv-bench: ending early: waits for the last answers and checks the state; a second signal ends it at "
        "once\n");
    return;
  }
  say("\nkilokv-bench: ended by a second signal: no report, and nothing was checked\n");
  ::_exit(exit_code(signal));
}

}  // namespace

void install() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

void hold() { held.store(true); }
int received() { return noted.load(); }
int exit_code(int signal) { return 128 + signal; }

}  // namespace kilokv::bench::interrupt
