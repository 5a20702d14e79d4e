// The simulator's machine: its schedules and their replay, the errors that it finds in bodies that never end, and that
// it leaves the caller's stack alone. A failure names the seed that replays it.

#include "engine/sim/lanes.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "engine/sim/sim_platform.hpp"
#include "tests/unit/engine/sim/lanes_fixture.hpp"

namespace kilokv::engine {
namespace {

TEST(sequential_runs_a_lane_until_it_waits) {
  Lanes lanes({.blocks = 1, .block_threads = 3, .group_width = 1});
  std::vector<std::uint32_t> order;
  const RunReport report = lanes.run(schedule_of(Kind::sequential, 0), [&](std::uint32_t lane) {
    order.push_back(lane);
    lanes.step();
    order.push_back(lane);
    lanes.meet(Meeting::grid_barrier);
    order.push_back(lane);
  });
  EXPECT_TRUE(report.status.ok());
  EXPECT_TRUE(order == (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 0, 1, 2}));
  EXPECT_EQ(report.steps, 6u);
  EXPECT_EQ(report.preemptions, 0u);
}

TEST(lockstep_steps_the_lanes_of_a_group_in_order) {
  Lanes lanes({.blocks = 1, .block_threads = 8, .group_width = 4});
  std::set<std::vector<std::uint32_t>> orders;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    std::vector<std::uint32_t> order;
    expect_ok(&lanes, Kind::lockstep, seed, [&](std::uint32_t lane) {
      for (int i = 0; i < 3; ++i) {
        lanes.step();
        order.push_back(lane);
      }
    });
    ASSERT_EQ(order.size(), 24u);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint32_t first = order[i - i % 4];
      if (first % 4 != 0 || order[i] != first + i % 4) return FAIL("lanes in order, seed " + std::to_string(seed));
    }
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 20u);  // the ways to choose whose turn three of six are
}

// ... until they meet again; then the first of them is first again.
TEST(lockstep_leaves_out_who_waits) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 4});
  std::vector<std::uint32_t> order;
  expect_ok(&lanes, Kind::lockstep, 1, [&](std::uint32_t lane) {
    for (std::uint32_t i = 0; i < (lane + 2) % 4; ++i) {
      lanes.step();
      order.push_back(lane);
    }
    lanes.meet(Meeting::group_barrier);
    lanes.step();
    order.push_back(lane + 10);
  });
  EXPECT_TRUE(order == (std::vector<std::uint32_t>{0, 1, 3, 0, 1, 1, 10, 11, 12, 13}));
}

TEST(a_seed_is_a_schedule) {
  Lanes lanes({.blocks = 1, .block_threads = 8, .group_width = 4});
  const Body body = [&](std::uint32_t) {
    for (int i = 0; i < 20; ++i) lanes.step();
    lanes.meet(Meeting::grid_barrier);
    for (int i = 0; i < 20; ++i) lanes.step();
  };
  for (const Kind kind : {Kind::interleaved, Kind::lockstep}) {
    std::vector<RunReport> reports;
    std::set<std::uint64_t> traces;
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      reports.push_back(lanes.run(schedule_of(kind, seed), body));
      EXPECT_TRUE(reports.back().status.ok());
      EXPECT_TRUE(reports.back().preemptions > 20);
      traces.insert(reports.back().trace);
    }
    EXPECT_EQ(traces.size(), 500u);
    Lanes others({.blocks = 1, .block_threads = 8, .group_width = 4});
    for (std::uint64_t seed = 500; seed-- > 0;) {
      const RunReport again = others.run(schedule_of(kind, seed), [&](std::uint32_t) {
        for (int i = 0; i < 20; ++i) others.step();
        others.meet(Meeting::grid_barrier);
        for (int i = 0; i < 20; ++i) others.step();
      });
      EXPECT_EQ(again.trace, reports[seed].trace);
      EXPECT_EQ(again.steps, reports[seed].steps);
      EXPECT_EQ(again.preemptions, reports[seed].preemptions);
    }
  }
}

// The decisions of a run, of each kind and also of one that fails, are that run.
TEST(decisions_replay_a_run) {
  Lanes lanes({.blocks = 2, .block_threads = 6, .group_width = 4});
  std::array<std::uint64_t, 12> data{};
  std::uint64_t lock = 0, counter = 0, failed = 0;
  const Body body = [&](std::uint32_t lane) {
    const SimPlatform4 p(&lanes, lane);
    for (int i = 0; i < 3; ++i) {
      while (p.compare_exchange(&lock, 0, 1, Order::acquire, kDevice) != 0) p.pause();
      p.put(&counter, p.get(&counter) + 1);
      p.store(&lock, 0, Order::release, kDevice);
      p.ballot(lane % 2 == 0);
      p.block_barrier();
    }
    p.put(&data[lane], lane);
    if (p.get(p.shared()) % 8 == 0 && lane > 8) return;  // undefined: every eighth run or so
    p.grid_barrier();
  };
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    lock = 0;
    Schedule schedule = schedule_of(kKinds[seed % 3], seed);
    schedule.records_decisions = true;
    const RunReport report = lanes.run(schedule, body);
    failed += report.status.ok() ? 0 : 1;
    lock = 0;
    schedule.kind = Kind::replay;
    schedule.decisions = report.decisions;
    const RunReport again = lanes.run(schedule, body);
    EXPECT_EQ(again.trace, report.trace);
    EXPECT_EQ(again.steps, report.steps);
    EXPECT_EQ(again.status.message(), report.status.message());
    EXPECT_TRUE(again.decisions == report.decisions);
    schedule.records_decisions = false;
    EXPECT_TRUE(lanes.run(schedule, body).decisions.empty());
    if (test::has_failed()) return FAIL("seed " + std::to_string(seed));
  }
  EXPECT_TRUE(failed > 10 && failed < 150);
}

TEST(decisions_that_cannot_be_followed_are_passed_over) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 1});
  Schedule schedule = schedule_of(Kind::replay, 1);
  schedule.stale_probability = 0.5;
  schedule.decisions = {{.lane = 0, .step = 0, .value = 99},  // no such lane
                        {.lane = 0, .step = 1, .value = 63},
                        {.lane = 1, .step = 2, .value = 0},                                 // has ended
                        {.lane = 1, .step = 2, .kind = Decision::Kind::age, .value = 100},  // older than there is
                        {.lane = 7, .step = 1, .value = 1}};
  std::uint64_t word = 5, read = 0;
  const RunReport report = lanes.run(schedule, [&](std::uint32_t lane) {
    const SimPlatformOf<1> p(&lanes, lane);
    if (lane == 0) return p.store(&word, 6, kRelaxed, kDevice);
    p.pause();
    read = p.load(&word, kRelaxed, kDevice);
  });
  EXPECT_TRUE(report.status.ok());
  EXPECT_EQ(read, 5u);
  EXPECT_EQ(report.stale_loads, 1u);
}

TEST(who_goes_on_at_a_pause_goes_on) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 1});
  for (const bool goes_on : {false, true}) {
    Schedule schedule = schedule_of(Kind::replay, 1);
    if (goes_on) schedule.decisions = {{.lane = 0, .step = 1, .value = 0}};
    std::vector<std::uint32_t> order;
    static_cast<void>(lanes.run(schedule, [&](std::uint32_t lane) {
      order.push_back(lane);
      lanes.pause();
      order.push_back(lane);
      lanes.step();
      order.push_back(lane);
    }));
    EXPECT_TRUE(order == (goes_on ? std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1}
                                  : std::vector<std::uint32_t>{0, 1, 0, 0, 1, 1}));
  }
}

// Few lanes and steps have few traces: all are found, and none twice.
TEST(traces_are_told_apart) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 1});
  std::set<std::uint64_t> traces;
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::string order;
    const RunReport report = lanes.run(schedule_of(Kind::interleaved, seed), [&](std::uint32_t lane) {
      order += static_cast<char>('a' + lane);
      for (int i = 0; i < 2; ++i) {
        lanes.step();
        order += static_cast<char>('a' + lane);
      }
    });
    traces.insert(report.trace);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 20u);
  EXPECT_EQ(traces.size(), 20u);
}

TEST(a_barrier_that_not_all_reach_is_an_error) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 4});
  for (const Kind kind : kKinds) {
    const RunReport report = lanes.run(schedule_of(kind, 1), [&](std::uint32_t lane) {
      if (lane != 2) lanes.meet(Meeting::grid_barrier);
    });
    EXPECT_EQ(report.status.message(),
              std::string("barrier mismatch: lanes 0, 1, 3 at the grid barrier; lane 2 has finished"));
  }
  const RunReport report = lanes.run(schedule_of(Kind::interleaved, 1), [&](std::uint32_t lane) {
    const SimPlatform4 p(&lanes, lane);
    lane < 2 ? p.group_barrier() : static_cast<void>(p.ballot(true));
  });
  EXPECT_EQ(
      report.status.message(),
      std::string("barrier mismatch: lanes 0, 1 at the group barrier; lanes 2, 3 at a ballot; none has finished"));
}

TEST(no_progress_is_an_error) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 1});
  std::uint64_t flag = 0;
  for (const Kind kind : kKinds) {
    const RunReport report = lanes.run(schedule_of(kind, 1, 1000), [&](std::uint32_t lane) {
      const SimPlatformOf<1> p(&lanes, lane);
      while (p.load(&flag, Order::acquire, kDevice) == 0) {
      }
    });
    EXPECT_EQ(report.status.message(), std::string("no progress: more than 1000 steps (steps_max)"));
    EXPECT_EQ(report.steps, 1001u);
  }
}

// Uses much of a lane's stack, with steps on the way.
std::uint64_t descend(Lanes* lanes, std::uint32_t depth) {
  std::array<std::uint64_t, 64> frame{};
  lanes->step();
  frame[depth % frame.size()] = depth == 0 ? 0 : descend(lanes, depth - 1);
  return 1 + *std::max_element(frame.begin(), frame.end());
}

std::uint64_t sum_of_texts(std::uint32_t depth) {
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < 4; ++i) {
    std::string text = "a text too long to lie within its string: " + std::to_string(depth + i);
    std::array<char, 200> copy{};
    std::copy(text.begin(), text.end(), copy.begin());
    { texts.emplace_back(copy.data()); }
  }
  std::uint64_t sum = 0;
  for (const std::string& text : texts) sum += text.size();
  return depth == 0 ? sum : sum + sum_of_texts(depth - 1);
}

// Leaves many frames at once. The address sanitizer then has to clear what it noted of them, and for that must know
// where this stack lies.
void leave_frames(std::uint32_t depth) {
  std::array<char, 100> frame{};
  { std::fill(frame.begin(), frame.end(), 'x'); }
  if (depth == 0) throw std::string(frame.data(), frame.size());
  leave_frames(depth - 1);
  frame.fill('y');
}

bool can_leave_frames() {
  try {
    leave_frames(100);
  } catch (const std::string& text) {
    return text.size() == 100;
  }
  return false;
}

// One frame where the many were.
std::uint64_t sum_large_frame() {
  std::array<std::uint8_t, 32768> frame;
  frame.fill(1);
  return std::accumulate(frame.begin(), frame.end(), std::uint64_t{0});
}

TEST(the_callers_stack_is_its_own) {
  const std::uint64_t before = sum_of_texts(100);
  for (std::uint64_t round = 0; round < 20; ++round) {
    Lanes lanes({.blocks = 2, .block_threads = 32, .group_width = 32});
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const bool fails = seed % 3 == 1;
      std::uint64_t depths = 0;
      const RunReport report = lanes.run(schedule_of(kKinds[seed % 3], seed), [&](std::uint32_t lane) {
        depths += descend(&lanes, 20 + lane);
        if (fails && lane == 40) return;  // the others stay in their frames
        lanes.meet(Meeting::block_barrier);
        depths += descend(&lanes, 5);
      });
      EXPECT_EQ(report.status.ok(), !fails);
      if (!fails) EXPECT_EQ(depths, 64u * (21 + 6) + 63 * 64 / 2);
      EXPECT_TRUE(can_leave_frames());
      EXPECT_EQ(sum_large_frame(), 32768u);
      EXPECT_EQ(sum_of_texts(100), before);
    }
  }
}

TEST(a_run_after_a_failed_one_is_as_new) {
  Lanes lanes({.blocks = 1, .block_threads = 8, .group_width = 4});
  const Body good = [&](std::uint32_t) { static_cast<void>(descend(&lanes, 10)); };
  const RunReport fresh = lanes.run(schedule_of(Kind::interleaved, 4), good);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RunReport failed = lanes.run(schedule_of(kKinds[seed % 3], seed, 50), good);
    EXPECT_EQ(failed.status.message(), std::string("no progress: more than 50 steps (steps_max)"));
    const RunReport again = lanes.run(schedule_of(Kind::interleaved, 4), good);
    EXPECT_TRUE(again.status.ok());
    EXPECT_EQ(again.trace, fresh.trace);
  }
}

// Transfers between accounts under a lock, as strategies are driven: thousands of schedules, all of them different.
TEST(thousands_of_schedules) {
  Lanes lanes({.blocks = 1, .block_threads = 8, .group_width = 4});
  std::set<std::uint64_t> traces;
  std::uint64_t steps = 0;
  constexpr std::uint64_t kRuns = 2000;
  for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
    std::array<std::uint64_t, 4> accounts = {100, 100, 100, 100};
    std::uint64_t lock = 0;
    const RunReport report = lanes.run(schedule_of(Kind::interleaved, seed), [&](std::uint32_t lane) {
      const SimPlatform4 p(&lanes, lane);
      for (std::uint32_t i = 0; i < 3; ++i) {
        while (p.compare_exchange(&lock, 0, 1, Order::acquire, kDevice) != 0) {
        }
        std::uint64_t* const from = &accounts[(lane + i) % 4];
        std::uint64_t* const to = &accounts[(lane * 3 + i + 1) % 4];
        p.put(from, p.get(from) - 1);
        p.put(to, p.get(to) + 1);
        p.store(&lock, 0, Order::release, kDevice);
      }
    });
    if (!report.status.ok()) FAIL(show_run(Kind::interleaved, seed, report));
    EXPECT_EQ(std::accumulate(accounts.begin(), accounts.end(), std::uint64_t{0}), 400u);
    traces.insert(report.trace);
    steps += report.steps;
  }
  EXPECT_EQ(traces.size(), kRuns);
  EXPECT_TRUE(steps > 100 * kRuns);
}

}  // namespace
}  // namespace kilokv::engine
