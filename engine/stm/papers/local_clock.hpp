// Where the time of `local` (stm/papers/local.hpp) goes, as the breakdown of GPU-LocalTM's figures 3b to 5b: a clock of
// each thread that shares the stage, which is told what the thread turns to, and adds up the ticks until the next turn.
// No other thread looks on. Off, it is nothing: the code is that without it.
//
// What the paper tells apart, and what that is here:
//   Non-TX Code       outside: footprints, sweeps, barriers; unstaged: attempts at what is not on the stage;
//                     moving: the stage read in, and written back
//   TX Code           running: a transaction, in place
//   Mem. Overheads    claiming: conflict detection; shadowing, restoring: version management
//   TX Begin, Commit  ending: what opens an attempt, stamps its versions, and gives its claims back
// What is serialized (figures 3c to 5c), it counts by transactions: here it is time, taken out of the above. in_group
// and in_block are all that a lane does while it is alone in its group, or in its block, or holds back for one that is.
//
// Thread safety: an object is one thread's.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/local_arguments.hpp"

namespace kilokv::engine {

template <Platform P, bool kIsOn>
class LocalClock {
 public:
  KILOKV_HOST_DEVICE explicit LocalClock(P& platform) : p_(platform), last_(platform.clock()) {}

  // From now on the thread's time is this; returns what it was.
  KILOKV_HOST_DEVICE LocalTime turn_to(LocalTime next) {
    add();
    const LocalTime before = now_;
    now_ = next;
    return before;
  }
  // From now on all of it counts as that; outside: as what it is.
  KILOKV_HOST_DEVICE void count_as(LocalTime all) {
    add();
    all_ = all;
  }
  KILOKV_HOST_DEVICE LocalTimes times() {
    add();
    return times_;
  }

 private:
  KILOKV_HOST_DEVICE void add() {
    const std::uint64_t now = p_.clock();
    times_.ticks[static_cast<std::uint32_t>(all_ == LocalTime::outside ? now_ : all_)] += now - last_;
    last_ = now;
  }

  P& p_;
  LocalTimes times_;
  std::uint64_t last_;
  LocalTime now_ = LocalTime::outside, all_ = LocalTime::outside;
};

template <Platform P>
class LocalClock<P, false> {
 public:
  KILOKV_HOST_DEVICE explicit LocalClock(P&) {}
  KILOKV_HOST_DEVICE LocalTime turn_to(LocalTime) { return LocalTime::outside; }
  KILOKV_HOST_DEVICE void count_as(LocalTime) {}
};

// While it lives.
template <class Clock>
class LocalSpan {
 public:
  KILOKV_HOST_DEVICE LocalSpan(Clock* clock, LocalTime time) : clock_(*clock), before_(clock_.turn_to(time)) {}
  KILOKV_HOST_DEVICE ~LocalSpan() { clock_.turn_to(before_); }
  LocalSpan(const LocalSpan&) = delete;
  LocalSpan& operator=(const LocalSpan&) = delete;

 private:
  Clock& clock_;
  const LocalTime before_;
};

}  // namespace kilokv::engine
