#include "server/shutdown_signal.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <semaphore>
#include <thread>
#include <utility>

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

constexpr int kExitedBySignal = 128;  // plus the number of the signal, as in shells

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

struct ShutdownSignal::State {
  std::function<void(int)> on_other;
  std::atomic<bool> armed{false};
  std::atomic<int> signal{0};
  std::binary_semaphore received{0};

  int next_end() {
    const sigset_t signals = watched_signals();
    for (;;) {
      int received_signal = 0;
      KILOKV_CHECK(sigwait(&signals, &received_signal) == 0);
      if (received_signal == SIGTERM || received_signal == SIGINT) return received_signal;
      on_other(received_signal);
    }
  }

  void watch() {
    const int first = next_end();
    if (!armed.load()) std::_Exit(kExitedBySignal + first);
    signal.store(first);
    received.release();
    std::_Exit(kExitedBySignal + next_end());
  }
};

void block_signals() {
  const sigset_t signals = watched_signals();
  KILOKV_CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  KILOKV_CHECK(std::signal(SIGPIPE, SIG_IGN) != SIG_ERR);
}

ShutdownSignal::ShutdownSignal(std::function<void(int)> on_other) : state_(std::make_shared<State>()) {
  state_->on_other = std::move(on_other);
  std::thread([state = state_] { state->watch(); }).detach();
}

void ShutdownSignal::arm() { state_->armed.store(true); }

int ShutdownSignal::wait() {
  state_->received.acquire();
  return state_->signal.load();
}

}  // namespace kilokv::server
