// Opens an emulated device with the kernels of all strategies.
#pragma once

#include <memory>

#include "engine/exec/device/device_kernels.hpp"
#include "engine/platform/emulated_device.hpp"

namespace kilokv::engine {

OpenedDevice open_emulated(const EmulatedDeviceOptions& options = {});
OpenedDevice open_emulated(std::unique_ptr<EmulatedDevice> device);

}  // namespace kilokv::engine
