// The cooperative validator (stm/validator.hpp) with a device as the back: a persistent kernel, which polls a ring in
// memory of the host for blocks. The front copies each block that it hands over into a slot of that memory, from which
// the kernel reads it in place; both look keys up in tables of their own.
//
// The kernel is launched for a read set, and ends with it: whatever comes next on the device, bringing its table up to
// date behind this transaction's writes to begin with, needs the device for itself. On an emulated device, on which
// nothing runs unless somebody synchronizes, a thread does that meanwhile.
//
// A kernel that does not answer is given up after kPatience, told to end, and waited for by the device's watchdog.
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

  // Requires: the table is up to date, and nothing else runs in the stream. Errors: of the device; it is not used
  // again.
  [[nodiscard]] Status run(DeviceStream stream, const DeviceRecords& table, const ReadSet& set, ValidatorLanes lanes,
                           ValidatorResult* result);
  std::size_t memory_bytes() const { return shared_.bytes(); }

 private:
  [[nodiscard]] Status reserve(DeviceStream stream);

  Device& device_;
  DeviceKernels& kernels_;
  SharedBuffer shared_;  // the ring, then the slots' ids and versions
  DeviceBuffer grid_;
  std::uint64_t position_ = 0;  // of the ring
};

}  // namespace kilokv::engine
