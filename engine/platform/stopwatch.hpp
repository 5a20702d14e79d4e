// Measures wall time and the calling thread's processor time together. Processor time compares work on a machine that
// runs other programs too.
#pragma once

#include <time.h>

#include <chrono>

namespace kilokv::engine {

class Stopwatch {
 public:
  // The processor time that the calling thread has used since it began, and that of all threads of the process.
  static double processor_now() { return now(CLOCK_THREAD_CPUTIME_ID); }
  static double process_now() { return now(CLOCK_PROCESS_CPUTIME_ID); }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double processor_seconds() const { return processor_now() - processor_start_; }

 private:
  using Clock = std::chrono::steady_clock;
  static double now(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  double processor_start_ = processor_now();
  Clock::time_point start_ = Clock::now();
};

}  // namespace kilokv::engine
