#include "engine/exec/serial_device.cuh"

#include <cuda_runtime.h>

#include "engine/stm/serial.hpp"

namespace kilokv::engine {
namespace {

// Access of the one thread. Ranges and `bytes equal` are the host's (serial_device.cuh): they trap.
class DeviceAccess {
 public:
  __device__ explicit DeviceAccess(const SerialDeviceArguments& arguments) : a_(arguments) {}

  __device__ Cell read(std::uint32_t key) const { return a_.slots[a_.slot_of_key[key]].cell; }
  __device__ void write(std::uint32_t key, Cell cell) {
    const std::uint32_t slot = a_.slot_of_key[key];
    a_.log[log_size_++] = {slot, a_.slots[slot].cell};
    a_.slots[slot].cell = cell;
  }
  __device__ void begin() { undo_begin_ = log_size_; }
  __device__ void undo() {
    for (; log_size_ > undo_begin_; --log_size_)
      a_.slots[a_.log[log_size_ - 1].slot].cell = a_.log[log_size_ - 1].before;
  }
  __device__ void ahead(std::uint32_t) const {}
  __device__ std::uint64_t value_word(std::uint32_t value) const { return a_.value_word[value]; }
  __device__ bool bytes_equal(Cell, std::uint32_t) const { return unsupported(); }
  __device__ bool range_unchanged(std::uint32_t, Version) const { return unsupported(); }
  __device__ void range_get(std::uint32_t, Version) { unsupported(); }
  __device__ bool delete_range(std::uint32_t, Version) { return unsupported(); }
  __device__ std::uint32_t log_size() const { return log_size_; }

 private:
  __device__ static bool unsupported() {
    __trap();
    return false;
  }

  const SerialDeviceArguments a_;
  std::uint32_t log_size_ = 0;
  std::uint32_t undo_begin_ = 0;
};

__global__ void serial_kernel(const SerialDeviceArguments arguments) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  DeviceAccess access(arguments);
  *arguments.passes =
      run_serial(arguments.batch, arguments.results, arguments.last_try, arguments.order, arguments.waiting, access);
  *arguments.log_size = access.log_size();
}

}  // namespace

int launch_serial_async(const SerialDeviceArguments& arguments, void* stream) {
  serial_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(arguments);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace kilokv::engine
