// The kernels of a device, as launches on its streams: those of a CUDA device (cuda_kernels.hpp) and of the emulated
// one (emulated_kernels.hpp). Both run the same source: stm/ and table/bulk_table.hpp. A launch returns at
// once, and runs behind what the stream was given before; arguments are copied. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/base/status.hpp"
#include "engine/platform/device.hpp"
#include "engine/platform/device_pointer.hpp"
#include "engine/stm/ordered_arguments.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"
#include "engine/stm/validator.hpp"
#include "engine/table/bulk_table.hpp"

namespace kilokv::engine {

class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;

  // Of a launch of ordered() for so many transactions; of one of ticketed() with so many threads' work.
  virtual std::uint32_t ordered_threads(std::uint32_t transactions) const = 0;
  virtual std::uint32_t ticketed_threads(TicketedStrategy strategy, std::uint32_t wanted) const = 0;
  virtual std::uint32_t group_width() const = 0;
  // Of `local`, whose stage is in the words of 2^part_bits blocks, a cluster: the most such part_bits; threads that
  // share the stage; records that it has room for; threads of a launch, whose blocks each have so many words of it, and
  // which adds up where the time goes, or does not.
  virtual std::uint32_t part_bits_max() const = 0;
  virtual std::uint32_t stage_threads(std::uint32_t part_bits) const = 0;
  virtual std::uint32_t stage_slots_max(std::uint32_t signature_bits, std::uint32_t part_bits) const = 0;
  virtual std::uint32_t local_threads(std::uint32_t wanted, std::uint64_t part_words, std::uint32_t part_bits,
                                      bool times) const = 0;
  virtual OrderedTuning tuning() const = 0;

  [[nodiscard]] virtual Status ordered(DeviceStream stream, const OrderedArguments<DeviceSpace>& arguments) = 0;
  [[nodiscard]] virtual Status ticketed(DeviceStream stream, TicketedStrategy strategy,
                                        const TicketedArguments<DeviceSpace>& arguments) = 0;
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
