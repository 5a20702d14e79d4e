// A kernel for the emulated device (platform/emulated_device.hpp). Strategy::kernels (exec/strategy.hpp) lists the
// kernels of a strategy.
#pragma once

#include "engine/platform/emulated_device.hpp"

namespace kilokv::engine {

struct EmulatedKernel {
  const char* name;  // the kernel for CUDA devices has the same name
  // Makes a kernel that runs with a copy of these arguments.
  EmulatedDevice::Kernel (*bind)(const void* arguments);
};

// Makes the entry of a kernel. Run: a class such as TicketedRun, over EmulatedPlatform. Arguments: what it takes.
template <class Run, class Arguments>
EmulatedKernel emulated_kernel(const char* name) {
  return {name, [](const void* arguments) -> EmulatedDevice::Kernel {
            return [copy = *static_cast<const Arguments*>(arguments)](EmulatedPlatform& platform) {
              Run(platform, copy).run();
            };
          }};
}

}  // namespace kilokv::engine
