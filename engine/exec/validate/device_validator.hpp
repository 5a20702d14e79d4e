// The cooperative validator (stm/validator.hpp) with a device as its back. The back is a persistent kernel. It polls a
// ring in host memory for blocks. The front copies each block that it hands over into a slot of that memory, and the
// kernel reads it there. Both sides look up keys, each in its own table.
//
// The kernel is launched for one read set and ends with it. The next work on the device, such as an update of its table
// with this transaction's writes, could not run beside the kernel. On an emulated device, nothing runs before a thread
// synchronizes. So there a second thread synchronizes while the front works.
//
// If the kernel does not answer within kPatience, the front gives it up and tells it to end. The device's watchdog then
// waits for its end.
//
// Thread safety: one caller at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/status.hpp"
#include "engine/exec/device/device_buffer.hpp"
#include "engine/exec/device/device_kernels.hpp"
#include "engine/exec/device/device_records.hpp"
#include "engine/exec/validate/read_set.hpp"

namespace kilokv::engine {

class DeviceValidator {
 public:
  DeviceValidator(Device* device, DeviceKernels* kernels)
      : device_(*device), kernels_(*kernels), shared_(device), grid_(device) {}

  // Requires: the table is up to date, and nothing else runs in the stream. Errors: those of the device, which is then
  // not used again.
  [[nodiscard]] Status run(DeviceStream stream, const DeviceRecords& table, const ReadSet& set, ValidatorLanes lanes,
                           ValidatorResult* result);
  std::size_t memory_bytes() const { return shared_.bytes(); }

 private:
  [[nodiscard]] Status reserve(DeviceStream stream);

  Device& device_;
  DeviceKernels& kernels_;
  SharedBuffer shared_;  // the ring, then ids and versions of the slots
  DeviceBuffer grid_;
  std::uint64_t position_ = 0;  // in the ring
};

}  // namespace kilokv::engine
