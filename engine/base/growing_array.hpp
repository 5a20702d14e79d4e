// An array of trivial elements that grows in place. New elements have all bits zero.
//
// The array reserves a range of addresses, and takes memory only at the front of the range. It grows up to the end of
// the range without a copy, and its elements stay where they are. If the system refuses the range, or if the range is
// full, the array copies its elements to another range, which has room for twice as many.
//
// The memory costs nothing before its first use. A large array asks for huge pages, because address translation limits
// random access to a table of gigabytes. It asks for those that nobody has used yet, and the range begins at the border
// of one. If the array always grows by whole huge pages then, the kernel never has to put one together from small
// pages. Whoever uses such a page meanwhile would wait.
//
// Not thread-safe. Movable.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace kilokv::engine {

// The bytes of such an array.
class GrowingMemory {
 public:
  explicit GrowingMemory(std::size_t reserved_bytes);
  GrowingMemory(GrowingMemory&& other) noexcept { swap(other); }
  GrowingMemory& operator=(GrowingMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~GrowingMemory();

  // Ends the process if the system gives no memory. Requires: bytes >= bytes().
  void grow(std::size_t bytes);
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(GrowingMemory& other) {
    std::swap(data_, other.data_);
    std::swap(reserved_, other.reserved_);
    std::swap(bytes_, other.bytes_);
  }
  void move_to_larger_range(std::size_t bytes);

  std::byte* data_ = nullptr;
  std::size_t reserved_ = 0;  // bytes of the range
  std::size_t bytes_ = 0;     // those that are in use
};

template <class T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 64);

 public:
  // An empty array, which grows in place up to `size_reserved` elements.
  explicit GrowingArray(std::size_t size_reserved) : memory_(size_reserved * sizeof(T)) {}

  // Requires: size >= size().
  void grow(std::size_t size) {
    memory_.grow(size * sizeof(T));
    data_ = reinterpret_cast<T*>(memory_.data());
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return bytes() / sizeof(T); }
  std::size_t bytes() const { return memory_.bytes(); }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  GrowingMemory memory_;
  T* data_ = nullptr;
};

}  // namespace kilokv::engine
