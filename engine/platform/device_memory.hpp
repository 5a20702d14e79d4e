// The memory of the emulated device, which notices what real memory would let pass or corrupt.
//
// An address is tag (10 bits), allocation (14 bits), offset (40 bits, biased: an index may run 512 GiB off either end
// and still not meet another allocation). With its tag it is no address of the host: a raw use faults there.
// Allocations are numbered for the whole process, for a pointer is translated without knowing its device; a freed
// number is taken again last, so that stale addresses stay known as such.
//
// What is noticed: an address without the tag (a pointer of the host), null, freed, of another device, out of range,
// not aligned; a read of a byte that was never written. Memory begins poisoned, and no byte of it as written.
//
// A fault does not stop the kernel: the first one is kept, with who did what, for the stream's synchronize(), and the
// access goes to a dummy of the thread's own. Two end the process, as no stream would ever tell of them: a translation
// outside of any kernel, which is the host using a device pointer, and the last of kDeviceFaultsMax faults, for a
// kernel that waits for what a fault has lost waits for ever.
//
// Thread safety: allocate(), free() and make_undefined() are for the one thread that drives the device, while no kernel
// runs; everything else is for all threads of a kernel at once, without locks but for the report of a fault.
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
inline constexpr std::size_t kDeviceMemoryBytesMax = std::size_t{1} << 38;  // of one device: what offsets can hold

inline constexpr std::uint64_t kDeviceFaultsMax = std::uint64_t{1} << 22;

// copy: a read that takes bytes that were never written along, as poison.
enum class DeviceAccess : std::uint8_t { read, write, copy };

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes_max);  // kDeviceMemoryBytesMax at most
  ~DeviceMemory();                               // frees what is left
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Aligned to 256 bytes. RESOURCE_EXHAUSTED: beyond `bytes_max`, or more allocations than there are numbers.
  [[nodiscard]] Result<DeviceAddress> allocate(std::size_t bytes);
  // 0: nothing. What is not the beginning of a living allocation is a fault.
  void free(DeviceAddress address);
  // As freshly allocated. Requires: within one allocation.
  void make_undefined(DeviceAddress address, std::size_t bytes);

  // Where the bytes are on the host, noted as written if they are to be; null: that was a fault. `user`: who asks.
  std::byte* locate(DeviceAddress address, std::size_t bytes, std::size_t alignment, DeviceAccess access,
                    const char* user);
  // A fault that somebody else has found.
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

// While it lives, this thread is one of a kernel's on that memory. `kernel` outlives it.
class KernelScope {
 public:
  KernelScope(DeviceMemory* memory, const char* kernel);
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;
};

// The largest datum that a pointer of the device may lead to.
inline constexpr std::size_t kDeviceDatumBytesMax = 256;

// For the threads of a kernel: where the datum is, or zeros if that was a fault.
std::byte* translate(DeviceAddress address, std::size_t bytes, std::size_t alignment, DeviceAccess access);

}  // namespace kilokv::engine
