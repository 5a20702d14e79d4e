// A first-in, first-out queue between two stages. It is not bounded itself; the number of batches in flight bounds it.
//
// Thread safety: any thread.
#pragma once

#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kilokv::server {

template <class T>
class StageQueue {
 public:
  void push(T item) {
    const std::scoped_lock lock(mutex_);
    items_.push_back(std::move(item));
  }
  // Removes and returns all items, in order.
  std::vector<T> take_all() {
    const std::scoped_lock lock(mutex_);
    std::vector<T> taken(std::make_move_iterator(items_.begin()), std::make_move_iterator(items_.end()));
    items_.clear();
    return taken;
  }
  std::optional<T> take() {
    const std::scoped_lock lock(mutex_);
    if (items_.empty()) return std::nullopt;
    std::optional<T> taken = std::move(items_.front());
    items_.pop_front();
    return taken;
  }
  bool empty() const {
    const std::scoped_lock lock(mutex_);
    return items_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::deque<T> items_;
};

}  // namespace kilokv::server
