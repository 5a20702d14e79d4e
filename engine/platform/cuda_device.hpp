// A CUDA device: the first one that the driver shows (CUDA_VISIBLE_DEVICES chooses). Without nvcc the interface is the
// same, and open() reports that there is no device. No CUDA type is visible here. Thread safety: that of Device.
#pragma once

#include <memory>

#include "engine/base/status.hpp"
#include "engine/platform/device.hpp"

namespace kilokv::engine {

class CudaDevice : public Device {
 public:
  // Opens the device, as a CudaDevice. It must be destroyed before the process ends; its streams and events are
  // destroyed with it. Errors: UNAVAILABLE, with the reason: no driver, no device, a device that this build has no code
  // for, or a build without CUDA.
  [[nodiscard]] static Result<std::unique_ptr<Device>> open();

  // The cudaStream_t, for launches.
  virtual void* stream(DeviceStream stream) const = 0;
};

}  // namespace kilokv::engine
