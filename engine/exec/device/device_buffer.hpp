// Buffers in memory of a device, and in host memory for copies. They grow as needed and keep their size, so that in the
// steady state no batch allocates memory. The destructor frees the memory. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/base/status.hpp"
#include "engine/platform/device.hpp"
#include "engine/platform/device_pointer.hpp"

namespace kilokv::engine {

class DeviceBuffer {
 public:
  explicit DeviceBuffer(Device* device) : device_(*device) {}
  ~DeviceBuffer() { release(); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  // Makes room for at least this number of bytes. If the buffer grows, its content is lost.
  [[nodiscard]] Status reserve(std::size_t bytes) {
    if (bytes <= bytes_) return {};
    release();
    const std::size_t wanted = std::max(bytes, kBytesMin);
    auto allocated = device_.allocate(wanted);
    if (!allocated.ok()) return allocated.status();
    address_ = *allocated;
    bytes_ = wanted;
    return {};
  }
  // As reserve(), but a buffer that grows becomes at least half as large again, so that it grows less often.
  [[nodiscard]] Status reserve_growing(std::size_t bytes) {
    return bytes <= bytes_ ? Status() : reserve(std::max(bytes, bytes_ + bytes_ / 2));
  }
  void release() {
    if (address_ != 0) device_.free(address_);
    address_ = 0;
    bytes_ = 0;
  }

  std::size_t bytes() const { return bytes_; }
  DeviceAddress address() const { return address_; }
  template <class T>
  DevicePointer<T> at(std::size_t offset_bytes) const {
    return DevicePointer<T>(address_ + offset_bytes);
  }

 private:
  static constexpr std::size_t kBytesMin = 4096;

  Device& device_;
  DeviceAddress address_ = 0;
  std::size_t bytes_ = 0;
};

class PinnedBuffer {
 public:
  explicit PinnedBuffer(Device* device) : device_(*device) {}
  ~PinnedBuffer() { release(); }
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  [[nodiscard]] Status reserve_growing(std::size_t bytes) {
    if (bytes <= bytes_) return {};
    const std::size_t wanted = std::max(bytes, bytes_ + bytes_ / 2);
    release();
    auto allocated = device_.allocate_pinned(wanted);
    if (!allocated.ok()) return allocated.status();
    data_ = static_cast<std::byte*>(*allocated);
    bytes_ = wanted;
    return {};
  }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void release() {
    if (data_ != nullptr) device_.free_pinned(data_);
    data_ = nullptr;
    bytes_ = 0;
  }

  Device& device_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Memory that host and device can both use at the same time, while kernels run.
class SharedBuffer {
 public:
  explicit SharedBuffer(Device* device) : device_(*device) {}
  ~SharedBuffer() {
    if (memory_.host != nullptr) device_.free_shared(memory_);
  }
  SharedBuffer(const SharedBuffer&) = delete;
  SharedBuffer& operator=(const SharedBuffer&) = delete;

  // Allocates the memory, all zero. Later calls do nothing.
  [[nodiscard]] Status reserve(std::size_t bytes) {
    if (memory_.host != nullptr) return {};
    auto allocated = device_.allocate_shared(bytes);
    if (!allocated.ok()) return allocated.status();
    memory_ = *allocated;
    bytes_ = bytes;
    return {};
  }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* host(std::size_t offset_bytes) const {
    return reinterpret_cast<T*>(memory_.host + offset_bytes);
  }
  template <class T>
  DevicePointer<T> at(std::size_t offset_bytes) const {
    return DevicePointer<T>(memory_.device + offset_bytes);
  }

 private:
  Device& device_;
  SharedMemory memory_;
  std::size_t bytes_ = 0;
};

// In a block of memory, each column begins at a multiple of this number of bytes.
inline constexpr std::size_t kColumnAlignment = 16;

// Gives each column an offset in one block of memory, one after another. So one copy moves all columns.
class BlockLayout {
 public:
  template <class T>
  std::size_t add(std::size_t count) {
    const std::size_t offset = bytes_;
    bytes_ += (count * sizeof(T) + kColumnAlignment - 1) / kColumnAlignment * kColumnAlignment;
    return offset;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace kilokv::engine
