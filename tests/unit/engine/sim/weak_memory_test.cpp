// Weak memory of the simulator. There are litmus tests. Each has orders under which an outcome must show in some
// schedule, and orders under which it must show in none. There is also a seqlock, whole and with one order or fence
// taken away.

#include "engine/sim/weak_memory.hpp"

#include <array>
#include <string>
#include <vector>

#include "engine/sim/sim_platform.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

using P = SimPlatformOf<1>;

constexpr Order kRelaxed = Order::relaxed;
constexpr Order kAcquire = Order::acquire;
constexpr Order kRelease = Order::release;
constexpr Order kAcquireRelease = Order::acquire_release;
constexpr Order kSequential = Order::sequential;
constexpr Scope kDevice = Scope::device;
constexpr std::uint64_t kSchedules = 1000;
constexpr std::uint64_t kFoundWithin = 200;  // schedules

Schedule weak_schedule(std::uint64_t seed, double stale_probability = 0.5) {
  Schedule schedule;
  schedule.kind = seed % 4 == 0 ? Schedule::Kind::lockstep : Schedule::Kind::interleaved;
  schedule.seed = seed;
  schedule.steps_max = 20'000;
  schedule.stale_probability = stale_probability;
  return schedule;
}

// Words that lanes contend for, 0 at the start, and what lanes read.
struct Litmus {
  std::array<std::uint64_t, 4> words{};
  std::array<std::uint64_t, 8> read{};
  std::uint64_t* const x = &words[0];
  std::uint64_t* const y = &words[1];
};

// Returns how many of the schedules end with `shows`. Body: (const P&, Litmus&).
template <class Body, class Shows>
std::uint64_t count(std::uint32_t lane_count, std::uint64_t schedules, Body body, Shows shows) {
  Lanes lanes({.blocks = 1, .block_threads = lane_count, .group_width = 1});
  std::uint64_t shown = 0;
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    Litmus litmus;
    const RunReport report = lanes.run(weak_schedule(seed), [&](std::uint32_t lane) {
      const P p(&lanes, lane);
      body(p, litmus);
    });
    if (!report.status.ok()) FAIL("seed " + std::to_string(seed) + " to run: " + report.status.message());
    if (shows(litmus)) ++shown;
  }
  return shown;
}

// A fence of order relaxed is none.
void fence(const P& p, Order order) {
  if (order != kRelaxed) p.fence(order, kDevice);
}

struct Message {
  Order store = kRelaxed, load = kRelaxed;
  Order fence_before = kRelaxed, fence_behind = kRelaxed;
};

// The flag was seen, what was stored before it was not.
std::uint64_t count_lost_messages(const Message& message) {
  return count(
      2, kSchedules,
      [&](const P& p, Litmus& litmus) {
        if (p.thread() == 0) {
          p.store(litmus.x, 1, kRelaxed, kDevice);
          fence(p, message.fence_before);
          p.store(litmus.y, 1, message.store, kDevice);
        } else {
          litmus.read[0] = p.load(litmus.y, message.load, kDevice);
          fence(p, message.fence_behind);
          litmus.read[1] = p.load(litmus.x, kRelaxed, kDevice);
        }
      },
      [](const Litmus& litmus) { return litmus.read[0] == 1 && litmus.read[1] == 0; });
}

TEST(message_passing_needs_both_sides) {
  EXPECT_EQ(count_lost_messages({.store = kRelease, .load = kAcquire}), 0u);
  EXPECT_EQ(count_lost_messages({.store = kSequential, .load = kSequential}), 0u);
  EXPECT_EQ(count_lost_messages({.fence_before = kRelease, .fence_behind = kAcquire}), 0u);
  EXPECT_EQ(count_lost_messages({.fence_before = kSequential, .fence_behind = kSequential}), 0u);
  EXPECT_EQ(count_lost_messages({.store = kRelease, .fence_behind = kAcquire}), 0u);
  EXPECT_EQ(count_lost_messages({.load = kAcquire, .fence_before = kAcquireRelease}), 0u);
  for (const Message& broken :
       {Message{}, Message{.store = kRelease}, Message{.load = kAcquire}, Message{.fence_before = kRelease},
        Message{.fence_behind = kAcquire}, Message{.store = kRelease, .fence_behind = kRelease},
        Message{.load = kAcquire, .fence_before = kAcquire}}) {
    EXPECT_TRUE(count_lost_messages(broken) > kSchedules / 50);
  }
}

TEST(words_of_32_bits_are_words) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 1});
  for (const bool orders : {false, true}) {
    std::uint64_t lost = 0;
    for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
      std::array<std::uint32_t, 2> words = {0xFFFF'FFF0u, 7}, read{};
      const RunReport report = lanes.run(weak_schedule(seed), [&](std::uint32_t lane) {
        const P p(&lanes, lane);
        if (lane == 0) {
          p.store(&words[0], 0xFFFF'FFF1u, kRelaxed, kDevice);
          p.fetch_add(&words[1], 1, orders ? kRelease : kRelaxed, kDevice);
        } else {
          read[1] = p.load(&words[1], kAcquire, kDevice);
          read[0] = p.load(&words[0], kRelaxed, kDevice);
        }
      });
      EXPECT_TRUE(report.status.ok());
      EXPECT_TRUE((read[0] == 0xFFFF'FFF0u || read[0] == 0xFFFF'FFF1u) && (read[1] == 7 || read[1] == 8));
      EXPECT_TRUE(words[0] == 0xFFFF'FFF1u && words[1] == 8);
      if (read[1] == 8 && read[0] == 0xFFFF'FFF0u) ++lost;
    }
    EXPECT_EQ(lost != 0, !orders);
  }
}

struct Buffering {
  Order store = kRelaxed, load = kRelaxed, fence_between = kRelaxed;
  bool exchanges = false;      // in place of a store
  bool changes_third = false;  // both add to a third word, acquire_release, in between
};

// Neither saw what the other had stored before.
std::uint64_t count_buffered_stores(const Buffering& buffering) {
  return count(
      2, kSchedules,
      [&](const P& p, Litmus& litmus) {
        std::uint64_t* const mine = &litmus.words[p.thread()];
        std::uint64_t* const others = &litmus.words[1 - p.thread()];
        if (buffering.exchanges) {
          p.exchange(mine, 1, buffering.store, kDevice);
        } else {
          p.store(mine, 1, buffering.store, kDevice);
        }
        fence(p, buffering.fence_between);
        if (buffering.changes_third) p.fetch_add(&litmus.words[2], 1, kAcquireRelease, kDevice);
        litmus.read[p.thread()] = p.load(others, buffering.load, kDevice);
      },
      [](const Litmus& litmus) { return litmus.read[0] == 0 && litmus.read[1] == 0; });
}

TEST(store_buffering_needs_sequential_order) {
  EXPECT_EQ(count_buffered_stores({.store = kSequential, .load = kSequential}), 0u);
  EXPECT_EQ(count_buffered_stores({.store = kSequential, .load = kSequential, .exchanges = true}), 0u);
  EXPECT_EQ(count_buffered_stores({.fence_between = kSequential}), 0u);
  EXPECT_EQ(count_buffered_stores({.changes_third = true}), 0u);
  for (const Buffering& weak :
       {Buffering{}, Buffering{.store = kRelease, .load = kAcquire}, Buffering{.fence_between = kAcquireRelease},
        Buffering{.store = kSequential}, Buffering{.load = kSequential},
        Buffering{.store = kAcquireRelease, .load = kAcquire, .exchanges = true}}) {
    EXPECT_TRUE(count_buffered_stores(weak) > kSchedules / 50);
  }
}

// Two lanes store, two see the stores in different orders.
std::uint64_t count_split_views(Order store, Order load, Order fence_between) {
  return count(
      4, kSchedules,
      [&](const P& p, Litmus& litmus) {
        if (p.thread() < 2) return p.store(&litmus.words[p.thread()], 1, store, kDevice);
        const std::uint32_t first = p.thread() - 2;
        litmus.read[2 * first] = p.load(&litmus.words[first], load, kDevice);
        fence(p, fence_between);
        litmus.read[2 * first + 1] = p.load(&litmus.words[1 - first], load, kDevice);
      },
      [](const Litmus& litmus) {
        return litmus.read[0] == 1 && litmus.read[1] == 0 && litmus.read[2] == 1 && litmus.read[3] == 0;
      });
}

TEST(independent_stores_need_sequential_order) {
  EXPECT_TRUE(count_split_views(kRelease, kAcquire, kRelaxed) > 0);
  EXPECT_TRUE(count_split_views(kRelease, kAcquire, kAcquireRelease) > 0);
  EXPECT_TRUE(count_split_views(kRelaxed, kRelaxed, kRelaxed) > 0);
  EXPECT_TRUE(count_split_views(kSequential, kAcquire, kRelaxed) > 0);
  EXPECT_EQ(count_split_views(kSequential, kSequential, kRelaxed), 0u);
  EXPECT_EQ(count_split_views(kRelaxed, kSequential, kRelaxed), 0u);
  EXPECT_EQ(count_split_views(kRelaxed, kRelaxed, kSequential), 0u);
}

// What a lane has read, others get with what it releases.
TEST(what_was_read_is_passed_on) {
  for (const Order order : {kRelaxed, kRelease}) {
    const std::uint64_t lost = count(
        3, kSchedules,
        [&](const P& p, Litmus& litmus) {
          if (p.thread() == 0) return p.store(litmus.x, 1, kRelaxed, kDevice);
          if (p.thread() == 1) return p.store(litmus.y, p.load(litmus.x, kRelaxed, kDevice), order, kDevice);
          litmus.read[0] = p.load(litmus.y, kAcquire, kDevice);
          litmus.read[1] = p.load(litmus.x, kRelaxed, kDevice);
        },
        [](const Litmus& litmus) { return litmus.read[0] == 1 && litmus.read[1] == 0; });
    EXPECT_EQ(lost != 0, order == kRelaxed);
  }
}

enum class Follower : std::uint8_t { adds, stores };

std::uint64_t count_broken_sequences(Follower follower, Order order) {
  return count(
      3, kSchedules,
      [&](const P& p, Litmus& litmus) {
        if (p.thread() == 0) {
          p.store(litmus.x, 1, kRelaxed, kDevice);
          p.store(litmus.y, 1, kRelease, kDevice);
        } else if (p.thread() == 1) {
          if (follower == Follower::adds) {
            p.fetch_add(litmus.y, 1, order, kDevice);
          } else if (p.load(litmus.y, kRelaxed, kDevice) == 1) {
            p.store(litmus.y, 2, order, kDevice);
          }
        } else {
          litmus.read[0] = p.load(litmus.y, kAcquire, kDevice);
          litmus.read[1] = p.load(litmus.x, kRelaxed, kDevice);
        }
      },
      [](const Litmus& litmus) { return litmus.read[0] == 2 && litmus.read[1] == 0; });
}

TEST(changes_carry_on_a_release_sequence) {
  EXPECT_EQ(count_broken_sequences(Follower::adds, kRelaxed), 0u);
  EXPECT_EQ(count_broken_sequences(Follower::adds, kAcquireRelease), 0u);
  EXPECT_TRUE(count_broken_sequences(Follower::stores, kRelaxed) > 0);
}

// Values of one word: 1 to 20, by two lanes. Each lane sees them in the order in which they came, one of the last kept.
TEST(no_lane_goes_back) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 1});
  std::uint64_t stale_loads = 0;
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    std::uint64_t word = 0;
    const RunReport report = lanes.run(weak_schedule(seed), [&](std::uint32_t lane) {
      const P p(&lanes, lane);
      std::uint64_t last = 0;
      for (int i = 0; i < 10; ++i) {
        if (lane < 2) last = 1 + p.fetch_add(&word, 1, kRelaxed, kDevice);
        const std::uint64_t read = p.load(&word, kRelaxed, kDevice);
        EXPECT_TRUE(read >= last && read + WeakMemory::kValues > word);
        last = read;
      }
    });
    EXPECT_TRUE(report.status.ok());
    EXPECT_EQ(word, 20u);
    stale_loads += report.stale_loads;
  }
  EXPECT_TRUE(stale_loads > 5 * kSchedules);
}

TEST(barriers_show_everything) {
  Lanes lanes({.blocks = 2, .block_threads = 4, .group_width = 4});
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    std::array<std::uint64_t, 8> words{};
    std::uint64_t datum = 0;
    const RunReport report = lanes.run(weak_schedule(seed), [&](std::uint32_t lane) {
      const SimPlatform4 p(&lanes, lane);
      p.load(&datum, kRelaxed, kDevice);
      for (std::uint64_t phase = 1; phase <= 3; ++phase) {
        p.store(&words[lane], phase, kRelaxed, kDevice);
        p.group_barrier();
        EXPECT_EQ(p.load(&words[lane ^ 1], kRelaxed, kDevice), phase);
        p.grid_barrier();
        for (std::uint64_t& word : words) EXPECT_EQ(p.load(&word, kRelaxed, kDevice), phase);
        if (lane == 3) p.put(&datum, phase);
        p.grid_barrier();
        EXPECT_EQ(p.load(&datum, kRelaxed, kDevice), phase);
        EXPECT_EQ(p.get(&datum), phase);
        p.grid_barrier();
        if (lane == 5) p.store(&datum, 10 + phase, kRelaxed, kDevice);
        EXPECT_EQ(p.load(&datum, kRelaxed, kDevice) % 10, phase);  // from before the put: never
        p.grid_barrier();
      }
    });
    EXPECT_TRUE(report.status.ok());
  }
}

TEST(a_ballot_shows_nothing) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 4});
  std::uint64_t unseen = 0;
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    std::array<std::uint64_t, 4> words{};
    const RunReport report = lanes.run(weak_schedule(seed), [&](std::uint32_t lane) {
      const SimPlatform4 p(&lanes, lane);
      p.store(&words[lane], 1, kRelease, kDevice);
      p.ballot(true);
      if (p.load(&words[lane ^ 1], kAcquire, kDevice) == 0) ++unseen;
    });
    EXPECT_TRUE(report.status.ok());
  }
  EXPECT_TRUE(unseen > kSchedules);
}

TEST(who_waits_gets_the_value) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 1});
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    std::uint64_t turn = 0, lock = 0, counter = 0;
    const RunReport report = lanes.run(weak_schedule(seed, 1), [&](std::uint32_t lane) {
      const P p(&lanes, lane);
      for (std::uint64_t round = 0; round < 3; ++round) {
        while (p.load(&turn, kRelaxed, kDevice) < 4 * round + lane) p.pause();
        p.fetch_add(&turn, 1, kRelaxed, kDevice);
        while (p.compare_exchange(&lock, 0, 1, kAcquire, kDevice) != 0) p.pause();
        p.put(&counter, p.get(&counter) + 1);
        p.store(&lock, 0, kRelease, kDevice);
      }
    });
    if (!report.status.ok()) FAIL("seed " + std::to_string(seed) + " to run: " + report.status.message());
    EXPECT_EQ(counter, 12u);
  }
}

// Lane 0 puts a datum, releases 1, and stores 2, relaxed. Who acquires 1 may get the datum, also late; nobody else.
std::uint64_t count_races_of_reader(std::uint64_t awaited, std::uint64_t* gets, std::uint64_t* late) {
  Lanes lanes({.blocks = 1, .block_threads = 2, .group_width = 1});
  std::uint64_t races = 0;
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    std::uint64_t datum = 0, flag = 0;
    const RunReport report = lanes.run(weak_schedule(seed), [&](std::uint32_t lane) {
      const P p(&lanes, lane);
      if (lane == 0) {
        p.put(&datum, 5);
        p.store(&flag, 1, kRelease, kDevice);
        p.store(&flag, 2, kRelaxed, kDevice);
      } else if (p.load(&flag, kAcquire, kDevice) == awaited) {
        if (flag > awaited) ++*late;
        ++*gets;
        static_cast<void>(p.get(&datum));
      }
    });
    if (!report.status.ok()) ++races;
  }
  return races;
}

TEST(races_are_judged_by_the_value_read) {
  for (const std::uint64_t awaited : {0u, 1u, 2u}) {
    std::uint64_t gets = 0, late = 0;
    const std::uint64_t races = count_races_of_reader(awaited, &gets, &late);
    EXPECT_TRUE(gets > 50 && (awaited == 2 || late > 50));
    EXPECT_EQ(races, awaited == 1 ? 0 : gets);
  }
}

// One writer sets two words to the same value, again and again; two readers read both without a lock.
struct Seqlock {
  bool writer_fence = true, reader_fence = true;
  Order first_load = kAcquire, last_store = kRelease;
};

void run_seqlock(const P& p, const Seqlock& seqlock, Litmus* litmus) {
  std::uint64_t* const lock = &litmus->words[2];
  if (p.thread() == 0) {
    for (std::uint64_t round = 1; round <= 2; ++round) {
      p.store(lock, 2 * round - 1, kRelaxed, kDevice);
      if (seqlock.writer_fence) p.fence(kRelease, kDevice);
      p.store(litmus->x, round, kRelaxed, kDevice);
      p.store(litmus->y, round, kRelaxed, kDevice);
      p.store(lock, 2 * round, seqlock.last_store, kDevice);
    }
    return;
  }
  for (int tries = 0; tries < 4; ++tries) {
    const std::uint64_t before = p.load(lock, seqlock.first_load, kDevice);
    const std::uint64_t x = p.load(litmus->x, kRelaxed, kDevice);
    const std::uint64_t y = p.load(litmus->y, kRelaxed, kDevice);
    if (seqlock.reader_fence) p.fence(kAcquire, kDevice);
    if (before % 2 != 0 || p.load(lock, kRelaxed, kDevice) != before) continue;
    ++litmus->read[0];
    if (x != y || x != before / 2) ++litmus->read[1];
  }
}

std::uint64_t count_torn_reads(const Seqlock& seqlock, std::uint64_t schedules, std::uint64_t* reads) {
  return count(
      3, schedules, [&](const P& p, Litmus& litmus) { run_seqlock(p, seqlock, &litmus); },
      [&](const Litmus& litmus) {
        *reads += litmus.read[0];
        return litmus.read[1] > 0;
      });
}

TEST(a_seqlock_needs_each_of_its_orders) {
  std::uint64_t reads = 0;
  EXPECT_EQ(count_torn_reads({}, 10 * kSchedules, &reads), 0u);
  EXPECT_TRUE(reads > 10 * kSchedules);
  for (const Seqlock& broken : {Seqlock{.writer_fence = false}, Seqlock{.reader_fence = false},
                                Seqlock{.first_load = kRelaxed}, Seqlock{.last_store = kRelaxed}}) {
    EXPECT_TRUE(count_torn_reads(broken, kFoundWithin, &reads) > 0);
  }
}

TEST(a_seed_is_a_run) {
  Lanes lanes({.blocks = 1, .block_threads = 3, .group_width = 1});
  Lanes others({.blocks = 1, .block_threads = 3, .group_width = 1});
  const auto run = [](Lanes* on, const Schedule& schedule, Litmus* litmus) {
    return on->run(schedule, [&](std::uint32_t lane) { run_seqlock(P(on, lane), {}, litmus); });
  };
  std::uint64_t stale_loads = 0;
  for (std::uint64_t seed = 0; seed < kSchedules; ++seed) {
    Litmus first, second, third, strong;
    Schedule schedule = weak_schedule(seed);
    schedule.records_decisions = true;
    const RunReport once = run(&lanes, schedule, &first);
    const RunReport again = run(&others, schedule, &second);
    EXPECT_EQ(once.trace, again.trace);
    EXPECT_EQ(once.stale_loads, again.stale_loads);
    EXPECT_TRUE(first.read == second.read && once.decisions == again.decisions);
    stale_loads += once.stale_loads;

    schedule.kind = Schedule::Kind::replay;
    schedule.decisions = once.decisions;
    const RunReport replay = run(&lanes, schedule, &third);
    EXPECT_EQ(replay.trace, once.trace);
    EXPECT_EQ(replay.steps, once.steps);
    EXPECT_TRUE(replay.decisions == once.decisions && third.read == first.read);

    EXPECT_EQ(run(&lanes, weak_schedule(seed, 0), &strong).stale_loads, 0u);
  }
  EXPECT_TRUE(stale_loads > kSchedules);
}

TEST(a_run_after_another_is_as_new) {
  const GridShape shape{.blocks = 1, .block_threads = 3, .group_width = 1};
  Lanes used(shape);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Litmus before, once, again;
    used.run(weak_schedule(seed), [&](std::uint32_t lane) {
      const P p(&used, lane);
      for (std::size_t i = 0; i < 30; ++i) p.fetch_add(&before.words[i % 3], 1, kAcquireRelease, kDevice);
    });
    Lanes fresh(shape);
    const auto run = [&](Lanes* on, Litmus* litmus) {
      return on->run(weak_schedule(seed), [&](std::uint32_t lane) { run_seqlock(P(on, lane), {}, litmus); });
    };
    EXPECT_EQ(run(&used, &once).trace, run(&fresh, &again).trace);
    EXPECT_TRUE(once.read == again.read);
  }
}

}  // namespace
}  // namespace kilokv::engine
