// An array in a reserved range of addresses. It takes memory only where it is written, so it can grow up to the end of
// the range, and no element ever moves because of that. All elements are zero at first.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>

#include "engine/base/check.hpp"

namespace kilokv::bench {

template <class T>
class ReservedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit ReservedArray(std::size_t size_max) : bytes_(size_max * sizeof(T)) {
    void* const memory =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    KILOKV_CHECK(memory != MAP_FAILED);
    ::madvise(memory, bytes_, MADV_HUGEPAGE);  // a hint: a failure does no harm
    data_ = static_cast<T*>(memory);
  }
  ~ReservedArray() { ::munmap(data_, bytes_); }
  ReservedArray(const ReservedArray&) = delete;
  ReservedArray& operator=(const ReservedArray&) = delete;

  // Takes the memory of these elements now, so that no write to them waits for a page.
  void populate(std::size_t begin, std::size_t end) {
    constexpr std::size_t kPage = 4096;
    const std::size_t from = begin * sizeof(T) / kPage * kPage;
    KILOKV_CHECK(::madvise(reinterpret_cast<char*>(data_) + from, end * sizeof(T) - from, MADV_POPULATE_WRITE) == 0);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  std::size_t bytes_;
  T* data_;
};

}  // namespace kilokv::bench
