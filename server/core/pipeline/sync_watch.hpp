// Notices appends that take long: each appends the records of a group of batches, with one sync. It tells when a slow
// one has ended (--slow-sync), and also while one does not end. Then the log worker itself cannot tell, so another
// worker looks.
//
// Thread safety: the log worker calls begin() and end(); the executor calls look().
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "server/core/database_events.hpp"
#include "server/core/options.hpp"

namespace kilokv::server {

class SyncWatch {
 public:
  // An append counts as one that hangs after this time, and is told of then, and each time that this has doubled.
  static constexpr DurationUs kHangsAfterUs = 5000000;

  // `events` outlives it.
  SyncWatch(const DatabaseOptions& options, const DatabaseEvents* events)
      : slow_us_(options.slow_sync_us), events_(events) {}

  void begin(TimeUs now_us) { since_us_.store(now_us, std::memory_order_relaxed); }
  // The append has ended without an error.
  void end(TimeUs now_us, BatchNumber last, std::uint32_t batches) {
    const DurationUs took_us = now_us - since_us_.exchange(kNotAppending, std::memory_order_relaxed);
    if (slow_us_ != 0 && took_us >= slow_us_ && events_->sync_slow) events_->sync_slow({took_us, last, batches});
  }
  void look(TimeUs now_us) {
    const TimeUs since_us = since_us_.load(std::memory_order_relaxed);
    if (since_us == kNotAppending || slow_us_ == 0) return;
    if (since_us != told_since_us_) {
      told_since_us_ = since_us;
      tell_after_us_ = std::max(kHangsAfterUs, slow_us_);
    }
    if (now_us - since_us < tell_after_us_) return;
    tell_after_us_ *= 2;
    if (events_->sync_hangs) events_->sync_hangs(now_us - since_us);
  }

 private:
  static constexpr TimeUs kNotAppending = -1;

  const DurationUs slow_us_;  // 0: nothing is told
  const DatabaseEvents* const events_;
  std::atomic<TimeUs> since_us_{kNotAppending};
  // Only look() uses these: the append that it has seen last, and after which time it tells of it.
  TimeUs told_since_us_ = kNotAppending;
  DurationUs tell_after_us_ = 0;
};

}  // namespace kilokv::server
