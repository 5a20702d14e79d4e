// A CUDA device: the first one that the driver shows (CUDA_VISIBLE_DEVICES chooses). Without nvcc this is the same
// face, and open() answers that there is none. No CUDA type is seen here.
#pragma once

#include <memory>

#include "engine/base/status.hpp"
#include "engine/platform/device.hpp"

namespace kilokv::engine {

class CudaDevice : public Device {
 public:
  // UNAVAILABLE, with the reason: no driver, no device, one that this build has no code for, or a build without CUDA.
  // What it returns is a CudaDevice. To be given back before the process ends, streams and events with it.
  [[nodiscard]] static Result<std::unique_ptr<Device>> open();

  // The cudaStream_t, for launches.
  virtual void* stream(DeviceStream stream) const = 0;
};

}  // namespace kilokv::engine
