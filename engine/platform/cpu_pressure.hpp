// For which share of the time work on this machine waits for a core: the work of this program, and that of others.
//
// Linux counts this time (pressure stall information, /proc/pressure/cpu). A few distributions leave it out unless the
// kernel is started with psi=1.
//
// Not thread-safe. Allocates nothing after the constructor.
#pragma once

#include <chrono>
#include <string>

namespace kilokv::engine {

class CpuPressure {
 public:
  using Clock = std::chrono::steady_clock;

  // `file`: where the system says it. Only tests pass another one, and other times.
  explicit CpuPressure(const std::string& file = "/proc/pressure/cpu", Clock::time_point now = Clock::now());
  ~CpuPressure();
  CpuPressure(const CpuPressure&) = delete;
  CpuPressure& operator=(const CpuPressure&) = delete;

  // The share, 0 to 1, between two looks. It looks every fifth of a second. If nobody has asked for longer than a
  // second, the share from before is kept until the next look. 0: before the second look, and if the system does not
  // say it.
  double share(Clock::time_point now = Clock::now());

 private:
  // The time for which work has waited since the system began, in seconds. Below 0: the system does not say it.
  double waited_seconds() const;

  int file_;
  double share_ = 0;  // the last answer
  Clock::time_point looked_at_;
  double waited_;  // as of looked_at_
};

}  // namespace kilokv::engine
