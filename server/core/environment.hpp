// What core takes from the outside: clock, randomness, scheduler. (The disk is CommitLog, the network is ResponseSink.)
// Core itself reads no clock, starts no thread and never sleeps. So the whole server can run in one thread, with a seed
// and on virtual time. server/core/threads.hpp has the real environment, tests/ the simulated one.
//
// Thread safety: any thread may use the real three.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/types.hpp"

namespace kilokv::server {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimeUs wall_us() const = 0;       // microseconds since the Unix epoch; may jump
  virtual TimeUs monotonic_us() const = 0;  // never decreases; for delays and leases
  virtual TimeUs boot_us() const = 0;       // never decreases, and goes on while the machine sleeps
};

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;  // uniform 64 bits; thread-safe; unpredictable in production
};

// The longest duration that a setting may have: 100 years. No clock overflows when it is added, not even one of
// nanoseconds.
inline constexpr DurationUs kDurationUsMax = DurationUs{100} * 365 * 24 * 3600 * 1000000;

// A stage of the pipeline: a step function that never runs concurrently with itself.
class Worker {
 public:
  virtual ~Worker() = default;  // stops the worker first
  // Waits for a running step. No step runs after this call. Must not be called from a step.
  virtual void stop() = 0;
  // The step runs (again) after this call. Cheap if the step is already due. Any thread may call it, and the step
  // itself.
  virtual void notify() = 0;
};

class Scheduler {
 public:
  virtual ~Scheduler() = default;
  // Makes a worker. `step` does all work that is there, without blocking on other workers; it may block on the disk. It
  // returns the monotonic time at which it wants to run again if no notify() comes before (kNever: only after a
  // notify()). The first step runs after the first notify(), so that all workers can be connected before any runs.
  virtual std::unique_ptr<Worker> spawn(std::string name, std::function<TimeUs()> step) = 0;
};

struct Environment {
  Clock* clock = nullptr;
  Random* random = nullptr;
  Scheduler* scheduler = nullptr;
};

}  // namespace kilokv::server
