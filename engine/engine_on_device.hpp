// Makes an engine on a device that the caller has opened. Tests and benches bring devices of their own. Other programs
// use Engine::create (engine/engine.hpp).
#pragma once

#include <memory>

#include "engine/engine.hpp"
#include "engine/exec/device/device_kernels.hpp"

namespace kilokv::engine {

// As Engine::create, but on this device. Requires: options.validate() is OK.
Result<std::unique_ptr<Engine>> create_engine_on(const EngineOptions& options, OpenedDevice opened);

}  // namespace kilokv::engine
