// A fixed array of trivial elements. At the start, all bits are zero.
//
// The operating system maps the memory of a large array, so that a page costs nothing before its first use. The array
// asks for huge pages, because address translation limits random access to a table of gigabytes.
//
// Not thread-safe. Movable.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace kilokv::engine {

// Zeroed memory of at least `bytes` bytes, aligned to 64 bytes. `bytes` may be 0. Ends the process if the system gives
// no memory.
void* allocate_zeroed(std::size_t bytes);
// Frees it. Requires: `memory` is from allocate_zeroed(bytes).
void free_zeroed(void* memory, std::size_t bytes);

template <class T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 64);

 public:
  ZeroedArray() = default;
  explicit ZeroedArray(std::size_t size) : data_(static_cast<T*>(allocate_zeroed(size * sizeof(T)))), size_(size) {}
  ZeroedArray(ZeroedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ZeroedArray& operator=(ZeroedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroedArray() {
    if (data_ != nullptr) free_zeroed(data_, size_ * sizeof(T));
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kilokv::engine
