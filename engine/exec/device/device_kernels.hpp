// Launches the kernels of a device on its streams. There are two implementations: for a CUDA device (cuda_kernels.hpp)
// and for the emulated device (emulated_kernels.hpp). Both run the same source: stm/ and table/bulk_table.hpp. A launch
// copies its arguments and returns at once. The kernel runs after all that the stream got before. Not thread-safe.
//
// This interface knows no strategy. A strategy finds its kernels by their names (exec/strategy.hpp), and gives the
// shape of each launch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/base/check.hpp"
#include "engine/base/status.hpp"
#include "engine/platform/device.hpp"
#include "engine/platform/device_pointer.hpp"
#include "engine/stm/validator.hpp"
#include "engine/table/bulk_table.hpp"

namespace kilokv::engine {

// Names a kernel of a strategy.
enum class KernelHandle : std::uint32_t {};

struct LaunchShape {
  std::uint32_t threads;             // a number that threads() returned
  std::uint64_t shared_words = 0;    // for each block
  std::uint32_t cluster_blocks = 1;  // blocks of a cluster, which reach each other's shared words; a power of two
};

class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;

  virtual std::uint32_t group_width() const = 0;

  // Nothing: no strategy has a kernel of this name for this device.
  virtual std::optional<KernelHandle> look_up(std::string_view name) const = 0;
  // Requires: a strategy has a kernel of this name for this device.
  KernelHandle find(std::string_view name) const {
    const std::optional<KernelHandle> found = look_up(name);
    KILOKV_CHECK(found.has_value());
    return *found;
  }
  virtual std::uint32_t block_threads(KernelHandle kernel) const = 0;
  // How many threads to launch if there is work for `wanted` threads. They fill whole blocks, or whole clusters, and
  // are no more than run at once.
  virtual std::uint32_t threads(KernelHandle kernel, std::uint32_t wanted, std::uint64_t shared_words = 0,
                                std::uint32_t cluster_blocks = 1) const = 0;
  // The most shared words that a block can have.
  virtual std::uint64_t shared_words_max() const = 0;
  // The most blocks that a cluster of this kernel can have if each has shared_words_max(): a power of two, at most
  // `most`.
  virtual std::uint32_t cluster_blocks_max(KernelHandle kernel, std::uint32_t most) const = 0;
  // `arguments`: the struct that the kernel takes, over DeviceSpace.
  [[nodiscard]] virtual Status launch(DeviceStream stream, KernelHandle kernel, const void* arguments,
                                      const LaunchShape& shape) = 0;

  [[nodiscard]] virtual Status bulk(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) = 0;
  // The back of the cooperative validator (stm/validator.hpp). It runs until the front tells it to end. It is launched
  // with validator_threads() threads.
  virtual std::uint32_t validator_threads() const = 0;
  [[nodiscard]] virtual Status validator(DeviceStream stream, const ValidatorArguments<DeviceSpace>& arguments) = 0;
  [[nodiscard]] virtual Status scatter(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) = 0;
};

struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceKernels> kernels;  // those of this device, which outlives them
};

}  // namespace kilokv::engine
