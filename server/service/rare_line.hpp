// For a line of the log that clients can cause as often as they like: at most one a second. Thread safety: all members.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>

namespace kilokv::server {

class RareLine {
 public:
  // Counts an event. Returns how many there were since the last line, if it is time for the next; else 0.
  std::uint64_t count() {
    constexpr std::chrono::seconds kInterval{1};
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    ++total_;
    if (now < next_) return 0;
    next_ = now + kInterval;
    return total_ - std::exchange(told_, total_);
  }
  std::uint64_t total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t total_ = 0, told_ = 0;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace kilokv::server
