// Events of the database that the program which runs it learns at once.
// Thread safety: the executor makes all calls.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/types.hpp"
#include "engine/engine.hpp"

namespace kilokv::server {

// The wall clock did not go on as expected (core/pipeline/stamp_clock.hpp).
struct ClockChange {
  enum class Kind : std::uint8_t {
    in_step,  // it is again where it is expected; stamps follow it
    jumped,   // it jumped ahead, and stamps follow it
    ahead,    // it jumped ahead by more than --clock-jump-max; stamps do not follow it
    behind,   // it is before the expected stamp; stamps go on without it
  };
  Kind kind = Kind::in_step;
  DurationUs by_us = 0;  // the wall clock minus the expected stamp
  TimeUs stamp_us = 0;   // of the batch that noticed it
};

// The events, beside the end of the database. Each function may be empty. The executor calls them, so none may block
// for long.
struct DatabaseEvents {
  // Called once, when the device that batches ran on is given up. `now` says where they run instead, and why.
  std::function<void(const engine::EngineDevice& now)> device_lost;
  // Called before on_fatal. `batch` is the batch that the engine executed differently from the referee
  // (core/pipeline/batch_text.hpp).
  std::function<void(const std::string& batch)> shadow_mismatch;
  // Called when a batch notices a change. The executor calls it.
  std::function<void(const ClockChange& change)> clock_changed;
};

}  // namespace kilokv::server
