// Says that the server is alive, as long as the pipeline makes progress.
//
// A probe goes the way of a request: through the executor, the log and the answers (Database::probe). Only after it has
// come back, `alive` is called, and some time later the next probe begins. So a thread that hangs in any stage, or a
// sync that does not return, ends the calls of `alive`. No clock alone makes them go on.
//
// An idle server makes progress, too: its probes come back at once.
// Thread safety: one thread constructs and destroys it.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "engine/base/types.hpp"

namespace kilokv::server {

class Watchdog {
 public:
  // Calls its argument when it has come back: from any thread, also after the Watchdog is destroyed, or never.
  using Probe = std::function<void(std::function<void()> came_back)>;

  // `pause_us`: from the return of a probe to the next one.
  Watchdog(DurationUs pause_us, Probe probe, std::function<void()> alive);
  // Does not wait for a probe that is under way. `alive` is not called any more after this.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the probe under way
  std::thread thread_;
};

}  // namespace kilokv::server
