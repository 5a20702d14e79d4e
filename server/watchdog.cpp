#include "server/watchdog.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace kilokv::server {

struct Watchdog::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool came_back = false;
  bool stopping = false;

  void note_return() {
    const std::lock_guard lock(mutex);
    came_back = true;
    changed.notify_all();
  }

  // Returns whether the probe has come back. Otherwise the watchdog stops.
  bool wait_for_return() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return came_back || stopping; });
    came_back = false;
    return !stopping;
  }

  // Returns false if the watchdog stops.
  bool pause(std::chrono::microseconds time) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, time, [this] { return stopping; });
  }
};

Watchdog::Watchdog(DurationUs pause_us, Probe probe, std::function<void()> alive) : state_(std::make_shared<State>()) {
  thread_ = std::thread([state = state_, pause_us, probe = std::move(probe), alive = std::move(alive)] {
    do {
      probe([state] { state->note_return(); });
      if (!state->wait_for_return()) return;
      alive();
    } while (state->pause(std::chrono::microseconds(pause_us)));
  });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->changed.notify_all();
  }
  thread_.join();
}

}  // namespace kilokv::server
