// Keeps log records against trimming, for a backup or for the archive. A pin may not keep them for ever: what it keeps
// is bounded by --archive-lag-max. Beyond that, the pin is lost, and its owner must stop.
//
// Thread safety: all members.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/base/types.hpp"

namespace kilokv::server::storage {

// Keeps the records from `from` on, as long as the pin lives and is not lost.
struct LogPin {
  LogPin(BatchNumber first, bool stays) : from(first), must_stay(stays) {}
  std::atomic<BatchNumber> from;
  const bool must_stay;  // it is never lost: its owner sees to it that not too much is kept
  std::atomic<bool> lost{false};
};

class LogPins {
 public:
  // Held while the log is trimmed. What is pinned under it is not trimmed meanwhile.
  std::mutex& mutex() { return mutex_; }

  // Requires: mutex() is held.
  std::shared_ptr<LogPin> add(BatchNumber from, bool must_stay = false) {
    auto pin = std::make_shared<LogPin>(from, must_stay);
    pins_.push_back(pin);
    return pin;
  }
  // The first batch that must stay: at most `before`. `is_too_much`: whether a pin from this batch on keeps too much;
  // it is lost then. Requires: mutex() is held.
  BatchNumber limit(BatchNumber before, const std::function<bool(BatchNumber from)>& is_too_much) {
    std::erase_if(pins_, [](const std::weak_ptr<LogPin>& pin) { return pin.expired(); });
    for (const std::weak_ptr<LogPin>& weak : pins_) {
      const std::shared_ptr<LogPin> pin = weak.lock();
      if (pin == nullptr || pin->lost.load()) continue;
      const BatchNumber from = pin->from.load();
      if (from >= before) continue;
      if (!pin->must_stay && is_too_much(from)) {
        pin->lost.store(true);
      } else {
        before = from;
      }
    }
    return before;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<LogPin>> pins_;
};

}  // namespace kilokv::server::storage
