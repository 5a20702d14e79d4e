// What the strategies with tickets add to a batch on a device (exec/device/device_strategy.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/device/device_strategy.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"

namespace kilokv::engine {

// The part that all of these strategies have: the columns of TicketedArguments, and the lock words, which stay on the
// device between batches.
class TicketedOnDevice : public DeviceStrategy {
 public:
  // `strategy`: its name, a literal.
  TicketedOnDevice(const char* strategy, const TicketedTuning& tuning, const DeviceStrategyPlace& place)
      : kernels_(*place.kernels), strategy_(strategy), tuning_(tuning), device_(*place.device), locks_(place.device) {}

  bool leaves_deltas() const override { return TicketedArguments<DeviceSpace>::kLeavesDeltas; }
  void begin(const ResolvedBatch& batch, const BatchRecords& records) override;
  std::uint32_t threads(std::uint32_t transactions) const override;
  void add_columns(const ResolvedBatch& batch, const BatchShape& shape, BlockSection section,
                   BlockLayout* layout) override;
  void pack(std::byte* staging) override;
  Status reserve(DeviceStream stream, const BatchShape& shape) override;
  void report(const BatchHeader& header, const BatchShape& shape, const std::byte* staging, BatchResults* results,
              ExecutionReport* report) override;

 protected:
  // How many slots the list of undecided transactions needs, for a launch of `threads` threads.
  virtual std::uint64_t undecided_slots(std::uint32_t transactions, std::uint32_t threads) const;
  // Fills the part of the arguments that all of these strategies have.
  void fill(const DeviceBuffer& block, const BatchArguments<DeviceSpace>& batch, const BatchShape& shape,
            TicketedArguments<DeviceSpace>* arguments) const;

  std::uint32_t transactions_per_thread() const { return tuning_.transactions_per_thread; }
  // Copies a column to its offset in the staging memory.
  static void put(std::byte* staging, std::size_t offset, const std::vector<std::uint32_t>& column);

  DeviceKernels& kernels_;
  std::vector<std::uint32_t> class_ends_;

 private:
  // The second word only aligns the locks, so that a lock's two words share a cache line.
  static constexpr std::size_t kClockWords = 2;

  const char* strategy_;
  TicketedTuning tuning_;
  Device& device_;
  DeviceBuffer locks_;  // the clock, then the locks
  // Offsets of the batch's columns.
  std::size_t class_end_ = 0, words_ = 0, counts_ = 0, use_entry_ = 0, entry_record_ = 0, entry_head_ = 0;
  std::size_t entry_cell_ = 0, entry_version_ = 0, entry_tag_ = 0, entry_flags_ = 0, entry_count_ = 0;
  std::size_t tries_ = 0, pass_of_ = 0, undecided_ = 0;
};

// The part of one strategy, which has its own type of arguments.
template <class Arguments>
class TicketedOnDeviceOf : public TicketedOnDevice {
 public:
  // A sweep takes a device some microseconds. So with this limit, the kernel gives up the batch before the host gives
  // up the device.
  static constexpr std::uint32_t kIdleSweepsMax = 1u << 20;

  // `tuned`: arguments of which only the tuning is filled.
  TicketedOnDeviceOf(const char* strategy, const Arguments& tuned, const DeviceStrategyPlace& place)
      : TicketedOnDevice(strategy, tuned.tuning, place), tuned_(tuned), kernel_(place.kernels->find(strategy)) {
    tuned_.tuning.idle_sweeps_max = kIdleSweepsMax;
  }

  std::uint32_t threads(std::uint32_t transactions) const override {
    return kernels_.threads(kernel_, TicketedOnDevice::threads(transactions));
  }
  Status launch(DeviceStream stream, const DeviceBuffer& block, const BatchArguments<DeviceSpace>& batch,
                const BatchShape& shape) override {
    Arguments arguments = tuned_;
    fill(block, batch, shape, &arguments);
    add_own(block, &arguments);
    return launch_kernel(stream, arguments, shape.threads);
  }

 protected:
  // Fills the part of the arguments that only this strategy has.
  virtual void add_own(const DeviceBuffer&, Arguments*) const {}
  virtual Status launch_kernel(DeviceStream stream, const Arguments& arguments, std::uint32_t threads) {
    return kernels_.launch(stream, kernel_, &arguments, {.threads = threads});
  }

  Arguments tuned_;

 private:
  KernelHandle kernel_;
};

}  // namespace kilokv::engine
