// The stamps of batches. A stamp is the wall clock, unless the wall clock jumped. The next stamp that is expected is
// the last stamp plus the time since then, which a clock measures that never jumps.
//
//   the wall clock is after it, by at most --clock-jump-max   the stamp is the wall clock
//   the wall clock is after it by more, or is before it       the stamp is the expected one
//
// Stamps never go back. So after a stamp that was far ahead, the time of the database stays ahead. --clock-jump-max
// bounds that.
//
// Thread safety: the executor's thread alone.
#pragma once

#include <functional>

#include "server/core/database_events.hpp"
#include "server/core/environment.hpp"

namespace kilokv::server {

class StampClock {
 public:
  // `last_stamp_us`: of the last batch. `on_change` is called by take(); it may be empty. `clock` outlives this.
  StampClock(const Clock* clock, DurationUs jump_us_max, TimeUs last_stamp_us,
             std::function<void(const ClockChange&)> on_change);

  // The stamp of a batch that would form now.
  TimeUs now_us() const { return read().stamp_us; }
  // The stamp of a batch that forms now.
  TimeUs take();

 private:
  struct Reading {
    TimeUs stamp_us = 0;
    TimeUs boot_us = 0;      // when
    DurationUs jump_us = 0;  // the wall clock minus the expected stamp
  };

  Reading read() const;

  const Clock* const clock_;
  const DurationUs jump_us_max_;
  const std::function<void(const ClockChange&)> on_change_;
  Reading last_;
  ClockChange::Kind state_ = ClockChange::Kind::in_step;
};

}  // namespace kilokv::server
