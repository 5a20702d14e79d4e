// The record table in a device's memory (table/bulk_table.hpp), and how it is kept equal to the host's: batches that
// ran on the device have written to both; what changed on the host alone is named here, and sent before the next batch.
//
// It starts empty, and is built from the host's when it is first needed, when it has no room (with more), or when more
// has changed than is worth naming. So a device that is lost costs nothing: the host has everything.
//
// Not thread-safe. A batch in the steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/exec/device/device_buffer.hpp"
#include "engine/exec/device/device_kernels.hpp"
#include "engine/table/record_store.hpp"

namespace kilokv::engine {

class DeviceRecords {
 public:
  // Both outlive it. Behind `first_epoch` it counts each time that it is built: not 0 only in tests.
  DeviceRecords(Device* device, DeviceKernels* kernels, std::uint32_t first_epoch = 0);

  // The host's record of this id changed, came or went, other than by a batch on the device.
  void changed(KeyId id);

  // Brings the table up to date.
  // Errors: FAILED_PRECONDITION naming what the table needs, where the device has no memory for it; of the device.
  [[nodiscard]] Status update(DeviceStream stream, const RecordStore& store);

  // The table's part of the arguments of a run that finds. Requires: update().
  void open(BulkArguments<DeviceSpace>* arguments) const;

  std::size_t records() const { return used_; }  // slots in use, those of removed records among them
  std::size_t capacity() const { return capacity_; }
  std::uint64_t builds() const { return builds_; }  // of the whole table so far

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 15;  // records sent at once

  [[nodiscard]] Status build(DeviceStream stream, const RecordStore& store);
  [[nodiscard]] Status prepare_chunk();
  void add(KeyId id, BulkAction action, Cell cell);
  [[nodiscard]] Status send(DeviceStream stream);
  [[nodiscard]] Status close(const std::uint64_t* words);

  Device& device_;
  DeviceKernels& kernels_;
  DeviceBuffer slots_;
  std::uint32_t capacity_ = 0;
  std::size_t used_ = 0;
  const std::uint32_t first_epoch_;
  std::uint64_t epoch_ = 0;  // of the table's rounds so far
  std::uint64_t builds_ = 0;
  bool must_build_ = true;
  std::vector<KeyId> changed_;
  // A chunk: ids, actions, cells; on the device also slots, marks and words.
  PinnedBuffer staging_;
  DeviceBuffer chunk_;
  std::size_t count_ = 0, removing_ = 0;
};

}  // namespace kilokv::engine
