// The kernels of the emulated device.
#pragma once

#include "engine/exec/device/device_kernels.hpp"
#include "engine/platform/emulated_device.hpp"

namespace kilokv::engine {

OpenedDevice open_emulated(const EmulatedDeviceOptions& options = {});

}  // namespace kilokv::engine
