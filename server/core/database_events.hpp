// Events of the database that the program which runs it learns at once.
// Thread safety: the executor makes all calls.
#pragma once

#include <functional>
#include <string>

#include "engine/engine.hpp"

namespace kilokv::server {

// The events, beside the end of the database. Each function may be empty. The executor calls them, so none may block
// for long.
struct DatabaseEvents {
  // Called once, when the device that batches ran on is given up. `now` says where they run instead, and why.
  std::function<void(const engine::EngineDevice& now)> device_lost;
  // Called before on_fatal. `batch` is the batch that the engine executed differently from the referee
  // (core/pipeline/batch_text.hpp).
  std::function<void(const std::string& batch)> shadow_mismatch;
};

}  // namespace kilokv::server
