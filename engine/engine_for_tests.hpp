// An engine over an executor of the caller's: for tests that bring the simulator, a fault, or tuning that no option
// gives. Programs use Engine::create (engine/engine.hpp).
#pragma once

#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/exec/run/executor.hpp"

namespace kilokv::engine {

// `parallel` runs what `serial` does not; null: `serial` runs everything. With the strategy `auto` each batch is given
// to the faster of the two. `reason`: as EngineDevice says. When `parallel` fails, `options` say what takes its place.
std::unique_ptr<Engine> create_engine_with(const EngineOptions& options, std::unique_ptr<Executor> parallel,
                                           const std::string& reason = {});

}  // namespace kilokv::engine
