// What a parallel strategy adds to a batch on a device (device_executor.hpp): its own columns, the memory that it keeps
// between batches, its kernel, and its report.
//
// The columns of a batch are in one block of device memory. The block has four sections (BlockSection), and a strategy
// may add columns to each of them.
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

// The device that a strategy runs on, and its kernels. Both outlive the strategy.
struct DeviceStrategyPlace {
  Device* device;
  DeviceKernels* kernels;
  FirstEpochs first_epochs = {};
};

// How many of each a batch has.
struct BatchShape {
  std::size_t transactions, guards, operations, keys, records;
  std::uint32_t threads;  // of the launch
};

enum class BlockSection : std::uint8_t {
  sent,      // sent from the host
  returned,  // all zero at the start, and returned to the host
  zeroed,    // all zero at the start, and not returned
  scratch,   // undefined at the start
};

class DeviceStrategy {
 public:
  virtual ~DeviceStrategy() = default;
  // See Executor::leaves_deltas().
  virtual bool leaves_deltas() const = 0;
  // The first call for each batch.
  virtual void begin(const ResolvedBatch&, const BatchRecords&) {}
  // How many threads to launch for a batch with this number of transactions.
  virtual std::uint32_t threads(std::uint32_t transactions) const = 0;
  // Adds the strategy's columns of this section. It is called once for each of the four sections, in order, before the
  // functions below.
  virtual void add_columns(const ResolvedBatch& batch, const BatchShape& shape, BlockSection section,
                           BlockLayout* layout) = 0;
  // Copies the strategy's columns of the section `sent` into the staging memory, which has the block's offsets.
  virtual void pack(std::byte*) {}
  // Prepares the memory that the strategy keeps on the device. Errors: those of the device.
  [[nodiscard]] virtual Status reserve(DeviceStream stream, const BatchShape& shape) = 0;
  [[nodiscard]] virtual Status launch(DeviceStream stream, const DeviceBuffer& block,
                                      const BatchArguments<DeviceSpace>& batch, const BatchShape& shape) = 0;
  // Fills the passes and the next version of the results, and the report, from the staging memory after the run.
  virtual void report(const BatchHeader& header, const BatchShape& shape, const std::byte* staging,
                      BatchResults* results, ExecutionReport* report) = 0;
};

}  // namespace kilokv::engine
