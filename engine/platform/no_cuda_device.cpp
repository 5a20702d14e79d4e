#include "engine/platform/cuda_device.hpp"

namespace kilokv::engine {

Result<std::unique_ptr<Device>> CudaDevice::open() {
  return Status(StatusCode::unavailable, ErrorReason::unspecified, "no CUDA device: this build has no CUDA");
}

}  // namespace kilokv::engine
