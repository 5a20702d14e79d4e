#include "tests/support/sim_environment.hpp"

#include <gtest/gtest.h>

#include <set>

namespace kilokv::server {
namespace {

// The order in which eight workers, each notified twice, run.
std::string trace_of(std::uint64_t seed) {
  SimEnvironment sim(seed);
  std::string trace;
  std::vector<std::unique_ptr<Worker>> workers;
  for (char name = 'a'; name < 'i'; ++name) {
    workers.push_back(sim.scheduler.spawn(std::string(1, name), [&trace, name] {
      trace += name;
      return kNever;
    }));
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& worker : workers) {
      worker->notify();
    }
    sim.scheduler.run_until_idle();
  }
  return trace;
}

TEST(SimEnvironmentTest, TheSeedDecidesTheOrder) {
  std::set<std::string> traces;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::string trace = trace_of(seed);
    EXPECT_EQ(trace.size(), 16u);
    EXPECT_EQ(trace, trace_of(seed)) << "seed " << seed;
    traces.insert(trace);
  }
  EXPECT_GT(traces.size(), 45u);
}

TEST(SimEnvironmentTest, NothingRunsBeforeItIsNotified) {
  SimEnvironment sim(1);
  int steps = 0;
  const auto worker = sim.scheduler.spawn("worker", [&] {
    ++steps;
    return kNever;
  });
  EXPECT_EQ(sim.scheduler.run_until_idle(), 0u);
  worker->notify();
  worker->notify();
  EXPECT_EQ(sim.scheduler.run_until_idle(), 1u);
  EXPECT_EQ(steps, 1);
}

TEST(SimEnvironmentTest, TimersRunAtTheirTimeAndOthersTimeStandsStill) {
  SimEnvironment sim(1);
  std::vector<TimeUs> times;
  const TimeUs start = sim.clock.monotonic_us();
  const auto worker = sim.scheduler.spawn("timer", [&] {
    times.push_back(sim.clock.monotonic_us() - start);
    return sim.clock.monotonic_us() + 10;
  });
  worker->notify();
  sim.scheduler.run_until_idle();
  EXPECT_EQ(times, std::vector<TimeUs>{0});
  sim.scheduler.run_for(35);
  EXPECT_EQ(times, (std::vector<TimeUs>{0, 10, 20, 30}));
  EXPECT_EQ(sim.clock.monotonic_us(), start + 35);
}

TEST(SimEnvironmentTest, TheWallClockMayJumpAloneAndTimersDoNotCare) {
  SimEnvironment sim(1);
  const TimeUs wall = sim.clock.wall_us(), monotonic = sim.clock.monotonic_us();
  sim.clock.jump_wall(-1000);
  sim.clock.advance(10);
  EXPECT_EQ(sim.clock.wall_us(), wall - 990);
  EXPECT_EQ(sim.clock.monotonic_us(), monotonic + 10);
}

}  // namespace
}  // namespace kilokv::server
