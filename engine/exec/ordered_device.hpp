// `ordered` on a device: a CUDA device, or the emulated one. A batch is one copy there, three launches (find the
// records, run, write them back to the device's table) and one copy back, in one stream.
//
// Host memory for copies is pinned and, like the device's, kept between batches. Thread safety: one caller at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/base/types.hpp"
#include "engine/exec/device_buffer.hpp"
#include "engine/exec/device_kernels.hpp"
#include "engine/exec/device_records.hpp"
#include "engine/exec/executor.hpp"
#include "engine/exec/ordered_totals.hpp"

namespace kilokv::engine {

class OrderedDevice final : public Executor {
 public:
  explicit OrderedDevice(OpenedDevice opened, FirstEpochs first = {});

  Status prepare(const RecordStore& store) override;
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override;
  void changed(KeyId id) override { table_.changed(id); }
  const DeviceInfo* device() const override { return &opened_.device->info(); }
  std::size_t memory_bytes() const override { return staging_.bytes(); }

  const DeviceRecords& table() const { return table_; }

 private:
  struct Places;

  Status reserve(const Places& places, std::size_t records);
  void pack(const Places& places, const ResolvedBatch& batch, const BatchRecords& records);
  BulkArguments<DeviceSpace> bulk_arguments(const Places& places) const;
  OrderedArguments<DeviceSpace> ordered_arguments(const Places& places, const ResolvedBatch& batch,
                                                  const BatchRecords& records) const;
  Status launch(const Places& places, const ResolvedBatch& batch, const BatchRecords& records);
  Status unpack(const Places& places, const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
                ExecutionReport* report);

  OpenedDevice opened_;
  DeviceStream stream_{};
  bool has_stream_ = false;
  DeviceRecords table_;
  PinnedBuffer staging_;               // what goes there, then what comes back
  DeviceBuffer block_, reservations_;  // a batch's columns; reservations
  EpochCounter epochs_;
  std::uint64_t digest_ = 0;  // of the host's cells of the batch's records
};

}  // namespace kilokv::engine
