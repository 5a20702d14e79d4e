// What the program that runs the database is told of at once.
#pragma once

#include <functional>
#include <string>

#include "engine/engine.hpp"

namespace kilokv::server {

// What whoever runs the database is told, beside its end. Each may be empty; called by the executor, so none may block
// for long.
struct DatabaseEvents {
  // Once: the device that batches ran on is given up; `now` says where they run instead, and why.
  std::function<void(const engine::EngineDevice& now)> device_lost;
  // Before on_fatal: the batch that was not executed as the referee does it (core/pipeline/batch_text.hpp).
  std::function<void(const std::string& batch)> shadow_mismatch;
};

}  // namespace kilokv::server
