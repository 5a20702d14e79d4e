#include "engine/exec/emulated_kernels.hpp"

#include <algorithm>

#include "engine/stm/gpustm.hpp"
#include "engine/stm/kilo.hpp"
#include "engine/stm/local.hpp"
#include "engine/stm/lock.hpp"
#include "engine/stm/ordered.hpp"
#include "engine/stm/prstm.hpp"

namespace kilokv::engine {
namespace {

class EmulatedKernels final : public DeviceKernels {
 public:
  explicit EmulatedKernels(EmulatedDevice* device) : device_(*device) {}

  std::uint32_t ordered_threads(std::uint32_t) const override { return device_.info().multiprocessors; }
  std::uint32_t ticketed_threads(TicketedStrategy, std::uint32_t) const override {
    return device_.info().multiprocessors;
  }
  std::uint32_t group_width() const override { return EmulatedPlatform::kGroupWidth; }
  // Half of the threads, so that some have the stage and some have not.
  std::uint32_t stage_threads() const override { return std::max(device_.info().multiprocessors / 2, 1u); }
  std::uint32_t stage_slots_max(std::uint32_t) const override { return kStagedRecordsMax; }
  std::uint32_t local_threads(std::uint32_t, std::uint64_t) const override { return device_.info().multiprocessors; }
  bool has_block_words() const override { return EmulatedPlatform::kHasBlockWords; }
  OrderedTuning tuning() const override {
    return {.decided_min = 2, .divisor = 32, .walks = true};
  }  // so that both ways are used

  Status ordered(DeviceStream stream, const OrderedArguments<DeviceSpace>& arguments) override {
    return device_.launch(stream, "ordered", [arguments](EmulatedPlatform& platform) {
      OrderedRun<EmulatedPlatform>(platform, arguments).run();
    });
  }
  Status ticketed(DeviceStream stream, TicketedStrategy strategy,
                  const TicketedArguments<DeviceSpace>& arguments) override {
    switch (strategy) {
      case TicketedStrategy::prstm: return launch_ticketed<Prstm<EmulatedPlatform>>(stream, strategy, arguments);
      case TicketedStrategy::lock: return launch_ticketed<Locking<EmulatedPlatform>>(stream, strategy, arguments);
      case TicketedStrategy::gpustm: return launch_ticketed<Gpustm<EmulatedPlatform>>(stream, strategy, arguments);
      case TicketedStrategy::kilo: return launch_ticketed<Kilo<EmulatedPlatform>>(stream, strategy, arguments);
      case TicketedStrategy::local: break;
    }
    return launch_ticketed<Local<EmulatedPlatform>>(stream, strategy, arguments);
  }
  Status bulk(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) override {
    return device_.launch(stream, "bulk", [arguments](EmulatedPlatform& platform) {
      BulkRun<EmulatedPlatform>(platform, arguments).run();
    });
  }
  std::uint32_t validator_threads() const override { return device_.info().multiprocessors; }
  Status validator(DeviceStream stream, const ValidatorArguments<DeviceSpace>& arguments) override {
    return device_.launch(stream, "validator", [arguments](EmulatedPlatform& platform) {
      using Check = LaneCheck<EmulatedPlatform>;
      ValidatorBack<EmulatedPlatform, Check>(platform, arguments, Check(arguments)).serve();
    });
  }
  Status scatter(DeviceStream stream, const ScatterArguments<DeviceSpace>& arguments) override {
    return device_.launch(stream, "scatter",
                          [arguments](EmulatedPlatform& platform) { scatter_cells(platform, arguments); });
  }

 private:
  template <class Protocol>
  Status launch_ticketed(DeviceStream stream, TicketedStrategy strategy,
                         const TicketedArguments<DeviceSpace>& arguments) {
    return device_.launch(stream, name_of(strategy), [arguments](EmulatedPlatform& platform) {
      TicketedRun<EmulatedPlatform, Protocol>(platform, arguments).run();
    });
  }

  EmulatedDevice& device_;
};

}  // namespace

OpenedDevice open_emulated(const EmulatedDeviceOptions& options) {
  auto device = std::make_unique<EmulatedDevice>(options);
  auto kernels = std::make_unique<EmulatedKernels>(device.get());
  return {std::move(device), std::move(kernels)};
}

}  // namespace kilokv::engine
