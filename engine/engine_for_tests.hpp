// Makes an engine over an executor that the caller brings. It is for tests that need the simulator, a fault, or tuning
// that no option gives. Programs use Engine::create (engine/engine.hpp).
#pragma once

#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/stm/partitioned.hpp"

namespace kilokv::engine {

// `parallel` runs all batches that `serial` does not. Null: `serial` runs every batch. With the strategy `auto`, each
// batch goes to the faster of the two. `reason`: the reason in EngineDevice. If `parallel` fails, the engine replaces
// it by the executor that `options` ask for on the CPU.
std::unique_ptr<Engine> create_engine_with(const EngineOptions& options, std::unique_ptr<Executor> parallel,
                                           const std::string& reason = {});

// With the strategy `partitioned`, and this tuning.
std::unique_ptr<Engine> create_partitioned_engine(const EngineOptions& options, const PartitionedTuning& tuning);

}  // namespace kilokv::engine
