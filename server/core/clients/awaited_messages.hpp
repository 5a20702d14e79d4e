// The calls of one connection that lack a message: how many have lacked it for long. A call that lacks its message
// holds what has come of it in gRPC's memory.
//
// Times are those of a clock that never goes back, in milliseconds. Thread safety: all members.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>

namespace kilokv::server {

class AwaitedMessages {
 public:
  // A message is late when it has not come for a second, or up to a tick more.
  static constexpr std::int64_t kTickMs = 250;
  static constexpr std::int64_t kTicks = 5;

  // A call begins to wait. Returns what end() and is_late() need.
  std::int64_t begin(std::int64_t now_ms) {
    const std::lock_guard lock(mutex_);
    advance(now_ms);
    ++recent_[place_of(tick_)];
    return tick_;
  }
  // Its message has come, or the call has ended.
  void end(std::int64_t begun, std::int64_t now_ms) {
    const std::lock_guard lock(mutex_);
    advance(now_ms);
    --(begun > tick_ - kTicks ? recent_[place_of(begun)] : late_);
  }
  bool is_late(std::int64_t begun, std::int64_t now_ms) {
    const std::lock_guard lock(mutex_);
    advance(now_ms);
    return begun <= tick_ - kTicks;
  }
  // How many are late.
  std::uint64_t late(std::int64_t now_ms) {
    const std::lock_guard lock(mutex_);
    advance(now_ms);
    return late_;
  }

 private:
  static std::size_t place_of(std::int64_t tick) { return static_cast<std::size_t>(tick % kTicks); }

  void advance(std::int64_t now_ms) {
    const std::int64_t tick = now_ms / kTickMs;
    for (std::int64_t i = 0; i < kTicks && tick_ < tick; ++i) late_ += std::exchange(recent_[place_of(++tick_)], 0);
    tick_ = std::max(tick_, tick);
  }

  std::mutex mutex_;
  std::int64_t tick_ = 0;
  std::array<std::uint64_t, kTicks> recent_{};  // by the tick in which they began
  std::uint64_t late_ = 0;
};

}  // namespace kilokv::server
