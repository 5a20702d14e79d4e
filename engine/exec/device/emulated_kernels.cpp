#include "engine/exec/device/emulated_kernels.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/exec/strategy.hpp"

namespace kilokv::engine {
namespace {

class EmulatedKernels final : public DeviceKernels {
 public:
  EmulatedKernels(EmulatedDevice* device, std::span<const Strategy* const> strategies) : device_(*device) {
    for (const Strategy* strategy : strategies) {
      kernels_.insert(kernels_.end(), strategy->kernels.begin(), strategy->kernels.end());
    }
  }

  std::uint32_t group_width() const override { return EmulatedPlatform::kGroupWidth; }

  std::optional<KernelHandle> look_up(std::string_view name) const override {
    const auto found = std::find_if(kernels_.begin(), kernels_.end(),
                                    [&](const EmulatedKernel& kernel) { return kernel.name == name; });
    if (found == kernels_.end()) return std::nullopt;
    return static_cast<KernelHandle>(found - kernels_.begin());
  }
  std::uint32_t block_threads(KernelHandle) const override { return 1; }
  std::uint32_t threads(KernelHandle, std::uint32_t, std::uint64_t, std::uint32_t) const override {
    return device_.info().multiprocessors;
  }
  std::uint64_t shared_words_max() const override { return EmulatedDevice::kBlockWordsMax; }
  // Each thread is a block. A cluster has at most half of them, so that some blocks share the words and others do not.
  std::uint32_t cluster_blocks_max(KernelHandle, std::uint32_t most) const override {
    return std::bit_floor(std::clamp(device_.info().multiprocessors / 2, 1u, most));
  }
  Status launch(DeviceStream stream, KernelHandle kernel, const void* arguments, const LaunchShape& shape) override {
    const EmulatedKernel& emulated = kernels_[static_cast<std::size_t>(kernel)];
    return device_.launch(stream, emulated.name, emulated.bind(arguments), {shape.shared_words, shape.cluster_blocks});
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
  Status scatter(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) override {
    return device_.launch(stream, "scatter",
                          [arguments](EmulatedPlatform& platform) { scatter_cells(platform, arguments); });
  }

 private:
  EmulatedDevice& device_;
  std::vector<EmulatedKernel> kernels_;
};

}  // namespace

OpenedDevice open_emulated(const EmulatedDeviceOptions& options) {
  return open_emulated(std::make_unique<EmulatedDevice>(options));
}

OpenedDevice open_emulated(std::unique_ptr<EmulatedDevice> device) {
  return open_emulated(std::move(device), all_strategies());
}

OpenedDevice open_emulated(std::unique_ptr<EmulatedDevice> device, std::span<const Strategy* const> strategies) {
  auto kernels = std::make_unique<EmulatedKernels>(device.get(), strategies);
  return {std::move(device), std::move(kernels)};
}

}  // namespace kilokv::engine
