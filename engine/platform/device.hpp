// One thin layer over a device: memory, copies, streams, events, errors. Two classes implement it: a CUDA device
// (cuda_device.hpp) and an emulated one (emulated_device.hpp). So the code that drives a device also runs on a machine
// without one. Kernels are not here: the code that has them launches them on the stream of its own device
// (exec/device/device_kernels.hpp).
//
// Every function that takes a stream returns at once. Its work runs after what the stream got before. Only events order
// two streams. Host memory that takes part must not change until the work has run.
//
// Errors: RESOURCE_EXHAUSTED if there is not enough memory; INTERNAL, which names the call, for everything else. After
// an INTERNAL error the state of the device is unknown. Its owner gives the device up and frees what it holds, which
// never fails.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/status.hpp"

namespace kilokv::engine {

// The address of memory on a device; 0: none. On a CUDA device it has the bits of the pointer.
using DeviceAddress = std::uint64_t;

// Numbers that the device gives in the order of creation.
enum class DeviceStream : std::uint32_t {};
enum class DeviceEvent : std::uint32_t {};

struct DeviceInfo {
  std::string kind;                   // cuda or emulated
  std::string model;                  // such as "NVIDIA H200"
  std::uint32_t multiprocessors = 1;  // blocks that surely run at the same time, one on each
  std::size_t memory_bytes = 0;       // all memory of the device
};

// Host memory that the device uses in place.
struct SharedMemory {
  std::byte* host = nullptr;
  DeviceAddress device = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // Memory with undefined content, aligned to 256 bytes. `bytes` is at least 1.
  [[nodiscard]] virtual Result<DeviceAddress> allocate(std::size_t bytes) = 0;
  virtual void free(DeviceAddress address) = 0;
  // Pinned host memory, so that copies run while the host works.
  [[nodiscard]] virtual Result<void*> allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(void* memory) = 0;

  // Host memory that a kernel reads and writes in place while the host does too: words that both access by loads and
  // stores, and data that these words order. Aligned to 256 bytes, all zero. Free it only when no kernel uses it.
  [[nodiscard]] virtual Result<SharedMemory> allocate_shared(std::size_t bytes) = 0;
  virtual void free_shared(SharedMemory memory) = 0;
  // Whether the work of streams runs by itself. If not, it runs only while a thread synchronizes.
  virtual bool runs_by_itself() const = 0;

  [[nodiscard]] virtual Result<DeviceStream> create_stream() = 0;
  [[nodiscard]] virtual Result<DeviceEvent> create_event() = 0;
  [[nodiscard]] virtual Status copy_to_device(DeviceStream stream, DeviceAddress to, const void* from,
                                              std::size_t bytes) = 0;
  [[nodiscard]] virtual Status copy_to_host(DeviceStream stream, void* to, DeviceAddress from, std::size_t bytes) = 0;
  [[nodiscard]] virtual Status fill(DeviceStream stream, DeviceAddress to, std::uint8_t byte, std::size_t bytes) = 0;
  // The event happens when the stream has reached it. wait: the stream continues when the event's last record() has
  // happened.
  [[nodiscard]] virtual Status record(DeviceEvent event, DeviceStream stream) = 0;
  [[nodiscard]] virtual Status wait(DeviceStream stream, DeviceEvent event) = 0;
  // By the device's clock. Both events must have happened.
  [[nodiscard]] virtual Result<double> seconds_between(DeviceEvent begin, DeviceEvent end) = 0;
  // Waits until the stream has done all its work. Returns the error that the device met in that time. It is also an
  // error if the stream does not end (a watchdog): the device is then lost, and is not waited for again.
  [[nodiscard]] virtual Status synchronize(DeviceStream stream) = 0;
};

}  // namespace kilokv::engine
