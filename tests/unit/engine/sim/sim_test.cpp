// The simulator's platform: threads and their groups, blocks and barriers, words and their changes, and locks under
// each kind of schedule.

#include "engine/sim/sim_platform.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "tests/unit/engine/sim/lanes_fixture.hpp"

namespace kilokv::engine {
namespace {

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
        EXPECT_EQ(p.sum(1000 * p.group() + p.lane()), size * 1000u * p.group() + size * (size - 1) / 2);
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
    std::uint64_t min = 50, max = 50, sum = 5;
    std::uint32_t half_sum = 0, winners = 0, lock = 0;
  } words;
  expect_ok(&lanes, Kind::interleaved, 7, [&](std::uint32_t lane) {
    const SimPlatform4 p(&lanes, lane);
    p.fetch_min(&words.min, 49 - lane, kRelaxed, kDevice);
    p.fetch_max(&words.max, 51 + lane, kRelaxed, kDevice);
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
  EXPECT_EQ(words.sum, 11u);
  EXPECT_EQ(words.half_sum, 4u);
  EXPECT_EQ(words.winners, 1u);
  EXPECT_EQ(words.lock, 9u);
}

TEST(probes_are_counted) {
  Lanes lanes({.blocks = 1, .block_threads = 4, .group_width = 4});
  for (std::uint64_t times = 0; times < 3; ++times) {
    const RunReport report = lanes.run(schedule_of(Kind::interleaved, times), [&](std::uint32_t lane) {
      const SimPlatform4 p(&lanes, lane);
      for (std::uint64_t i = 0; i < times; ++i) p.probe(lane % 2);
    });
    EXPECT_EQ(report.probes[0], 2 * times);
    EXPECT_EQ(report.probes[1], 2 * times);
    EXPECT_EQ(report.probes[2], 0u);
  }
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

}  // namespace
}  // namespace kilokv::engine
