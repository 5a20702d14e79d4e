// What a parallel strategy adds to a batch on a device (device_executor.hpp): its arguments with their columns
// (base/section.hpp), its kernel, and its report.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/status.hpp"
#include "engine/exec/device/device_block.hpp"
#include "engine/exec/device/device_kernels.hpp"
#include "engine/exec/device/kept_columns.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/first_epochs.hpp"
#include "engine/stm/batch_arguments.hpp"
#include "engine/stm/batch_shape.hpp"

namespace kilokv::engine {

// The device that a strategy runs on, and its kernels. Both outlive the strategy.
struct DeviceStrategyPlace {
  Device* device;
  DeviceKernels* kernels;
  FirstEpochs first_epochs = {};
};

class DeviceStrategy {
 public:
  virtual ~DeviceStrategy() = default;
  // Whether open() needs numbers of the records from the host. If not, the device numbers them.
  virtual bool needs_numbers() const { return false; }
  // The first call for each batch. Adds the columns of the batch and of the strategy to the block. Their sources and
  // destinations are in this object, `batch`, `records` and `results`.
  virtual void open(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results, DeviceBlock* block) = 0;
  // Makes the arguments for the kernel. Requires: the block has room for its columns. Errors: those of the device.
  [[nodiscard]] virtual Status bind(DeviceStream stream, DeviceBlock* block) = 0;
  // The cells of the batch's records (BatchArguments::cells). Requires: bind() was called.
  virtual DevicePointer<std::uint64_t> cells() const = 0;
  // The record of each key (BatchArguments::record_of_key). Requires: bind() was called.
  virtual DevicePointer<std::uint32_t> record_of_key() const = 0;
  [[nodiscard]] virtual Status launch(DeviceStream stream) = 0;
  // Fills the passes and the next version of the results, and the report. Requires: the returned columns are on the
  // host again.
  virtual void close(BatchResults* results, ExecutionReport* report) = 0;
};

// The part that all strategies have. OnHost and OnDevice: the strategy's arguments, over HostSpace and DeviceSpace.
template <class OnHost, class OnDevice>
class DeviceStrategyOf : public DeviceStrategy {
 public:
  explicit DeviceStrategyOf(const DeviceStrategyPlace& place) : kernels_(*place.kernels), kept_(place.device) {}

  Status bind(DeviceStream stream, DeviceBlock* block) override {
    on_device_ = block->bind<OnDevice>(first_column_, shape_, &on_host_);
    return kept_.bind(stream, shape_, &on_device_);
  }
  DevicePointer<std::uint64_t> cells() const override { return on_device_.cells; }
  DevicePointer<std::uint32_t> record_of_key() const override {
    return DevicePointer<std::uint32_t>(on_device_.record_of_key.address());
  }

 protected:
  // For a launch with this number of threads.
  BatchThreads threads_of(std::uint32_t number) const {
    const std::uint32_t width = kernels_.group_width();
    return {.number = number, .group_width = width, .groups = number / width};
  }
  // Requires: the shape and the arguments on the host are filled.
  void add_columns(DeviceBlock* block) { first_column_ = block->add(shape_, &on_host_); }

  DeviceKernels& kernels_;
  KeptColumns kept_;
  // These belong to the current batch.
  BatchShape shape_;
  OnHost on_host_;
  OnDevice on_device_;

 private:
  std::size_t first_column_ = 0;  // in the block
};

}  // namespace kilokv::engine
