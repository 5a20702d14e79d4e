#include "server/core/pipeline/stamp_clock.hpp"

#include <algorithm>
#include <utility>

namespace kilokv::server {
namespace {

// A smaller jump is not worth a line of the log.
constexpr DurationUs kNoticedUs = 1000000;

}  // namespace

StampClock::StampClock(const Clock* clock, DurationUs jump_us_max, TimeUs last_stamp_us,
                       std::function<void(const ClockChange&)> on_change)
    : clock_(clock), jump_us_max_(jump_us_max), on_change_(std::move(on_change)) {
  // No clock can tell how long the server was stopped. So the wall clock at the start counts, as far as Database::open
  // has accepted it.
  last_ = {std::max(last_stamp_us, clock->wall_us()), clock->boot_us(), 0};
}

StampClock::Reading StampClock::read() const {
  const TimeUs wall_us = clock_->wall_us();  // read first: a pause between the two reads then puts no stamp ahead
  const TimeUs boot_us = clock_->boot_us();
  const TimeUs expected_us = last_.stamp_us + (boot_us - last_.boot_us);
  const DurationUs jump_us = wall_us - expected_us;
  const bool follows = jump_us >= 0 && jump_us <= jump_us_max_;
  return {follows ? wall_us : expected_us, boot_us, jump_us};
}

TimeUs StampClock::take() {
  last_ = read();
  using Kind = ClockChange::Kind;
  const Kind state = last_.jump_us > jump_us_max_  ? Kind::ahead
                     : last_.jump_us < -kNoticedUs ? Kind::behind
                                                   : Kind::in_step;
  const bool followed = state == Kind::in_step && last_.jump_us > kNoticedUs;
  if (on_change_ && (followed || state != state_)) {
    on_change_({followed ? Kind::jumped : state, last_.jump_us, last_.stamp_us});
  }
  state_ = state;
  return last_.stamp_us;
}

}  // namespace kilokv::server
