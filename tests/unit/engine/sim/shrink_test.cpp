// Shrinking of failing runs: what is left is short, fails again, and is minimal. Also the text that describes it.

#include "engine/sim/shrink.hpp"

#include <array>
#include <cstdio>
#include <string>

#include "engine/sim/sim_platform.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

using P = SimPlatformOf<1>;

constexpr Order kRelaxed = Order::relaxed;
constexpr Scope kDevice = Scope::device;
constexpr std::uint64_t kRunsMax = 2000;

// A run under the schedule; true: it failed.
using Trial = std::function<bool(const Schedule&, RunReport*)>;

// The first of the seeds whose run fails, shrunk. What is left fails again, and without any one of it does not.
ShrunkSchedule shrink_first(Schedule schedule, const Trial& trial) {
  RunReport report;
  schedule.records_decisions = true;
  for (schedule.seed = 1; !trial(schedule, &report); ++schedule.seed) {
    if (schedule.seed == 1000) {
      FAIL("a seed to fail");
      return {};
    }
  }
  const auto fails = [&](const Schedule& tried) {
    RunReport ignored;
    return trial(tried, &ignored);
  };
  ShrunkSchedule shrunk = shrink(schedule, report.decisions, fails, kRunsMax);
  std::printf("  seed %llu: %zu decisions, shrunk in %llu runs to %zu: %s\n",
              static_cast<unsigned long long>(schedule.seed), report.decisions.size(),
              static_cast<unsigned long long>(shrunk.runs), shrunk.schedule.decisions.size(), shrunk.text().c_str());
  EXPECT_TRUE(shrunk.fails && shrunk.is_minimal && shrunk.runs < kRunsMax);
  EXPECT_TRUE(shrunk.schedule.decisions.size() < report.decisions.size());
  EXPECT_TRUE(fails(shrunk.schedule));
  for (std::size_t i = 0; i < shrunk.schedule.decisions.size(); ++i) {
    Schedule less = shrunk.schedule;
    less.decisions.erase(less.decisions.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(fails(less));
  }
  return shrunk;
}

// Eight lanes add to a counter five times each; only lanes 2 and 6 do it in two accesses.
TEST(a_lost_update_shrinks_to_its_switches) {
  Lanes lanes({.blocks = 1, .block_threads = 8, .group_width = 4});
  const Trial trial = [&](const Schedule& schedule, RunReport* report) {
    std::uint64_t counter = 0;
    *report = lanes.run(schedule, [&](std::uint32_t lane) {
      const SimPlatform4 p(&lanes, lane);
      for (int i = 0; i < 5; ++i) {
        if (lane % 4 == 2) {
          p.store(&counter, p.load(&counter, kRelaxed, kDevice) + 1, kRelaxed, kDevice);
        } else {
          p.fetch_add(&counter, 1, kRelaxed, kDevice);
        }
      }
    });
    return counter != 40;
  };
  for (const Schedule::Kind kind : {Schedule::Kind::interleaved, Schedule::Kind::lockstep}) {
    Schedule schedule;
    schedule.kind = kind;
    const ShrunkSchedule shrunk = shrink_first(schedule, trial);
    EXPECT_TRUE(!shrunk.schedule.decisions.empty() && shrunk.schedule.decisions.size() <= 2);
  }
}

// One write under a seqlock without its fences; three lanes read.
TEST(a_seqlock_without_a_fence_shrinks_to_a_late_value) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 1});
  for (const bool is_writers : {false, true}) {
    const Trial trial = [&](const Schedule& schedule, RunReport* report) {
      std::uint64_t lock = 0, torn = 0;
      std::array<std::uint64_t, 2> words{};
      *report = lanes.run(schedule, [&](std::uint32_t lane) {
        const P p(&lanes, lane);
        if (lane == 1) {
          p.store(&lock, 1, kRelaxed, kDevice);
          if (!is_writers) p.fence(Order::release, kDevice);
          for (std::uint64_t& word : words) p.store(&word, 1, kRelaxed, kDevice);
          return p.store(&lock, 2, Order::release, kDevice);
        }
        for (int tries = 0; tries < 10; ++tries) {
          const std::uint64_t before = p.load(&lock, Order::acquire, kDevice);
          const std::uint64_t one = p.load(&words[0], kRelaxed, kDevice);
          const std::uint64_t other = p.load(&words[1], kRelaxed, kDevice);
          if (is_writers) p.fence(Order::acquire, kDevice);
          if (before % 2 == 0 && p.load(&lock, kRelaxed, kDevice) == before && one != other) ++torn;
        }
      });
      return torn > 0;
    };
    Schedule schedule;
    schedule.stale_probability = 0.3;
    EXPECT_TRUE(shrink_first(schedule, trial).schedule.decisions.size() <= 4);
  }
}

// The lanes wait for each other by spinning: with decisions left out, they still get on.
ShrunkSchedule shrink_spinning(bool pauses) {
  Lanes lanes({.blocks = 1, .block_threads = 3, .group_width = 1});
  const Trial trial = [&](const Schedule& schedule, RunReport* report) {
    std::uint64_t turn = 0, racer = 0;
    *report = lanes.run(schedule, [&](std::uint32_t lane) {
      const P p(&lanes, lane);
      for (std::uint64_t round = 0; round < 4; ++round) {
        while (p.load(&turn, Order::acquire, kDevice) != 3 * round + 2 - lane) {
          if (pauses) p.pause();
        }
        p.store(&turn, 3 * round + 3 - lane, Order::release, kDevice);
      }
      p.pause();
      racer = lane;
    });
    EXPECT_TRUE(report->status.ok());
    return racer == 1;
  };
  Schedule schedule;
  schedule.steps_max = 100'000;
  return shrink_first(schedule, trial);
}

TEST(who_spins_shrinks) {
  for (const bool pauses : {false, true}) {
    EXPECT_TRUE(shrink_spinning(pauses).schedule.decisions.size() <=
                12);  // steps of who spins are hardly the same again
  }
}

TEST(what_always_fails_needs_no_decision) {
  const Decision one{.lane = 0, .step = 1, .kind = Decision::Kind::lane, .value = 1};
  const std::vector<Decision> decisions(100, one);
  const auto always = [](const Schedule&) { return true; };
  const ShrunkSchedule shrunk = shrink(Schedule{}, decisions, always, kRunsMax);
  EXPECT_TRUE(shrunk.fails && shrunk.is_minimal && shrunk.schedule.decisions.empty());
  EXPECT_EQ(shrunk.runs, 2u);
  EXPECT_EQ(shrunk.text(), std::string("a lane runs until it waits, pauses or ends"));
  EXPECT_TRUE(shrink(Schedule{}, {}, always, kRunsMax).is_minimal);
}

TEST(what_does_not_fail_again_is_told) {
  const auto never = [](const Schedule&) { return false; };
  const ShrunkSchedule shrunk = shrink(Schedule{}, std::vector<Decision>(3), never, kRunsMax);
  EXPECT_FALSE(shrunk.fails || shrunk.is_minimal);
  EXPECT_EQ(shrunk.runs, 1u);
  EXPECT_EQ(shrunk.schedule.decisions.size(), 3u);
}

// Three of a thousand are needed.
TEST(few_of_many_are_found_in_bounded_runs) {
  std::vector<Decision> decisions;
  for (std::uint64_t step = 1; step <= 1000; ++step) decisions.push_back({.lane = 1, .step = step, .value = 2});
  const auto fails = [](const Schedule& schedule) {
    std::uint64_t needed = 0;
    for (const Decision& decision : schedule.decisions) {
      if (decision.step == 3 || decision.step == 500 || decision.step == 501) ++needed;
    }
    return needed == 3;
  };
  const ShrunkSchedule shrunk = shrink(Schedule{}, decisions, fails, kRunsMax);
  EXPECT_TRUE(shrunk.is_minimal && shrunk.runs < 100);
  EXPECT_EQ(shrunk.schedule.decisions.size(), 3u);
  const ShrunkSchedule stopped = shrink(Schedule{}, decisions, fails, 10);
  EXPECT_TRUE(stopped.fails && !stopped.is_minimal && fails(stopped.schedule));
  EXPECT_EQ(stopped.runs, 10u);
}

TEST(runs_are_bounded) {
  std::vector<Decision> decisions;
  for (std::uint32_t lane = 0; lane < 4; ++lane) decisions.push_back({.lane = lane, .step = 1, .value = lane + 1});
  const auto fails = [&](const Schedule& schedule) { return schedule.decisions == decisions; };
  const std::uint64_t needed = shrink(Schedule{}, decisions, fails, kRunsMax).runs;
  EXPECT_TRUE(needed > 10 && needed < 40);
  for (std::uint64_t runs_max = 1; runs_max < needed + 5; ++runs_max) {
    const ShrunkSchedule shrunk = shrink(Schedule{}, decisions, fails, runs_max);
    EXPECT_TRUE(shrunk.fails && shrunk.runs <= runs_max && shrunk.schedule.decisions == decisions);
    EXPECT_EQ(shrunk.is_minimal, runs_max > needed);
  }
}

TEST(a_schedule_is_told_in_words) {
  const std::vector<Decision> decisions = {{.value = 2},
                                           {.lane = 2, .step = 17, .value = 0},
                                           {.lane = 0, .step = 9, .value = 0},
                                           {.lane = 1, .step = 5, .kind = Decision::Kind::age, .value = 1},
                                           {.lane = 1, .step = 6, .kind = Decision::Kind::age, .value = 3}};
  EXPECT_EQ(
      to_text(decisions),
      std::string(
          "lane 2 begins; after step 17 of lane 2 lane 0 runs; after step 9 of lane 0 it goes on; step 5 of lane 1 "
          "reads the value before the newest; step 6 of lane 1 reads the value 3 "
          "before the newest"));
}

}  // namespace
}  // namespace kilokv::engine
