#include "engine/exec/run/stage_clock.hpp"

#include <algorithm>

namespace kilokv::engine {

// Threads that never work at the same time take turns. If they do, the wall time is the sum of their processor times.
// What is missing in it is time in which two or more worked.
void StageClock::end() {
  if (!running_) return;
  running_ = false;
  const double wall = watch_.seconds(), own = watch_.processor_seconds();
  const double all = own + helpers_.all;
  const double busiest = std::max(own, helpers_.busiest);
  times_->add(stage_, {wall, all, std::max(0.0, wall - (all - busiest))});
}

}  // namespace kilokv::engine
