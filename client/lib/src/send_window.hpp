// How many requests a session has at the server at a time.
//
// A refusal costs the server about as much as a short request that runs. A session that sent everything again and again
// would take the processor from what runs. So a refusal because the server is full closes the window to what the server
// still has of the session. That is what it has room for. The window opens by one request for each window of answers.
// When the last refusal is a second old, it opens by one request for each answer. Source: additive increase and slow
// start of TCP's congestion control (RFC 5681, section 3.1). Deviation: a refusal tells the room, so the window does
// not have to be halved.
//
// A request that may wait for other transactions has no place in the window. Otherwise the window could be full of
// requests that wait for one outside.
//
// Thread safety: none; the session's lock guards it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "client/lib/src/connection.hpp"

namespace kilokv::client {

class SendWindow {
 public:
  bool has_room() const { return static_cast<double>(held_) < size_; }
  void take() { ++held_; }
  // The request that took a place is not at the server any more, or nobody knows.
  void leave() { --held_; }
  void leave_answered(TimePoint now) {
    leave();
    size_ += now - refused_ > kQuiet ? 1 : 1 / size_;
    size_ = std::min(size_, kMost);
  }
  void leave_refused(TimePoint now) {
    leave();
    size_ = std::max(1.0, std::min(size_, static_cast<double>(held_)));
    refused_ = now;
  }

 private:
  static constexpr std::chrono::seconds kQuiet{1};
  static constexpr double kMost = 65536;  // more than a session may have in flight

  std::size_t held_ = 0;
  double size_ = kMost;
  TimePoint refused_ = {};
};

}  // namespace kilokv::client
