// An engine over a given executor, for who brings one of their own: tests, and the simulator.
#pragma once

#include <memory>

#include "engine/engine.hpp"
#include "engine/exec/executor.hpp"

namespace kilokv::engine {

// `parallel` runs what `serial` does not; null: `serial` runs everything. Of `options` the strategy `auto` alone
// counts: it chooses between the two.
std::unique_ptr<Engine> create_engine_with(const EngineOptions& options, std::unique_ptr<Executor> parallel);

}  // namespace kilokv::engine
