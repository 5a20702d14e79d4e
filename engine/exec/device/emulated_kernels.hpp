// Opens an emulated device with the kernels of all strategies.
#pragma once

#include <memory>
#include <span>

#include "engine/exec/device/device_kernels.hpp"
#include "engine/platform/emulated_device.hpp"

namespace kilokv::engine {

struct Strategy;

OpenedDevice open_emulated(const EmulatedDeviceOptions& options = {});
OpenedDevice open_emulated(std::unique_ptr<EmulatedDevice> device);
// Only with the kernels of these strategies. It is for tests of strategies that do not run on a device.
OpenedDevice open_emulated(std::unique_ptr<EmulatedDevice> device, std::span<const Strategy* const> strategies);

}  // namespace kilokv::engine
