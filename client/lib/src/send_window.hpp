// How many requests a session has in flight at a time.
//
// A refusal costs the server about as much as a short request that runs. A session that sends everything again and
// again takes the processor from what runs. So if the server refuses a request because it has too much to do, the
// window closes to what the session has sent and has no answer to. While the window is full, an answer opens it:
//   - by a part of a place, so that a window of answers makes one place
//   - by a whole place, if the last refusal is more than a second old
// A session that has nothing in flight after a refusal has no answer to wait for. It rests as long as the server asks.
//
// Source: additive increase and slow start of TCP's congestion control (RFC 5681, section 3.1), and growth of a window
// only while it is full (RFC 7661, section 4.3). Deviations:
//   - The first window has no bound.
//   - A refusal does not halve the window, because it tells what the server had room for. So sessions do not get equal
//     windows. The server takes care of the turns of its clients.
//   - The fast growth follows the slow one, after a time. There is no threshold between them.
//   - A deadline and a lost stream do not close the window.
//
// A request that may wait for other transactions takes no place. Otherwise the window could be full of requests that
// wait for one outside.
//
// Thread safety: none; the session's lock guards it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>

#include "client/lib/src/timers.hpp"

namespace kilokv::client {

class SendWindow {
 public:
  bool has_room(TimePoint now) const { return !full() && (held_ != 0 || now >= rest_until_); }
  void take() { ++held_; }
  // A request with a place is not in flight any more, or the session cannot know whether it is.
  void leave() { --held_; }
  void leave_answered(TimePoint now) {
    if (full()) size_ += quiet(now) ? 1 : 1 / size_;
    leave();
  }
  // Whether the last refusal is so old that the window opens quickly.
  bool quiet(TimePoint now) const { return now - refused_ > kQuiet; }
  // `delay`: as the server asked. Returns whether the session rests now: nothing but the time gives it room again.
  bool leave_refused(TimePoint now, std::chrono::microseconds delay) {
    leave();
    size_ = std::max(1.0, std::min(size_, static_cast<double>(held_)));
    refused_ = now;
    if (held_ == 0) rest_until_ = now + delay;
    return held_ == 0;
  }

 private:
  static constexpr std::chrono::seconds kQuiet{1};

  bool full() const { return static_cast<double>(held_ + 1) > size_; }

  std::size_t held_ = 0;
  double size_ = std::numeric_limits<double>::infinity();
  TimePoint refused_ = {}, rest_until_ = {};
};

}  // namespace kilokv::client
