// A device for machines without one: host threads over separate memory (device_memory.hpp). Its streams run as late,
// and in as unusual an order, as those of a real device may. It is for tests of the code that drives a device.
//
// Nothing runs until a thread synchronizes. Then the operations of all streams run, one at a time. The seed picks the
// order among those that streams and events allow. This ends when the synchronized stream has done all its work; other
// streams may have work left. A copy takes the content at the time at which it runs. A kernel runs on all threads. Each
// thread is a block, and a cluster has as many blocks as the launch says. The words that the threads of a block or a
// cluster share are undefined at the start.
//
// An error of a kernel or a copy (also a barrier that not all threads reach) is detected, and reported by the
// synchronize() that ran it. Then the device is lost: every further call fails, and the work left in the streams never
// runs. free() works at once: work that still uses that memory later is wrong.
//
// Thread safety: none, as for any Device. To run a kernel while its host runs, the host lets another thread
// synchronize, and makes no call until that thread has returned.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <vector>

#include "engine/platform/device.hpp"
#include "engine/platform/device_memory.hpp"
#include "engine/platform/device_pointer.hpp"
#include "engine/platform/host.hpp"

namespace kilokv::engine {

// The barrier of the threads of a kernel. It does not wait for threads that have ended, but it remembers that it should
// have: on a real device such a kernel would not end. Thread safety: all threads of the kernel.
class KernelMeeting {
 public:
  explicit KernelMeeting(std::uint32_t threads) : threads_(threads), present_(threads) {}
  void meet();
  void leave();  // the calling thread comes to no further barrier
  // After all threads have ended: whether all of them came to each barrier.
  bool is_even() const { return even_; }

 private:
  void open();

  const std::uint32_t threads_;
  std::mutex mutex_;
  std::condition_variable opened_;
  std::uint32_t present_;
  std::uint32_t waiting_ = 0;
  std::uint64_t openings_ = 0;
  bool even_ = true;
};

// For a launch: how many words each block has, and how many blocks a cluster has.
struct EmulatedBlocks {
  std::uint64_t words = 0;
  std::uint32_t in_cluster = 1;
};

class EmulatedPlatform : public HostPlatformOver<DeviceSpace> {
 public:
  static constexpr bool kHasBlockWords = true, kHasClusters = true;

  // `block_words`: the words of each block of this thread's cluster.
  EmulatedPlatform(ThreadTeam* team, std::uint32_t thread, Pointer<std::uint64_t> shared, KernelMeeting* meeting,
                   std::span<const DeviceAddress> block_words)
      : HostPlatformOver(team, thread, shared), meeting_(meeting), block_words_(block_words) {}
  void grid_barrier() const { meeting_->meet(); }
  // Null if the cluster has no such block, or if the launch asked for no words. A use of null is a fault.
  Pointer<std::uint64_t> block_words(std::uint32_t block) const {
    return Pointer<std::uint64_t>(block < block_words_.size() ? block_words_[block] : 0);
  }

 private:
  KernelMeeting* meeting_;
  std::span<const DeviceAddress> block_words_;
};
static_assert(Platform<EmulatedPlatform>);

// The injected end of a call.
enum class InjectedError : std::uint8_t {
  exhausted,  // RESOURCE_EXHAUSTED, and nothing else happens
  lost,       // INTERNAL, and the device is lost
  // The call succeeds, but the work that it gave its stream fails when it runs. If it gives no work, this is `lost`.
  asynchronous,
};

struct EmulatedDeviceOptions {
  std::uint64_t seed = 1;     // for the order of streams
  std::uint32_t threads = 4;  // of each kernel
  std::size_t memory_bytes_max = std::size_t{4} << 30;
  std::uint64_t fail_at_call = 0;  // from 1; 0: never
  InjectedError fail_as = InjectedError::lost;
  std::function<bool()> fails = nullptr;  // asked at each call; true: the call fails as fail_as says; null: never
};

class EmulatedDevice : public Device {
 public:
  using Kernel = std::function<void(EmulatedPlatform&)>;
  static constexpr std::uint64_t kBlockWordsMax =
      std::uint64_t{227} * 1024 / sizeof(std::uint64_t);  // as on a Hopper device

  explicit EmulatedDevice(const EmulatedDeviceOptions& options = {});
  ~EmulatedDevice() override;  // frees what is still allocated, runs nothing

  const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] Result<DeviceAddress> allocate(std::size_t bytes) override;
  void free(DeviceAddress address) override { memory_.free(address); }
  [[nodiscard]] Result<void*> allocate_pinned(std::size_t bytes) override;
  void free_pinned(void* memory) override;
  // In the device's memory. All bytes count as written, because accesses of the host are not checked.
  [[nodiscard]] Result<SharedMemory> allocate_shared(std::size_t bytes) override;
  void free_shared(SharedMemory memory) override { memory_.free(memory.device); }
  bool runs_by_itself() const override { return false; }
  [[nodiscard]] Result<DeviceStream> create_stream() override;
  [[nodiscard]] Result<DeviceEvent> create_event() override;
  [[nodiscard]] Status copy_to_device(DeviceStream stream, DeviceAddress to, const void* from,
                                      std::size_t bytes) override;
  [[nodiscard]] Status copy_to_host(DeviceStream stream, void* to, DeviceAddress from, std::size_t bytes) override;
  [[nodiscard]] Status fill(DeviceStream stream, DeviceAddress to, std::uint8_t byte, std::size_t bytes) override;
  [[nodiscard]] Status record(DeviceEvent event, DeviceStream stream) override;
  [[nodiscard]] Status wait(DeviceStream stream, DeviceEvent event) override;
  // Never fails.
  [[nodiscard]] Result<double> seconds_between(DeviceEvent begin, DeviceEvent end) override;
  [[nodiscard]] Status synchronize(DeviceStream stream) override;

  // Runs body(platform) on every thread, in stream order. The body must not throw. What it captures must live until it
  // has run. `name`: a literal.
  [[nodiscard]] Status launch(DeviceStream stream, const char* name, Kernel body, EmulatedBlocks blocks = {});

  // The number of calls so far that can fail: all of the above.
  std::uint64_t calls() const { return calls_; }
  // How many of these calls allocate memory, pinned or the device's.
  std::uint64_t allocations() const { return allocations_; }
  // The n-th call from now on, from 1, ends with `error`.
  void fail_call(std::uint64_t n, InjectedError error);

 private:
  struct Place {  // the point after this many operations of this stream
    std::size_t stream;
    std::uint64_t operations;
  };
  struct Operation {
    const char* name;
    std::function<void()> run;
    Place after;
    bool fails = false;
  };
  struct Stream {
    std::uint64_t done = 0;
    std::deque<Operation> pending;
  };

  Status enter(const char* call);
  Status lose(const char* call);
  Status enqueue(const char* call, DeviceStream stream, std::function<void()> run, Place after = {});
  bool is_ready(const Stream& stream) const;
  void run_one();
  void run_kernel(const char* name, const Kernel& body, EmulatedBlocks blocks);

  DeviceInfo info_;
  DeviceMemory memory_;
  ThreadTeam team_;
  std::mt19937_64 random_;
  DeviceAddress shared_ = 0;                 // kSharedWords for each thread
  std::vector<DeviceAddress> block_memory_;  // kBlockWordsMax for each block
  std::vector<DeviceAddress> block_words_;   // for each block: the part of it that the current kernel may use
  std::vector<Stream> streams_;
  struct Event {
    Place place;                                 // after its last record()
    std::chrono::steady_clock::time_point time;  // when it happened
  };
  std::vector<Event> events_;
  std::map<void*, std::unique_ptr<std::byte[]>> pinned_;
  std::uint64_t calls_ = 0, allocations_ = 0;
  std::uint64_t failing_call_;
  InjectedError error_;
  std::function<bool()> fails_;
  bool fails_later_ = false;  // the current call
  Status lost_;
};

}  // namespace kilokv::engine
