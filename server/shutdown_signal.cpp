#include "server/shutdown_signal.hpp"

#include <csignal>
#include <cstdlib>

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

constexpr int kExitedBySignal = 128;  // as shells count it

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

ShutdownSignal::ShutdownSignal() {
  const sigset_t signals = watched_signals();
  KILOKV_CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  std::thread([this] { watch(); }).detach();  // lives as long as the process
}

int ShutdownSignal::wait() {
  received_.acquire();
  return signal_.load();
}

void ShutdownSignal::watch() {
  const sigset_t signals = watched_signals();
  int signal = 0;
  KILOKV_CHECK(sigwait(&signals, &signal) == 0);
  if (!armed_.load()) std::_Exit(kExitedBySignal + signal);
  signal_.store(signal);
  received_.release();
  KILOKV_CHECK(sigwait(&signals, &signal) == 0);
  std::_Exit(kExitedBySignal + signal);
}

}  // namespace kilokv::server
