// The memory of the emulated device. It detects errors that real memory would let pass, or that would corrupt real
// memory.
//
// An address has a tag (10 bits), an allocation (14 bits) and an offset (40 bits). The offset is biased: an index may
// run 512 GiB over either end and still not reach another allocation. Because of the tag, an address is never one of
// the host, so that a raw use of it faults there. Allocations are numbered for the whole process, because a pointer is
// translated without knowing its device. A freed number is reused as late as possible, so that a stale address is
// detected for a long time.
//
// It detects an address without the tag (a pointer of the host), null, and an address that is freed, of another device,
// out of range, or not aligned. It also detects a read of a byte that was never written. New memory is poisoned, and no
// byte of it counts as written.
//
// A fault does not stop the kernel. The first fault is kept, with the access and its user, for the stream's
// synchronize(). The access goes to a dummy that belongs to the thread. Two faults end the process, because no stream
// would ever report them. One is a translation outside of any kernel: the host uses a device pointer. The other is the
// last of kDeviceFaultsMax faults: a kernel that waits for what a fault has lost waits for ever.
//
// Thread safety: only the thread that drives the device calls allocate(), free() and make_undefined(), while no kernel
// runs. All threads of a kernel may call the rest. Only the report of a fault takes a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/platform/device.hpp"

namespace kilokv::engine {

inline constexpr std::uint8_t kDevicePoison = 0xA5;
inline constexpr std::size_t kDeviceMemoryBytesMax = std::size_t{1} << 38;  // of one device, so that every offset fits

inline constexpr std::uint64_t kDeviceFaultsMax = std::uint64_t{1} << 22;

// copy: a read that also copies bytes that were never written, as poison.
enum class DeviceAccess : std::uint8_t { read, write, copy };

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes_max);  // at most kDeviceMemoryBytesMax
  ~DeviceMemory();                               // frees what is still allocated
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Aligned to 256 bytes. RESOURCE_EXHAUSTED: it would be more than `bytes_max` in all, the host has no memory, or no
  // allocation number is left.
  [[nodiscard]] Result<DeviceAddress> allocate(std::size_t bytes);
  // 0: does nothing. An address that is not the beginning of a live allocation is a fault.
  void free(DeviceAddress address);
  // Makes the bytes like freshly allocated ones. Requires: all within one allocation.
  void make_undefined(DeviceAddress address, std::size_t bytes);

  // Returns where the bytes are on the host, and notes them as written if `access` writes. Null: the access was a
  // fault. `user`: who makes the access.
  std::byte* locate(DeviceAddress address, std::size_t bytes, std::size_t alignment, DeviceAccess access,
                    const char* user);
  // Reports a fault that other code has found.
  void report(const std::string& text);
  // The first fault, as INTERNAL.
  Status fault() const;

 private:
  void count_fault();

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::vector<std::uint32_t> allocations_;  // by number
  std::atomic<std::uint64_t> faults_{0};
  mutable std::mutex fault_mutex_;
  Status fault_;
};

// While it lives, this thread counts as a thread of a kernel on that memory. `kernel` outlives it.
class KernelScope {
 public:
  KernelScope(DeviceMemory* memory, const char* kernel);
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;
};

// The largest datum that a device pointer may point to.
inline constexpr std::size_t kDeviceDatumBytesMax = 256;

// For threads of a kernel: where the datum is on the host, or zeros if the access was a fault.
std::byte* translate(DeviceAddress address, std::size_t bytes, std::size_t alignment, DeviceAccess access);

}  // namespace kilokv::engine
