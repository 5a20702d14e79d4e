#include "engine/exec/device/cuda_kernels.hpp"

namespace kilokv::engine {

Result<OpenedDevice> open_cuda() {
  return Status(StatusCode::unavailable, ErrorReason::unspecified, "this build has no CUDA");
}

std::vector<KernelFacts> kernel_facts() { return {}; }

}  // namespace kilokv::engine
