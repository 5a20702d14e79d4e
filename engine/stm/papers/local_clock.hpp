// Measures where the time of `local` (stm/papers/local.hpp) goes, as in the breakdown of GPU-LocalTM's figures 3b to
// 5b. Each thread that shares the stage has a clock. The thread tells its clock what it turns to, and the clock adds up
// the ticks until the next turn, in the thread's part of LocalColumns::times. No other thread uses this part before the
// batch has ended. If times are off, the class is empty and the kernel is the same as without it.
//
// The parts of the paper, and the times that they are here (LocalTime):
//   Non-TX Code       outside: footprints, sweeps, barriers. unstaged: attempts of transactions that are not on the
//                     stage. moving: reading the records into the stage, and writing them back
//   TX Code           running: a transaction, in place
//   Mem. Overheads    claiming: conflict detection. shadowing and restoring: version management
//   TX Begin, Commit  ending: opening an attempt, putting the version into what it wrote, and giving its claims back
//
// The paper counts transactions that were serialized (figures 3c to 5c). Here their time is measured, and is taken out
// of the parts above. in_group is all the time that a lane spends alone in its group, or holding back for such a lane.
// in_block is the same for the block.
//
// On a device, one turn of a group accesses as many cache lines as the group has lanes. This is part of what measuring
// costs.
//
// Thread safety: each object belongs to one thread.
#pragma once

#include <cstdint>

#include "engine/base/host_device.hpp"
#include "engine/platform/concept.hpp"
#include "engine/stm/papers/local_arguments.hpp"

namespace kilokv::engine {

template <Platform P, bool kIsOn>
class LocalClock {
 public:
  using Arguments = LocalArguments<typename P::Space>;
  KILOKV_HOST_DEVICE LocalClock(P& platform, const Arguments& arguments)
      : p_(platform), a_(arguments), last_(platform.clock()) {
    for (std::uint32_t time = 0; time < kLocalTimes && stages(); ++time) ticks(time) = 0;
  }

  // From now on the thread's time counts as `next`. Returns what it counted as before.
  KILOKV_HOST_DEVICE LocalTime turn_to(LocalTime next) {
    add();
    const LocalTime before = now_;
    now_ = next;
    return before;
  }
  // From now on all time counts as `all`. If `all` is `outside`, time counts as what turn_to() says.
  KILOKV_HOST_DEVICE void count_as(LocalTime all) {
    add();
    all_ = all;
  }
  // Adds the time since the last turn.
  KILOKV_HOST_DEVICE void add() {
    const std::uint64_t now = p_.clock();
    const auto which = static_cast<std::uint32_t>(all_ == LocalTime::outside ? now_ : all_);
    if (stages()) ticks(which) = ticks(which) + (now - last_);
    last_ = now;
  }

 private:
  KILOKV_HOST_DEVICE bool stages() const { return p_.thread() < a_.local.threads; }
  KILOKV_HOST_DEVICE decltype(auto) ticks(std::uint32_t time) const {
    return a_.local.times[p_.thread() * kLocalTimeWords + time];
  }

  P& p_;
  const Arguments& a_;
  std::uint64_t last_;
  LocalTime now_ = LocalTime::outside, all_ = LocalTime::outside;
};

template <Platform P>
class LocalClock<P, false> {
 public:
  KILOKV_HOST_DEVICE LocalClock(P&, const LocalArguments<typename P::Space>&) {}
  KILOKV_HOST_DEVICE LocalTime turn_to(LocalTime) { return LocalTime::outside; }
  KILOKV_HOST_DEVICE void count_as(LocalTime) {}
  KILOKV_HOST_DEVICE void add() {}
};

// The clock counts as `time` while this object lives.
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
