// For lines of the log that clients can cause as often as they like. Thread safety: all members.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace kilokv::server {

// At most one line a second, or in another time. It tells how many events there were.
class RareLine {
 public:
  explicit RareLine(std::chrono::steady_clock::duration interval = std::chrono::seconds{1}) : interval_(interval) {}

  // Counts an event. Returns how many there were since the last line, if it is time for the next; else 0.
  std::uint64_t count(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
    const std::lock_guard lock(mutex_);
    ++total_;
    if (now < next_) return 0;
    next_ = now + interval_;
    return total_ - std::exchange(told_, total_);
  }
  std::uint64_t total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  const std::chrono::steady_clock::duration interval_;
  mutable std::mutex mutex_;
  std::uint64_t total_ = 0, told_ = 0;
  std::chrono::steady_clock::time_point next_;
};

// A line for each event, but at most `most` in a second.
class FewLines {
 public:
  explicit FewLines(std::uint32_t most) : most_(most) {}

  // Whether the event gets a line. If so, how many events before it got none, since the last line.
  std::optional<std::uint64_t> next(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
    constexpr std::chrono::seconds kInterval{1};
    const std::lock_guard lock(mutex_);
    if (now - begin_ >= kInterval) {
      begin_ = now;
      lines_ = 0;
    }
    if (lines_ == most_) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    return std::exchange(left_out_, 0);
  }

 private:
  const std::uint32_t most_;
  std::mutex mutex_;
  std::uint32_t lines_ = 0;  // since begin_
  std::uint64_t left_out_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace kilokv::server
