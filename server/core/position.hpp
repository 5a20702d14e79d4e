// The position of the database after a batch, and how one stage tells it to the others.
//
// Thread safety: Position is plain data; SharedPosition may be used from any thread.
#pragma once

#include <atomic>
#include <mutex>

#include "engine/base/types.hpp"

namespace kilokv::server {

// The position after a batch.
struct Position {
  BatchNumber batch = 0;
  Version next_version = 1;
  Version tombstone_floor = 0;
  TimeUs time_us = 0;
  Hash128 state_hash;
};

// A Position that one stage sets and others read.
class SharedPosition {
 public:
  void set(const Position& position) {
    const std::scoped_lock lock(mutex_);
    position_ = position;
    batch_.store(position.batch, std::memory_order_release);
  }
  Position get() const {
    const std::scoped_lock lock(mutex_);
    return position_;
  }
  BatchNumber batch() const { return batch_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  Position position_;
  std::atomic<BatchNumber> batch_{0};
};

}  // namespace kilokv::server
