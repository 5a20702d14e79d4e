// Events of the database that the program which runs it learns at once.
// Thread safety: the executor makes all calls, but for those of the start.
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

// How far the start has come.
struct RecoveryProgress {
  bool counting = false;      // the records are counted first, to see whether they fit into the memory
  std::uint64_t records = 0;  // of the checkpoint: counted, or loaded
  BatchNumber batch = 0;      // of the log: the last one that was replayed; 0: none yet
};

// The events, beside the end of the database. Each function may be empty. The executor calls them, so none may block
// for long.
struct DatabaseEvents {
  // Called about once a second while the start makes progress. The thread that opens the database calls it.
  std::function<void(const RecoveryProgress& progress)> recovering;
  // Called once, when the device that batches ran on is given up. `now` says where they run instead, and why.
  std::function<void(const engine::EngineDevice& now)> device_lost;
  // Called before on_fatal. `batch` is the batch that the engine executed differently from the referee
  // (core/pipeline/batch_text.hpp).
  std::function<void(const std::string& batch)> shadow_mismatch;
  // Called when a batch notices a change. The executor calls it.
  std::function<void(const ClockChange& change)> clock_changed;
};

}  // namespace kilokv::server
