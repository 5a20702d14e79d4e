#include "engine/platform/device_memory.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>

#include "engine/base/check.hpp"

namespace kilokv::engine {
namespace {

// The tag's lowest bits are also set, so that processors which ignore the top byte of an address fault too.
constexpr std::uint64_t kTag = 0x37B;
constexpr int kTagShift = 54;
constexpr int kAllocationShift = 40;
constexpr std::uint64_t kAllocationMask = (std::uint64_t{1} << (kTagShift - kAllocationShift)) - 1;
constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kAllocationShift) - 1;
constexpr std::int64_t kOffsetBias = std::int64_t{1} << (kAllocationShift - 1);
constexpr std::align_val_t kAlignment{256};
constexpr std::size_t kWordBits = 64;

bool is_tagged(DeviceAddress address) { return address >> kTagShift == kTag; }
std::uint32_t allocation_of(DeviceAddress address) {
  return static_cast<std::uint32_t>(address >> kAllocationShift & kAllocationMask);
}
std::int64_t offset_of(DeviceAddress address) { return static_cast<std::int64_t>(address & kOffsetMask) - kOffsetBias; }
DeviceAddress address_of(std::uint32_t allocation) {
  return kTag << kTagShift | std::uint64_t{allocation} << kAllocationShift | static_cast<std::uint64_t>(kOffsetBias);
}

// Only the owner uses the other members; another device reads only `owner`.
struct Allocation {
  std::atomic<const DeviceMemory*> owner{nullptr};  // null: freed, or never allocated
  std::size_t size = 0;
  std::byte* bytes = nullptr;
  std::unique_ptr<std::atomic<std::uint64_t>[]> written;  // a bit for each byte
};

std::array<Allocation, kAllocationMask + 1> allocations;

// The numbers that are free.
class Numbers {
 public:
  // False: no number is left.
  bool take(std::uint32_t* number) {
    const std::lock_guard lock(mutex_);
    if (fresh_ < allocations.size()) {
      *number = fresh_++;
      return true;
    }
    if (freed_.empty()) return false;
    *number = freed_.front();
    freed_.pop_front();
    return true;
  }
  void give_back(std::uint32_t number) {
    const std::lock_guard lock(mutex_);
    freed_.push_back(number);
  }

 private:
  std::mutex mutex_;
  std::uint32_t fresh_ = 0;
  std::deque<std::uint32_t> freed_;
};

Numbers numbers;

std::size_t words_for(std::size_t bytes) { return (bytes + kWordBits - 1) / kWordBits; }

// Calls step(word, mask) for every word of `written` that has bits of bytes [begin, end), until step returns false.
template <class Step>
bool for_each_word(Allocation& allocation, std::size_t begin, std::size_t end, Step step) {
  for (std::size_t at = begin; at < end;) {
    const std::size_t next = std::min(end, (at / kWordBits + 1) * kWordBits);
    const std::uint64_t mask = (~std::uint64_t{0} >> (kWordBits - (next - at))) << at % kWordBits;
    if (!step(allocation.written[at / kWordBits], mask)) return false;
    at = next;
  }
  return true;
}

bool is_written(Allocation& allocation, std::size_t begin, std::size_t end) {
  return for_each_word(allocation, begin, end, [](std::atomic<std::uint64_t>& word, std::uint64_t mask) {
    return (word.load(std::memory_order_relaxed) & mask) == mask;
  });
}

void note_written(Allocation& allocation, std::size_t begin, std::size_t end) {
  for_each_word(allocation, begin, end, [](std::atomic<std::uint64_t>& word, std::uint64_t mask) {
    if ((word.load(std::memory_order_relaxed) & mask) != mask) word.fetch_or(mask, std::memory_order_relaxed);
    return true;
  });
}

void note_undefined(Allocation& allocation, std::size_t begin, std::size_t end) {
  std::memset(allocation.bytes + begin, kDevicePoison, end - begin);
  for_each_word(allocation, begin, end, [](std::atomic<std::uint64_t>& word, std::uint64_t mask) {
    word.fetch_and(~mask, std::memory_order_relaxed);
    return true;
  });
}

void release(std::uint32_t number) {
  Allocation& allocation = allocations[number];
  allocation.owner.store(nullptr, std::memory_order_release);
  ::operator delete(allocation.bytes, kAlignment);
  allocation.bytes = nullptr;
  allocation.written.reset();
  numbers.give_back(number);
}

std::string hexadecimal(std::uint64_t value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

// Says what is wrong with the access. Empty: nothing is wrong. `memory`: the memory of the kernel that runs.
std::string judge(const DeviceMemory* memory, DeviceAddress address, std::size_t bytes, std::size_t alignment,
                  DeviceAccess access) {
  if (address == 0) return "at a null pointer";
  if (!is_tagged(address)) return "at " + hexadecimal(address) + ", which is a pointer of the host";
  Allocation& allocation = allocations[allocation_of(address)];
  const std::int64_t offset = offset_of(address);
  const std::string where =
      "at offset " + std::to_string(offset) + " of allocation " + std::to_string(allocation_of(address));
  const DeviceMemory* owner = allocation.owner.load(std::memory_order_acquire);
  if (owner == nullptr) return where + ", which is freed";
  if (owner != memory) return where + ", which is another device's";
  const std::size_t size = allocation.size;
  if (offset < 0 || bytes > size || static_cast<std::size_t>(offset) > size - bytes) {
    return where + ", which has " + std::to_string(size) + " bytes";
  }
  const auto begin = static_cast<std::size_t>(offset);
  if (begin % alignment != 0) return where + ", which is not aligned to " + std::to_string(alignment);
  if (access == DeviceAccess::read && !is_written(allocation, begin, begin + bytes)) {
    return where + ", which was never written";
  }
  return {};
}

// The same as judge(...).empty(), but makes no text. So it is fast for the accesses that are right, which are nearly
// all.
bool is_fine(const DeviceMemory* memory, DeviceAddress address, std::size_t bytes, std::size_t alignment,
             DeviceAccess access) {
  if (!is_tagged(address)) return false;
  Allocation& allocation = allocations[allocation_of(address)];
  if (allocation.owner.load(std::memory_order_acquire) != memory) return false;
  const auto begin = static_cast<std::size_t>(offset_of(address));  // an offset below 0 is greater than every size
  if (bytes > allocation.size || begin > allocation.size - bytes || begin % alignment != 0) return false;
  return access != DeviceAccess::read || is_written(allocation, begin, begin + bytes);
}

struct RunningKernel {
  DeviceMemory* memory = nullptr;
  const char* name = nullptr;
};
thread_local RunningKernel running;

struct Dummy {
  alignas(kDeviceDatumBytesMax) std::array<std::byte, kDeviceDatumBytesMax> bytes;
};
thread_local Dummy dummy;

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes_max) : bytes_max_(std::min(bytes_max, kDeviceMemoryBytesMax)) {}

DeviceMemory::~DeviceMemory() {
  for (const std::uint32_t number : allocations_) release(number);
}

Result<DeviceAddress> DeviceMemory::allocate(std::size_t bytes) {
  KILOKV_CHECK(bytes > 0);
  const auto refuse = [&](const std::string& why) {
    return Status(StatusCode::resource_exhausted, ErrorReason::unspecified,
                  "emulated device: " + std::to_string(bytes) + " bytes: " + why);
  };
  if (bytes > bytes_max_ - bytes_) return refuse(std::to_string(bytes_max_ - bytes_) + " are left (memory_bytes_max)");
  auto* memory = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  if (memory == nullptr) return refuse("the host has no memory for them");
  std::uint32_t number = 0;
  if (!numbers.take(&number)) {
    ::operator delete(memory, kAlignment);
    return refuse("all " + std::to_string(allocations.size()) + " allocation numbers are in use");
  }
  Allocation& allocation = allocations[number];
  allocation.bytes = memory;
  allocation.size = bytes;
  allocation.written = std::make_unique<std::atomic<std::uint64_t>[]>(words_for(bytes));
  note_undefined(allocation, 0, bytes);
  allocation.owner.store(this, std::memory_order_release);
  allocations_.push_back(number);
  bytes_ += bytes;
  return address_of(number);
}

void DeviceMemory::free(DeviceAddress address) {
  if (address == 0) return;
  if (locate(address, 1, 1, DeviceAccess::copy, "free()") == nullptr) return;
  if (offset_of(address) != 0) return report("free() at offset " + std::to_string(offset_of(address)));
  const std::uint32_t number = allocation_of(address);
  bytes_ -= allocations[number].size;
  std::erase(allocations_, number);
  release(number);
}

void DeviceMemory::make_undefined(DeviceAddress address, std::size_t bytes) {
  KILOKV_CHECK(is_fine(this, address, bytes, 1, DeviceAccess::copy));
  const auto begin = static_cast<std::size_t>(offset_of(address));
  note_undefined(allocations[allocation_of(address)], begin, begin + bytes);
}

std::byte* DeviceMemory::locate(DeviceAddress address, std::size_t bytes, std::size_t alignment, DeviceAccess access,
                                const char* user) {
  if (!is_fine(this, address, bytes, alignment, access)) [[unlikely]] {
    if (faults_.load(std::memory_order_relaxed) > 0) {
      count_fault();
      return nullptr;
    }
    report(std::string(user) + (access == DeviceAccess::write ? " writes " : " reads ") + std::to_string(bytes) +
           " bytes " + judge(this, address, bytes, alignment, access));
    return nullptr;
  }
  Allocation& allocation = allocations[allocation_of(address)];
  const auto begin = static_cast<std::size_t>(offset_of(address));
  if (access == DeviceAccess::write) note_written(allocation, begin, begin + bytes);
  return allocation.bytes + begin;
}

Status DeviceMemory::fault() const {
  const std::lock_guard lock(fault_mutex_);
  return fault_;
}

void DeviceMemory::report(const std::string& text) {
  {
    const std::lock_guard lock(fault_mutex_);
    if (fault_.ok()) fault_ = Status(StatusCode::internal, "emulated device: " + text);
  }
  count_fault();
}

void DeviceMemory::count_fault() {
  if (faults_.fetch_add(1, std::memory_order_relaxed) + 1 < kDeviceFaultsMax) return;
  std::fprintf(stderr, "%s; more faults followed, so the kernel may never end\n", fault().message().c_str());
  std::abort();
}

KernelScope::KernelScope(DeviceMemory* memory, const char* kernel) { running = {memory, kernel}; }
KernelScope::~KernelScope() { running = {}; }

std::byte* translate(DeviceAddress address, std::size_t bytes, std::size_t alignment, DeviceAccess access) {
  if (running.memory == nullptr) [[unlikely]] {
    std::fprintf(stderr, "the host uses a pointer of the emulated device: %s\n", hexadecimal(address).c_str());
    std::abort();
  }
  std::byte* found = running.memory->locate(address, bytes, alignment, access, running.name);
  if (found != nullptr) [[likely]]
    return found;
  dummy.bytes.fill(std::byte{0});
  return dummy.bytes.data();
}

}  // namespace kilokv::engine
