// A kernel for the emulated device (platform/emulated_device.hpp), as a strategy lists it (exec/strategy.hpp).
#pragma once

#include "engine/platform/emulated_device.hpp"

namespace kilokv::engine {

struct EmulatedKernel {
  const char* name;  // that of the CUDA device's
  // The kernel with these arguments, which are copied.
  EmulatedDevice::Kernel (*bind)(const void* arguments);
};

// Run: TicketedRun or the like, over EmulatedPlatform; Arguments: what it takes.
template <class Run, class Arguments>
EmulatedKernel emulated_kernel(const char* name) {
  return {name, [](const void* arguments) -> EmulatedDevice::Kernel {
            return [copy = *static_cast<const Arguments*>(arguments)](EmulatedPlatform& platform) {
              Run(platform, copy).run();
            };
          }};
}

}  // namespace kilokv::engine
