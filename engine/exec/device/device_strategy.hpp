// The part of a parallel strategy in a batch on a device (device_executor.hpp): its own columns beside the batch's, the
// memory that it keeps between batches, its kernel, and what it reports.
//
// A batch's columns stand in one block of device memory: first what is sent, then what is all zero at the start, out of
// which the first part comes back, then scratch. A strategy adds to each of these sections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/status.hpp"
#include "engine/exec/device/device_buffer.hpp"
#include "engine/exec/device/device_kernels.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/first_epochs.hpp"
#include "engine/stm/batch_arguments.hpp"

namespace kilokv::engine {

// Where a strategy's part is. Both outlive it.
struct DeviceStrategyPlace {
  Device* device;
  DeviceKernels* kernels;
  FirstEpochs first_epochs = {};
};

// How much of what a batch has.
struct BatchShape {
  std::size_t transactions, guards, operations, keys, records;
  std::uint32_t threads;  // that it is launched with
};

enum class BlockSection : std::uint8_t {
  sent,      // from the host
  returned,  // all zero at the start; to the host
  zeroed,    // all zero at the start
  scratch,   // undefined at the start
};

class DeviceStrategy {
 public:
  virtual ~DeviceStrategy() = default;
  // As Executor has it.
  virtual bool leaves_deltas() const = 0;
  // Before all else of a batch.
  virtual void begin(const ResolvedBatch&, const BatchRecords&) {}
  // Of a launch for so many transactions.
  virtual std::uint32_t threads(std::uint32_t transactions) const = 0;
  // Adds its columns of this section. All four are asked for, in order, before the rest.
  virtual void add_columns(const ResolvedBatch& batch, const BatchShape& shape, BlockSection section,
                           BlockLayout* layout) = 0;
  // Its sent columns into the staging memory, which has the block's offsets.
  virtual void pack(std::byte*) {}
  // Makes ready what it keeps on the device. Errors: of the device.
  [[nodiscard]] virtual Status reserve(DeviceStream stream, const BatchShape& shape) = 0;
  [[nodiscard]] virtual Status launch(DeviceStream stream, const DeviceBuffer& block,
                                      const BatchArguments<DeviceSpace>& batch, const BatchShape& shape) = 0;
  // Passes and next version of the results, and the report, from the staging memory after the run.
  virtual void report(const BatchHeader& header, const BatchShape& shape, const std::byte* staging,
                      BatchResults* results, ExecutionReport* report) = 0;
};

}  // namespace kilokv::engine
