// The simulated environment of core (core/environment.hpp): virtual time, seeded random numbers, and all workers in one
// thread, in an order that the seed decides. The same seed gives the same run.
//
// Thread safety: none; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/core/environment.hpp"

namespace kilokv::server {

class SimClock : public Clock {
 public:
  TimeUs wall_us() const override { return wall_us_; }
  TimeUs monotonic_us() const override { return monotonic_us_; }
  TimeUs boot_us() const override { return monotonic_us_ + slept_us_; }
  void advance(DurationUs us);
  void jump_wall(DurationUs us) { wall_us_ += us; }  // forward or back, as an operator or NTP may do
  void sleep(DurationUs us) {                        // as a machine that is suspended
    wall_us_ += us;
    slept_us_ += us;
  }

 private:
  TimeUs wall_us_ = 1'700'000'000'000'000;
  TimeUs monotonic_us_ = 1'000'000;
  DurationUs slept_us_ = 0;
};

class SeededRandom : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// Requires: the scheduler outlives its workers. A step may notify and spawn, but must not destroy its own worker.
class SimScheduler : public Scheduler {
 public:
  SimScheduler(SimClock* clock, std::uint64_t seed) : clock_(clock), random_(seed) {}

  std::unique_ptr<Worker> spawn(std::string name, std::function<TimeUs()> step) override;

  // From now on, the order of the workers is that of another seed.
  void reseed(std::uint64_t seed) { random_.seed(seed); }
  // The worker with this name does not run, as if it took long; "": all run.
  void hold(std::string name) { held_ = std::move(name); }
  // Runs one due worker; false if none is due now.
  bool run_one();
  // Runs until no worker is due, and does not move the clock. Returns the number of steps. Fails a check after
  // `steps_max` steps.
  std::uint64_t run_until_idle(std::uint64_t steps_max = 10'000'000);
  // As run_until_idle(), and moves the clock from one timer to the next until `us` have passed.
  void run_for(DurationUs us);

 private:
  class SimWorker;
  TimeUs next_timer_us() const;

  SimClock* clock_;
  std::mt19937_64 random_;
  std::vector<SimWorker*> workers_;
  std::string held_;
  std::vector<SimWorker*> due_;  // scratch
};

// Clock, random numbers and scheduler together.
struct SimEnvironment {
  explicit SimEnvironment(std::uint64_t seed) : random(seed), scheduler(&clock, seed ^ 0x9E3779B97F4A7C15u) {}
  Environment environment() { return {&clock, &random, &scheduler}; }

  SimClock clock;
  SeededRandom random;
  SimScheduler scheduler;
};

}  // namespace kilokv::server
