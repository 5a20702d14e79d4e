// One thin layer over a device: memory, copies, streams, events, errors. Two make it: a CUDA device (cuda_device.hpp)
// and the emulated one (emulated_device.hpp), so that whoever drives a device also runs where there is none. Kernels
// are not here: who has them launches them on the stream of its own device (exec/device/device_kernels.hpp).
//
// Everything that takes a stream returns at once, and runs behind what the stream was given before; two streams have no
// order but by events. Host memory that takes part stays as it is until then.
//
// Errors: RESOURCE_EXHAUSTED where memory does not suffice; INTERNAL, naming the call, for everything else. After an
// INTERNAL error nothing of the device is known: its owner gives it up, and frees what it holds, which never fails.
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/status.hpp"

namespace kilokv::engine {

// Of memory on a device; 0: none. On a CUDA device the bits of its pointer.
using DeviceAddress = std::uint64_t;

// By number, as the device made them.
enum class DeviceStream : std::uint32_t {};
enum class DeviceEvent : std::uint32_t {};

struct DeviceInfo {
  std::string kind;                   // cuda or emulated
  std::string model;                  // such as "NVIDIA H200"
  std::uint32_t multiprocessors = 1;  // blocks that surely run side by side, one on each
  std::size_t memory_bytes = 0;       // of the device, all told
};

// Memory of the host that the device uses in place.
struct SharedMemory {
  std::byte* host = nullptr;
  DeviceAddress device = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  // Of undefined content, aligned to 256 bytes. `bytes` at least 1.
  [[nodiscard]] virtual Result<DeviceAddress> allocate(std::size_t bytes) = 0;
  virtual void free(DeviceAddress address) = 0;
  // Of the host, for copies that run beside it.
  [[nodiscard]] virtual Result<void*> allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(void* memory) = 0;

  // Of the host, which a kernel reads and writes in place while the host does: words that both use by loads and stores,
  // and what these order. Aligned to 256 bytes, all zero. Freed when no kernel uses it.
  [[nodiscard]] virtual Result<SharedMemory> allocate_shared(std::size_t bytes) = 0;
  virtual void free_shared(SharedMemory memory) = 0;
  // Whether what streams are given runs by itself; else only while somebody synchronizes.
  virtual bool runs_by_itself() const = 0;

  [[nodiscard]] virtual Result<DeviceStream> create_stream() = 0;
  [[nodiscard]] virtual Result<DeviceEvent> create_event() = 0;
  [[nodiscard]] virtual Status copy_to_device(DeviceStream stream, DeviceAddress to, const void* from,
                                              std::size_t bytes) = 0;
  [[nodiscard]] virtual Status copy_to_host(DeviceStream stream, void* to, DeviceAddress from, std::size_t bytes) = 0;
  [[nodiscard]] virtual Status fill(DeviceStream stream, DeviceAddress to, std::uint8_t byte, std::size_t bytes) = 0;
  // The event happens when the stream has come so far; wait: the stream goes on when the event's last record() has.
  [[nodiscard]] virtual Status record(DeviceEvent event, DeviceStream stream) = 0;
  [[nodiscard]] virtual Status wait(DeviceStream stream, DeviceEvent event) = 0;
  // By the device's clock, of events that have both happened.
  [[nodiscard]] virtual Result<double> seconds_between(DeviceEvent begin, DeviceEvent end) = 0;
  // Until the stream has done all; returns what went wrong on the device meanwhile, also that it does not come to an
  // end (a watchdog: the device is then lost, and is not waited for again).
  [[nodiscard]] virtual Status synchronize(DeviceStream stream) = 0;
};

}  // namespace kilokv::engine
