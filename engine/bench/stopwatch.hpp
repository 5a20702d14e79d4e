// Measures wall time and the calling thread's processor time together. Processor time is for comparing two
// single-threaded loops on a machine that runs other programs too.
#pragma once

#include <time.h>

#include <chrono>

namespace kilokv::engine::bench {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double processor_seconds() const { return processor_now() - processor_start_; }

 private:
  using Clock = std::chrono::steady_clock;
  static double processor_now() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  double processor_start_ = processor_now();
  Clock::time_point start_ = Clock::now();
};

}  // namespace kilokv::engine::bench
