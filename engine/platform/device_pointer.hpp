// Pointers into the emulated device's memory. They hold only an address, so that they are passed to kernels as plain
// pointers are. Every use is translated and checked (device_memory.hpp). A use outside of a kernel ends the process.
//
// For a const T, p[i] and *p are the value. For another T, they are a reference, which reads by conversion and writes
// by assignment. So code over Space::Pointer reads `const Cell cell = p[i];` and writes `p[i] = cell;`, as for plain
// pointers.
//
// Thread safety: that of plain pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/platform/device.hpp"
#include "engine/platform/device_memory.hpp"

namespace kilokv::engine {

template <class T>
class DevicePointer;

struct DeviceSpace {
  template <class T>
  using Pointer = DevicePointer<T>;
  template <class T>
  static T& to_read(DevicePointer<T> pointer) {
    return *locate(pointer, DeviceAccess::read);
  }
  // Notes the datum as written.
  template <class T>
  static T& to_write(DevicePointer<T> pointer) {
    static_assert(!std::is_const_v<T>);
    return *locate(pointer, DeviceAccess::write);
  }

 private:
  template <class T>
  static T* locate(DevicePointer<T> pointer, DeviceAccess access) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kDeviceDatumBytesMax);
    return reinterpret_cast<T*>(translate(pointer.address(), sizeof(T), alignof(T), access));
  }
};

template <class T>
class DeviceReference {
 public:
  explicit DeviceReference(DevicePointer<T> pointer) : pointer_(pointer) {}
  DeviceReference(const DeviceReference&) = default;
  operator T() const { return DeviceSpace::to_read(pointer_); }
  const DeviceReference& operator=(const T& value) const {
    DeviceSpace::to_write(pointer_) = value;
    return *this;
  }
  // Assignment to itself writes the value that is there, so it needs no check.
  DeviceReference& operator=(const DeviceReference& other) {  // NOLINT(bugprone-unhandled-self-assignment)
    DeviceSpace::to_write(pointer_) = static_cast<T>(other);
    return *this;
  }

 private:
  DevicePointer<T> pointer_;
};

template <class T>
class DevicePointer {
 public:
  using element_type = T;
  using difference_type = std::ptrdiff_t;
  using Element = std::conditional_t<std::is_const_v<T>, std::remove_const_t<T>, DeviceReference<T>>;

  constexpr DevicePointer() = default;
  constexpr DevicePointer(std::nullptr_t) {}
  constexpr explicit DevicePointer(DeviceAddress address) : address_(address) {}
  // Converts to a pointer to const. (A conversion operator would give a warning if T is const already.)
  template <class U>
  requires(!std::is_const_v<U> && std::is_same_v<const U, T>) constexpr DevicePointer(DevicePointer<U> other)
      : address_(other.address()) {}

  constexpr DeviceAddress address() const { return address_; }
  constexpr explicit operator bool() const { return address_ != 0; }
  Element operator*() const {
    if constexpr (std::is_const_v<T>)
      return DeviceSpace::to_read(*this);
    else
      return Element(*this);
  }
  Element operator[](difference_type i) const { return *(*this + i); }

  constexpr DevicePointer& operator+=(difference_type n) {
    address_ += static_cast<DeviceAddress>(n) * sizeof(T);
    return *this;
  }
  constexpr DevicePointer& operator-=(difference_type n) {
    address_ -= static_cast<DeviceAddress>(n) * sizeof(T);
    return *this;
  }
  constexpr DevicePointer& operator++() { return *this += 1; }
  constexpr DevicePointer& operator--() { return *this -= 1; }
  friend constexpr DevicePointer operator+(DevicePointer p, difference_type n) { return p += n; }
  friend constexpr DevicePointer operator-(DevicePointer p, difference_type n) { return p -= n; }
  friend constexpr difference_type operator-(DevicePointer a, DevicePointer b) {
    return static_cast<difference_type>(a.address_ - b.address_) / static_cast<difference_type>(sizeof(T));
  }
  friend constexpr bool operator==(DevicePointer, DevicePointer) = default;

 private:
  DeviceAddress address_ = 0;  // 0: null
};

static_assert(std::is_trivially_copyable_v<DevicePointer<std::uint64_t>>);
static_assert(sizeof(DevicePointer<std::uint64_t>) == sizeof(DeviceAddress));

}  // namespace kilokv::engine
