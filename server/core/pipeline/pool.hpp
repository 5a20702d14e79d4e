// A pool of objects that keep their capacity for the next use. It keeps at most `kept_max` objects, and at most
// `bytes_max` bytes in all.
//
// Requires: a function capacity_bytes(const T&), the memory that an empty object still holds.
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kilokv::server {

template <class T>
class Pool {
 public:
  Pool(std::size_t kept_max, std::uint64_t bytes_max) : kept_max_(kept_max), bytes_max_(bytes_max) {}
  std::unique_ptr<T> take() {
    const std::scoped_lock lock(mutex_);
    if (items_.empty()) return std::make_unique<T>();
    auto item = std::move(items_.back());
    items_.pop_back();
    bytes_ -= capacity_bytes(*item);
    return item;
  }
  // Requires: the item is cleared.
  void give(std::unique_ptr<T> item) {
    const std::uint64_t bytes = capacity_bytes(*item);
    const std::scoped_lock lock(mutex_);
    if (items_.size() >= kept_max_ || bytes_ + bytes > bytes_max_) return;
    bytes_ += bytes;
    items_.push_back(std::move(item));
  }
  // Frees what it keeps.
  void clear() {
    std::vector<std::unique_ptr<T>> freed;
    const std::scoped_lock lock(mutex_);
    freed.swap(items_);
    bytes_ = 0;
  }
  std::uint64_t bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<T>> items_;
  std::uint64_t bytes_ = 0;  // of items_
  const std::size_t kept_max_;
  const std::uint64_t bytes_max_;
};

}  // namespace kilokv::server
