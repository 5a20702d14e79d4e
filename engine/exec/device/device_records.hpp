// The record table in a device's memory (table/bulk_table.hpp). This class keeps it equal to the host's table. A batch
// that runs on the device writes to both tables. If a record changes on the host only, changed() notes its id, and
// update() sends the record before the next batch.
//
// The device's table starts empty. It is built from the host's table when it is first needed and when it has no room.
// It is also built again if that is cheaper than to send all changed records. If it had no room, the new one is larger.
// The host has all records, so nothing is lost if the device fails.
//
// Not thread-safe. In the steady state, a batch allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "engine/exec/device/device_block.hpp"
#include "engine/exec/device/device_buffer.hpp"
#include "engine/exec/device/device_kernels.hpp"
#include "engine/table/record_store.hpp"

namespace kilokv::engine {

class DeviceRecords {
 public:
  // `device` and `kernels` outlive it. Each time that the table is built, its epochs start again after `first_epoch`,
  // which is 0 except in tests.
  DeviceRecords(Device* device, DeviceKernels* kernels, std::uint32_t first_epoch = 0);

  // Notes that the host's record of this id has changed, has appeared or is gone, and that no batch on the device did
  // this.
  void changed(KeyId id);

  // Brings the table up to date.
  // Errors: FAILED_PRECONDITION if the device has no memory for the table. The message says how much it needs. Also the
  // errors of the device.
  [[nodiscard]] Status update(DeviceStream stream, const RecordStore& store);

  // Fills the part of `arguments` that describes the table, for a run that finds records. Requires: update() was
  // called.
  void open(BulkArguments<DeviceSpace>* arguments) const;

  std::size_t records() const { return used_; }  // slots in use, including those of removed records
  std::size_t capacity() const { return capacity_; }
  std::uint64_t builds() const { return builds_; }  // how many times the whole table was built

 private:
  static constexpr std::size_t kChunk = std::size_t{1} << 15;  // records sent at once

  [[nodiscard]] Status build(DeviceStream stream, const RecordStore& store);
  [[nodiscard]] Status prepare_chunk();
  void add(KeyId id, BulkAction action, Cell cell);
  [[nodiscard]] Status send(DeviceStream stream);
  [[nodiscard]] Status close();

  Device& device_;
  DeviceKernels& kernels_;
  DeviceBuffer slots_;
  std::uint32_t capacity_ = 0;
  std::size_t used_ = 0;
  const std::uint32_t first_epoch_;
  std::uint64_t epoch_ = 0;  // first_epoch_ + the rounds since the last build
  std::uint64_t builds_ = 0;
  bool must_build_ = true;
  std::vector<KeyId> changed_;
  // A chunk of records to send: where the host fills its columns, and what the kernel gets.
  DeviceBlock chunk_;
  BulkArguments<HostSpace> chunk_on_host_;
  BulkArguments<DeviceSpace> chunk_on_device_;
  std::size_t count_ = 0, removing_ = 0;
};

}  // namespace kilokv::engine
