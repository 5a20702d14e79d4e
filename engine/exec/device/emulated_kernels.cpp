#include "engine/exec/device/emulated_kernels.hpp"

#include <algorithm>
#include <bit>

#include "engine/stm/ordered.hpp"
#include "engine/stm/papers/gpustm.hpp"
#include "engine/stm/papers/kilo.hpp"
#include "engine/stm/papers/local.hpp"
#include "engine/stm/papers/lock.hpp"
#include "engine/stm/papers/prstm.hpp"

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
  // At most half of the threads, each a block, so that some have the stage and some have not.
  std::uint32_t part_bits_max() const override {
    const std::uint32_t blocks = std::clamp(device_.info().multiprocessors / 2, 1u, kStageBlocksMax);
    return static_cast<std::uint32_t>(std::bit_width(blocks) - 1);
  }
  std::uint32_t stage_threads(std::uint32_t part_bits) const override { return 1u << part_bits; }
  std::uint32_t stage_slots_max(std::uint32_t signature_bits, std::uint32_t part_bits) const override {
    return engine::stage_slots_max(EmulatedDevice::kBlockWordsMax, signature_bits, stage_threads(part_bits),
                                   EmulatedPlatform::kGroupWidth, part_bits);
  }
  std::uint32_t local_threads(std::uint32_t, std::uint64_t, std::uint32_t, bool) const override {
    return device_.info().multiprocessors;
  }
  // So that all ways are used.
  OrderedTuning tuning() const override { return {.decided_min = 4, .divisor = 32, .walks = true, .few_of_max = 64}; }

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
    const LocalArguments<DeviceSpace>& local = arguments.local;
    const std::uint64_t words = stage_part_words(local.staged, arguments.tuning.local.signature_bits, local.threads,
                                                 EmulatedPlatform::kGroupWidth, local.part_bits);
    const EmulatedBlocks blocks{words, 1u << local.part_bits};
    if (!arguments.tuning.local.times) {
      return launch_ticketed<Local<EmulatedPlatform>>(stream, strategy, arguments, blocks);
    }
    return launch_ticketed<Local<EmulatedPlatform, TimedLocalRules>>(stream, strategy, arguments, blocks);
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
                         const TicketedArguments<DeviceSpace>& arguments, EmulatedBlocks blocks = {}) {
    const auto run = [arguments](EmulatedPlatform& platform) {
      TicketedRun<EmulatedPlatform, Protocol>(platform, arguments).run();
    };
    return device_.launch(stream, name_of(strategy), run, blocks);
  }

  EmulatedDevice& device_;
};

}  // namespace

OpenedDevice open_emulated(const EmulatedDeviceOptions& options) {
  return open_emulated(std::make_unique<EmulatedDevice>(options));
}

OpenedDevice open_emulated(std::unique_ptr<EmulatedDevice> device) {
  auto kernels = std::make_unique<EmulatedKernels>(device.get());
  return {std::move(device), std::move(kernels)};
}

}  // namespace kilokv::engine
