// A strategy with tickets on a device (exec/device/device_strategy.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/exec/device/device_strategy.hpp"
#include "engine/exec/papers/ticketed_inputs.hpp"

namespace kilokv::engine {

// OnHost and OnDevice: the strategy's arguments, over HostSpace and DeviceSpace.
//
// Between batches, a lock word is free and unclaimed, with any version. New lock words are all zero, and so is a new
// clock. A batch that was given up may leave lock words in another state. Then the device is given up, too.
template <class OnHost, class OnDevice>
class TicketedOnDevice : public DeviceStrategyOf<OnHost, OnDevice> {
  using Base = DeviceStrategyOf<OnHost, OnDevice>;

 public:
  // A sweep takes a device some microseconds. So with this limit, the kernel gives up the batch before the host gives
  // up the device.
  static constexpr std::uint32_t kIdleSweepsMax = 1u << 20;

  // `strategy`: its name, a literal. `tuned`: arguments of which only the tuning is filled.
  TicketedOnDevice(const char* strategy, const OnHost& tuned, const DeviceStrategyPlace& place)
      : Base(place), tuned_(tuned), strategy_(strategy), kernel_(place.kernels->find(strategy)) {
    tuned_.tuning.idle_sweeps_max = kIdleSweepsMax;
  }

  void open(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results, DeviceBlock* block) override {
    const auto n = static_cast<std::uint32_t>(batch.columns.size());
    const std::uint32_t each = transactions_per_thread();
    on_host_ = tuned_;
    shape_ = inputs_.open(batch, this->threads_of(kernels_.threads(kernel_, (n + each - 1) / each)), records, results,
                          &on_host_);
    this->add_columns(block);
  }
  Status launch(DeviceStream stream) override {
    return kernels_.launch(stream, kernel_, &on_device_, {.threads = shape_.threads.number});
  }
  void close(BatchResults* results, ExecutionReport* report) override {
    report_ticketed(strategy_, on_host_, shape_, results, report);
    inputs_.close(on_host_, report);
  }

 protected:
  using Base::kernels_, Base::shape_, Base::on_host_, Base::on_device_;

  std::uint32_t transactions_per_thread() const { return std::max(tuned_.tuning.transactions_per_thread, 1u); }

  OnHost tuned_;
  TicketedInputs<OnHost> inputs_;

 private:
  const char* strategy_;
  KernelHandle kernel_;
};

}  // namespace kilokv::engine
