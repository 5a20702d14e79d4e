// The kernels of a device, as launches on its streams: those of a CUDA device (cuda_kernels.hpp) and of the emulated
// one (emulated_kernels.hpp). Both run the same source: stm/ and table/bulk_table.hpp. A launch returns at
// once, and runs behind what the stream was given before; arguments are copied. Not thread-safe.
//
// It knows no strategy: a strategy finds its kernels by their names (exec/strategy.hpp), and says with what shape each
// is launched.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/base/status.hpp"
#include "engine/platform/device.hpp"
#include "engine/platform/device_pointer.hpp"
#include "engine/stm/validator.hpp"
#include "engine/table/bulk_table.hpp"

namespace kilokv::engine {

// A kernel of a strategy.
enum class KernelHandle : std::uint32_t {};

struct LaunchShape {
  std::uint32_t threads;             // as threads() gives them
  std::uint64_t shared_words = 0;    // of each block
  std::uint32_t cluster_blocks = 1;  // that reach each other's shared words; a power of two
};

class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;

  virtual std::uint32_t group_width() const = 0;

  // Requires: a strategy has a kernel of this name.
  virtual KernelHandle find(std::string_view name) const = 0;
  virtual std::uint32_t block_threads(KernelHandle kernel) const = 0;
  // Of a launch with the work of `wanted` threads: whole blocks, or whole clusters, and no more than run side by side.
  virtual std::uint32_t threads(KernelHandle kernel, std::uint32_t wanted, std::uint64_t shared_words = 0,
                                std::uint32_t cluster_blocks = 1) const = 0;
  // That a block can have.
  virtual std::uint64_t shared_words_max() const = 0;
  // Blocks of a cluster of this kernel, each with all the shared words that it can have: a power of two to `most`.
  virtual std::uint32_t cluster_blocks_max(KernelHandle kernel, std::uint32_t most) const = 0;
  // `arguments`: the struct that the kernel takes, over DeviceSpace.
  [[nodiscard]] virtual Status launch(DeviceStream stream, KernelHandle kernel, const void* arguments,
                                      const LaunchShape& shape) = 0;

  [[nodiscard]] virtual Status bulk(DeviceStream stream, const BulkArguments<DeviceSpace>& arguments) = 0;
  // The back of a validation; it runs until it is told to end (stm/validator.hpp). validator_threads: of its launch.
  virtual std::uint32_t validator_threads() const = 0;
  [[nodiscard]] virtual Status validator(DeviceStream stream, const ValidatorArguments<DeviceSpace>& arguments) = 0;
  [[nodiscard]] virtual Status scatter(DeviceStream stream, const ScatterArguments<DeviceSpace>& arguments) = 0;
};

struct OpenedDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<DeviceKernels> kernels;  // of this device, which outlives them
};

}  // namespace kilokv::engine
