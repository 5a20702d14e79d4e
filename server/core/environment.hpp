// What core takes from the outside world: clock, randomness, scheduler (disk is CommitLog, network is ResponseSink).
// Core reads no clock, starts no thread and sleeps nowhere by itself, so that the whole server can run, seeded and on
// virtual time, in one thread. server/core/threads.hpp has the real ones, tests/ the simulated ones.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "engine/base/types.hpp"

namespace kilokv::server {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeUs wall_us() const = 0;       // microseconds since the Unix epoch; may jump
  virtual TimeUs monotonic_us() const = 0;  // never decreases; for delays and leases
};

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;  // uniform 64 bits; thread-safe; unpredictable in production
};

inline constexpr TimeUs kNever = std::numeric_limits<TimeUs>::max();
// The longest duration that a setting may have, 100 years: no clock overflows by it, not even one of nanoseconds.
inline constexpr DurationUs kDurationUsMax = DurationUs{100} * 365 * 24 * 3600 * 1000000;

// A stage of the pipeline: a step function that is never run concurrently with itself.
class Worker {
 public:
  virtual ~Worker() = default;  // stops it first
  // Waits for a running step; none runs afterwards. Not from a step.
  virtual void stop() = 0;
  // The step will run (again) after this call. Cheap when it is already due. Any thread, the step itself included.
  virtual void notify() = 0;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // `step` does what work there is without blocking on other workers and returns the monotonic time at which it wants
  // to run again if nobody notifies it before (kNever: only when notified). A step may block on the disk. The first
  // step runs after the first notify(), so that workers can be wired before any runs.
  virtual std::unique_ptr<Worker> spawn(std::string name, std::function<TimeUs()> step) = 0;
};

struct Environment {
  Clock* clock = nullptr;
  Random* random = nullptr;
  Scheduler* scheduler = nullptr;
};

}  // namespace kilokv::server
