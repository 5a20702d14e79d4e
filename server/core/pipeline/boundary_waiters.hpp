// Work that waits until a batch is durable and answered.
//
// Thread safety: any thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "engine/base/types.hpp"

namespace kilokv::server {

class BoundaryWaiters {
 public:
  void add(BatchNumber boundary, std::function<void()> work) {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(boundary, std::move(work));
  }
  // Removes the work that waits for batches up to `boundary`, and runs it in order of the boundaries.
  void run_through(BatchNumber boundary) {
    std::multimap<BatchNumber, std::function<void()>> ready;
    {
      const std::scoped_lock lock(mutex_);
      while (!waiting_.empty() && waiting_.begin()->first <= boundary) {
        ready.insert(waiting_.extract(waiting_.begin()));
      }
    }
    for (auto& [batch, work] : ready) work();
  }

 private:
  std::mutex mutex_;
  std::multimap<BatchNumber, std::function<void()>> waiting_;
};

}  // namespace kilokv::server
