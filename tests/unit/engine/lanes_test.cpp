// The simulator: its schedules, its barriers, what it finds in bodies that are wrong, and that it leaves the caller's
// stack alone. A failure names the seed that replays it.

#include "engine/platform/lanes.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "engine/platform/sim.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

using Kind = Schedule::Kind;
using Body = std::function<void(std::uint32_t)>;

constexpr std::array<Kind, 3> kKinds = {Kind::sequential, Kind::interleaved, Kind::lockstep};
constexpr Order kRelaxed = Order::relaxed;
constexpr Scope kDevice = Scope::device;

Schedule schedule_of(Kind kind, std::uint64_t seed, std::uint64_t steps_max = 100'000) {
  return {.kind = kind, .seed = seed, .preempt_probability = 0.25, .steps_max = steps_max};
}

std::string show_run(Kind kind, std::uint64_t seed, const RunReport& report) {
  return "a run of kind " + std::to_string(static_cast<int>(kind)) + " and seed " + std::to_string(seed) +
         " to be right; it is not: " + report.status.message();
}

void expect_ok(Lanes* lanes, Kind kind, std::uint64_t seed, const Body& body) {
  const RunReport report = lanes->run(schedule_of(kind, seed), body);
  if (!report.status.ok()) FAIL(show_run(kind, seed, report));
}

// Some runs of those seeds end with an error that has this in its text; returns how many.
std::uint64_t count_errors(Lanes* lanes, Kind kind, std::uint64_t seeds, const std::string& text, const Body& body) {
  std::uint64_t errors = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const RunReport report = lanes->run(schedule_of(kind, seed), body);
    if (report.status.message().find(text) != std::string::npos) ++errors;
  }
  return errors;
}

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

// Each lane puts a datum; behind the barrier it gets those of all lanes that met it there.
template <class P>
void exchange_data(P* p, std::uint64_t* data, Meeting meeting, Meeting used) {
  const auto meet = [&] {
    if (used == Meeting::group_barrier) p->group_barrier();
    if (used == Meeting::block_barrier) p->block_barrier();
    if (used == Meeting::grid_barrier) p->grid_barrier();
  };
  std::uint32_t begin = 0, end = p->threads();
  if (meeting == Meeting::block_barrier) begin = p->thread() - p->block_thread(), end = begin + p->block_threads();
  if (meeting == Meeting::group_barrier) begin = p->thread() - p->lane(), end = begin + P::kGroupWidth;
  for (std::uint64_t phase = 1; phase <= 3; ++phase) {
    p->put(data + p->thread(), phase * 100 + p->thread());
    meet();
    for (std::uint32_t thread = begin; thread < end; ++thread) EXPECT_EQ(p->get(data + thread), phase * 100 + thread);
    meet();
  }
}

constexpr std::array<Meeting, 3> kBarriers = {Meeting::group_barrier, Meeting::block_barrier, Meeting::grid_barrier};

TEST(barriers_separate_phases) {
  Lanes lanes({.blocks = 2, .block_threads = 8, .group_width = 4});
  std::array<std::uint64_t, 16> data{};
  for (const Kind kind : kKinds) {
    for (const Meeting meeting : kBarriers) {
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        expect_ok(&lanes, kind, seed, [&](std::uint32_t lane) {
          SimPlatform4 p(&lanes, lane);
          exchange_data(&p, data.data(), meeting, meeting);
        });
      }
    }
  }
}

TEST(a_barrier_that_is_missing_or_too_narrow_is_a_race) {
  Lanes lanes({.blocks = 2, .block_threads = 8, .group_width = 4});
  std::array<std::uint64_t, 16> data{};
  const auto races = [&](Kind kind, bool has_barrier) {
    return count_errors(&lanes, kind, 20, "data race", [&](std::uint32_t lane) {
      const SimPlatform4 p(&lanes, lane);
      p.put(&data[lane], lane);
      if (has_barrier) p.block_barrier();
      static_cast<void>(p.get(&data[(lane + 8) % 16]));  // of the other block
    });
  };
  for (const Kind kind : kKinds) {
    EXPECT_EQ(races(kind, false), 20u);
    EXPECT_EQ(races(kind, true), 20u);
  }
  const RunReport report = lanes.run(schedule_of(Kind::sequential, 0), [&](std::uint32_t lane) {
    const SimPlatform4 p(&lanes, lane);
    p.put(&data[lane], 1);
    p.grid_barrier();
    if (lane != 3 && lane != 5) return;
    if (lane == 3) static_cast<void>(p.get(&data[4]));
    if (lane == 5) p.put(&data[4], 1);
  });
  EXPECT_EQ(report.status.message(),
            std::string("data race: lane 5 puts what lane 3 gets, unordered: datum 4 in order of first use, phase 1 "
                        "between grid barriers"));
}

template <std::uint32_t Width>
void expect_group_words(std::uint32_t blocks, std::uint32_t block_threads) {
  Lanes lanes({.blocks = blocks, .block_threads = block_threads, .group_width = Width});
  for (const Kind kind : kKinds) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      expect_ok(&lanes, kind, seed, [&](std::uint32_t thread) {
        const SimPlatformOf<Width> p(&lanes, thread);
        const std::uint32_t size = std::min(Width, block_threads - (p.block_thread() - p.lane()));
        const std::uint32_t all = static_cast<std::uint32_t>((std::uint64_t{1} << size) - 1);
        EXPECT_EQ(p.ballot(p.lane() % 2 == 0), 0x55555555u & all);
        EXPECT_EQ(p.ballot(true), all);
        EXPECT_EQ(p.ballot(false), 0u);
        EXPECT_EQ(p.match(p.lane() % 3), (p.lane() % 3 == 0   ? 0x49249249u
                                          : p.lane() % 3 == 1 ? 0x92492492u
                                                              : 0x24924924u) &
                                             all);
        for (std::uint32_t from = 0; from < size; ++from) {
          EXPECT_EQ(p.broadcast(1000 * p.group() + p.lane(), from), 1000u * p.group() + from);
        }
      });
    }
  }
}

TEST(groups_exchange_words) {
  expect_group_words<4>(1, 4);
  expect_group_words<4>(2, 8);
  expect_group_words<4>(2, 6);  // groups of 4 and of 2
  expect_group_words<32>(2, 32);
  expect_group_words<32>(1, 64);
  expect_group_words<32>(3, 5);
}

TEST(threads_know_their_place) {
  Lanes lanes({.blocks = 2, .block_threads = 6, .group_width = 4});
  std::vector<std::uint32_t> groups(12), group_lanes(12);
  expect_ok(&lanes, Kind::interleaved, 3, [&](std::uint32_t thread) {
    const SimPlatform4 p(&lanes, thread);
    EXPECT_EQ(p.thread(), thread);
    EXPECT_EQ(p.threads(), 12u);
    EXPECT_EQ(p.block(), thread / 6);
    EXPECT_EQ(p.block_thread(), thread % 6);
    EXPECT_EQ(p.block_threads(), 6u);
    groups[thread] = p.group();
    group_lanes[thread] = p.lane();
  });
  EXPECT_TRUE(groups == (std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3}));
  EXPECT_TRUE(group_lanes == (std::vector<std::uint32_t>{0, 1, 2, 3, 0, 1, 0, 1, 2, 3, 0, 1}));
}

TEST(shared_words_are_a_blocks_and_undefined) {
  Lanes lanes({.blocks = 2, .block_threads = 4, .group_width = 4});
  std::set<std::uint64_t> undefined;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    expect_ok(&lanes, Kind::interleaved, seed, [&](std::uint32_t thread) {
      const SimPlatform4 p(&lanes, thread);
      undefined.insert(p.get(p.shared() + SimPlatform4::kSharedWords - 1));
      p.put(p.shared() + p.block_thread(), thread);
      p.block_barrier();
      EXPECT_EQ(p.get(p.shared() + 3), 4u * p.block() + 3);
    });
  }
  EXPECT_EQ(undefined.size(), 40u);
}

TEST(changes_of_words) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 4});
  struct {
    std::uint64_t min = 50, max = 50, bits = 0, sum = 5;
    std::uint32_t half_sum = 0, winners = 0, lock = 0;
  } words;
  expect_ok(&lanes, Kind::interleaved, 7, [&](std::uint32_t lane) {
    const SimPlatform4 p(&lanes, lane);
    p.fetch_min(&words.min, 49 - lane, kRelaxed, kDevice);
    p.fetch_max(&words.max, 51 + lane, kRelaxed, kDevice);
    p.fetch_or(&words.bits, std::uint64_t{1} << lane, kRelaxed, kDevice);
    p.fetch_add(&words.sum, lane, kRelaxed, kDevice);
    p.fetch_add(&words.half_sum, 1, kRelaxed, kDevice);
    if (p.compare_exchange(&words.lock, 0, 1, Order::acquire, kDevice) == 0) {
      p.fetch_add(&words.winners, 1, kRelaxed, kDevice);
    }
    p.grid_barrier();
    if (lane == 0) EXPECT_EQ(p.exchange(&words.lock, 9, kRelaxed, kDevice), 1u);
  });
  EXPECT_EQ(words.min, 46u);
  EXPECT_EQ(words.max, 54u);
  EXPECT_EQ(words.bits, 15u);
  EXPECT_EQ(words.sum, 11u);
  EXPECT_EQ(words.half_sum, 4u);
  EXPECT_EQ(words.winners, 1u);
  EXPECT_EQ(words.lock, 9u);
}

// How many of the seeds lose an update of a counter.
std::uint64_t count_lost_updates(Kind kind, bool one_access) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 4});
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::uint64_t counter = 0;
    expect_ok(&lanes, kind, seed, [&](std::uint32_t lane) {
      const SimPlatform4 p(&lanes, lane);
      if (one_access) {
        p.fetch_add(&counter, 1, kRelaxed, kDevice);
      } else {
        p.store(&counter, p.load(&counter, kRelaxed, kDevice) + 1, kRelaxed, kDevice);
      }
    });
    if (counter != 4) ++lost;
  }
  return lost;
}

TEST(a_lost_update_is_found) {
  EXPECT_TRUE(count_lost_updates(Kind::interleaved, false) > 20);
  EXPECT_EQ(count_lost_updates(Kind::lockstep, false), 100u);
  EXPECT_EQ(count_lost_updates(Kind::sequential, false), 0u);
  for (const Kind kind : kKinds) EXPECT_EQ(count_lost_updates(kind, true), 0u);
}

// Lane 0 puts a datum and raises a flag; lane 1 awaits it and gets the datum.
struct Message {
  Order store = kRelaxed, load = kRelaxed;
  Order fence_before = kRelaxed, fence_behind = kRelaxed;  // relaxed: none
  bool puts_behind_fence = false, puts_behind_store = false;
  bool stores_again = false, adds_again = false;  // relaxed, and lane 1 awaits that
};

std::uint64_t count_message_races(const Message& message) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 1});
  std::uint64_t datum = 0, flag = 0;
  return count_errors(&lanes, Kind::interleaved, 50, "data race", [&](std::uint32_t lane) {
    const SimPlatformOf<1> p(&lanes, lane);
    const bool again = message.stores_again || message.adds_again;
    if (lane == 0) p.store(&flag, 0, kRelaxed, kDevice);
    p.grid_barrier();
    if (lane == 0) {
      p.put(&datum, 5);
      if (message.fence_before != kRelaxed) p.fence(message.fence_before, kDevice);
      if (message.puts_behind_fence) p.put(&datum, 6);
      p.store(&flag, 1, message.store, kDevice);
      if (message.puts_behind_store) p.put(&datum, 7);
      if (message.stores_again) p.store(&flag, 2, kRelaxed, kDevice);
      if (message.adds_again) p.fetch_add(&flag, 1, kRelaxed, kDevice);
    } else {
      while (p.load(&flag, kRelaxed, kDevice) < (again ? 2 : 1)) {
      }
      p.load(&flag, message.load, kDevice);
      if (message.fence_behind != kRelaxed) p.fence(message.fence_behind, kDevice);
      static_cast<void>(p.get(&datum));
    }
  });
}

TEST(release_and_acquire_order_data) {
  EXPECT_EQ(count_message_races({.store = Order::release, .load = Order::acquire}), 0u);
  EXPECT_EQ(count_message_races({.store = Order::sequential, .load = Order::sequential}), 0u);
  EXPECT_EQ(count_message_races({.fence_before = Order::release, .fence_behind = Order::acquire}), 0u);
  EXPECT_EQ(count_message_races({.load = Order::acquire, .fence_before = Order::acquire_release}), 0u);
  EXPECT_EQ(count_message_races({.store = Order::release, .load = Order::acquire, .adds_again = true}), 0u);
  EXPECT_EQ(count_message_races({.store = Order::release, .load = Order::acquire, .stores_again = true}), 50u);
  EXPECT_EQ(count_message_races({.store = Order::release, .load = Order::acquire, .puts_behind_store = true}), 50u);
  EXPECT_EQ(count_message_races({.load = Order::acquire, .fence_before = Order::release, .puts_behind_fence = true}),
            50u);
  EXPECT_EQ(count_message_races({}), 50u);
  EXPECT_EQ(count_message_races({.store = Order::release}), 50u);
  EXPECT_EQ(count_message_races({.load = Order::acquire}), 50u);
  EXPECT_EQ(count_message_races({.fence_before = Order::release}), 50u);
  EXPECT_EQ(count_message_races({.fence_before = Order::acquire, .fence_behind = Order::release}), 50u);
}

TEST(plain_and_contended_uses_of_a_word_race) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 1});
  std::uint64_t word = 0;
  const auto races = [&](auto one, auto other) {
    return count_errors(&lanes, Kind::interleaved, 20, "data race", [&](std::uint32_t lane) {
      const SimPlatformOf<1> p(&lanes, lane);
      lane == 0 ? one(p) : other(p);
    });
  };
  const auto get = [&](const auto& p) { static_cast<void>(p.get(&word)); };
  const auto put = [&](const auto& p) { p.put(&word, 1); };
  const auto load = [&](const auto& p) { p.load(&word, Order::sequential, kDevice); };
  const auto add = [&](const auto& p) { p.fetch_add(&word, 1, kRelaxed, kDevice); };
  EXPECT_EQ(races(get, get) + races(load, load) + races(get, load) + races(load, add) + races(add, add), 0u);
  EXPECT_EQ(races(put, put), 20u);
  EXPECT_EQ(races(put, get), 20u);
  EXPECT_EQ(races(put, load), 20u);
  EXPECT_EQ(races(put, add), 20u);
  EXPECT_EQ(races(get, add), 20u);
}

TEST(a_ballot_orders_no_memory) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 4});
  std::array<std::uint64_t, 4> data{};
  const std::uint64_t races = count_errors(&lanes, Kind::lockstep, 20, "data race", [&](std::uint32_t lane) {
    const SimPlatform4 p(&lanes, lane);
    p.put(&data[lane], 1);
    p.ballot(true);
    static_cast<void>(p.get(&data[3 - lane]));
  });
  EXPECT_EQ(races, 20u);
}

TEST(a_race_is_found_among_many_data) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 1});
  std::vector<std::uint64_t> data(5000);
  for (const std::size_t racing : {std::size_t{0}, std::size_t{300}, data.size() - 1}) {
    const RunReport report = lanes.run(schedule_of(Kind::sequential, 0), [&](std::uint32_t lane) {
      const SimPlatformOf<1> p(&lanes, lane);
      if (lane == 1) return p.put(&data[racing], 1);
      for (std::uint64_t& datum : data) p.put(&datum, 1);
    });
    EXPECT_EQ(report.status.message(), "data race: lane 1 puts what lane 0 puts, unordered: datum " +
                                           std::to_string(racing) +
                                           " in order of first use, phase 0 between grid barriers");
  }
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

// How many of 50 seeds end, where each lane must once hold a spin lock. `meets`: the lanes of a group stay together, as
// on devices without independent thread scheduling: one that has the lock waits until all have it.
std::uint64_t count_spin_lock_ends(Kind kind, bool meets) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 4});
  std::uint64_t ends = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::uint64_t lock = 0, counter = 0;
    const RunReport report = lanes.run(schedule_of(kind, seed, 2000), [&](std::uint32_t lane) {
      const SimPlatform4 p(&lanes, lane);
      while (p.compare_exchange(&lock, 0, 1, Order::acquire, kDevice) != 0) {
      }
      if (meets) p.group_barrier();
      p.put(&counter, p.get(&counter) + 1);
      p.store(&lock, 0, Order::release, kDevice);
    });
    EXPECT_TRUE(report.status.ok() ? counter == 2 : report.steps > 2000);
    if (report.status.ok()) ++ends;
  }
  return ends;
}

TEST(a_spin_lock_in_a_group) {
  for (const Kind kind : kKinds) {
    EXPECT_EQ(count_spin_lock_ends(kind, false), 50u);
    EXPECT_EQ(count_spin_lock_ends(kind, true), 0u);
  }
}

// How many of 50 seeds end, where two lanes each want two locks, from either side, and give back what they have when
// one is taken.
std::uint64_t count_two_lock_ends(Kind kind) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 4});
  std::uint64_t ends = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::array<std::uint64_t, 2> locks{};
    const RunReport report = lanes.run(schedule_of(kind, seed, 2000), [&](std::uint32_t lane) {
      const SimPlatform4 p(&lanes, lane);
      std::uint64_t* const first = &locks[lane];
      std::uint64_t* const second = &locks[1 - lane];
      for (bool has_both = false; !has_both;) {
        if (p.compare_exchange(first, 0, 1, Order::acquire, kDevice) != 0) continue;
        has_both = p.compare_exchange(second, 0, 1, Order::acquire, kDevice) == 0;
        if (has_both) p.store(second, 0, Order::release, kDevice);
        p.store(first, 0, Order::release, kDevice);
      }
    });
    if (report.status.ok()) ++ends;
  }
  return ends;
}

TEST(lockstep_shows_a_livelock_that_chance_breaks) {
  EXPECT_EQ(count_two_lock_ends(Kind::interleaved), 50u);
  EXPECT_EQ(count_two_lock_ends(Kind::sequential), 50u);
  EXPECT_EQ(count_two_lock_ends(Kind::lockstep), 0u);
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
