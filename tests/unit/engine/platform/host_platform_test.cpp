// The platform of host threads: barriers separate phases, and no change of a contended word is lost. The test is worth
// most under the thread sanitizer, because data between barriers are plain.

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <vector>

#include "engine/platform/host.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr std::array<std::uint32_t, 3> kTeamSizes = {1, 2, 8};
constexpr Order kRelaxed = Order::relaxed;
constexpr Scope kDevice = Scope::device;

// Runs body(platform) on every thread.
template <class Body>
void run_on(ThreadTeam* team, const Body& body) {
  std::vector<std::uint64_t> shared(std::size_t{team->size()} * HostPlatform::kSharedWords);
  team->run([&](std::uint32_t thread) {
    body(HostPlatform(team, thread, shared.data() + std::size_t{thread} * HostPlatform::kSharedWords));
  });
}

TEST(every_thread_runs_once_a_launch) {
  for (const std::uint32_t size : kTeamSizes) {
    ThreadTeam team(size);
    std::vector<std::uint64_t> runs(size);
    for (std::uint64_t launch = 1; launch <= 200; ++launch) {
      run_on(&team, [&](const HostPlatform& p) {
        p.put(&runs[p.thread()], p.get(&runs[p.thread()]) + 1);
        EXPECT_EQ(p.threads(), size);
      });
      for (const std::uint64_t count : runs) EXPECT_EQ(count, launch);
    }
  }
}

// A thread that comes runs the body once, and has left it when the launch returns. Nobody waits for a thread that has
// not come: so of the many launches that end at once, some end without their helpers.
TEST(a_launch_beside_the_caller_needs_nobody) {
  for (const std::uint32_t size : kTeamSizes) {
    ThreadTeam team(size);
    std::vector<std::uint64_t> runs(size);
    std::uint64_t helped = 0;
    for (std::uint64_t launch = 0; launch < 2000; ++launch) {
      std::fill(runs.begin(), runs.end(), 0);
      const bool waits = launch % 4 == 0;  // until a helper has come
      std::atomic<std::uint32_t> came{0};
      team.run_beside([&](std::uint32_t thread) {
        ++runs[thread];
        if (thread == 0) {
          if (waits && size > 1) team.wait(came, 0);
        } else {
          came.fetch_add(1);
          came.notify_all();
        }
      });
      EXPECT_EQ(runs[0], 1u);
      std::uint64_t helpers = 0;
      for (std::uint32_t thread = 1; thread < size; ++thread) {
        EXPECT_TRUE(runs[thread] <= 1);
        helpers += runs[thread];
      }
      EXPECT_EQ(helpers, std::uint64_t{came.load()});
      EXPECT_TRUE(!waits || size == 1 || helpers > 0);
      helped += helpers;
      if (launch % 100 == 99) {  // both kinds of launches take turns; threads may still come for the last one
        std::fill(runs.begin(), runs.end(), 0);
        team.run([&](std::uint32_t thread) { ++runs[thread]; });
        for (const std::uint64_t count : runs) EXPECT_EQ(count, 1u);
      }
    }
    EXPECT_TRUE(size == 1 ? helped == 0 : helped >= 500);
    EXPECT_TRUE(size < 8 || helped < 2000 * (size - 1));
  }
}

// Also for a thread that is just about to come for a launch that has ended.
TEST(a_team_ends_whenever_it_likes) {
  for (int i = 0; i < 3000; ++i) {
    ThreadTeam team(2);
    for (int launch = 0; launch < i % 4; ++launch) team.run_beside([](std::uint32_t) {});
  }
}

TEST(a_thread_is_a_group_and_a_block) {
  ThreadTeam team(8);
  std::array<std::uint32_t, 8> wrong{};
  run_on(&team, [&](const HostPlatform& p) {
    std::uint32_t& mine = wrong[p.thread()];
    mine += p.lane() != 0 || p.group() != p.thread() || p.block() != p.thread();
    mine += p.block_thread() != 0 || p.block_threads() != 1;
    mine += p.ballot(true) != 1 || p.ballot(false) != 0 || p.match(7) != 1 || p.broadcast(7, 0) != 7 || p.sum(7) != 7;
    p.put(p.shared() + HostPlatform::kSharedWords - 1, p.thread());
    p.block_barrier();
    p.grid_barrier();
    mine += p.get(p.shared() + HostPlatform::kSharedWords - 1) != p.thread();
  });
  EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), 0u), 0u);
}

// What every thread puts in one phase every thread gets in the next.
TEST(barriers_separate_phases) {
  for (const std::uint32_t size : kTeamSizes) {
    ThreadTeam team(size);
    std::vector<std::uint64_t> data(size), wrong(size);
    run_on(&team, [&](const HostPlatform& p) {
      for (std::uint64_t phase = 1; phase <= 300; ++phase) {
        p.put(&data[p.thread()], phase * size + p.thread());
        p.grid_barrier();
        for (std::uint32_t thread = 0; thread < size; ++thread) {
          if (p.get(&data[thread]) != phase * size + thread) ++wrong[p.thread()];
        }
        p.grid_barrier();
      }
    });
    EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), std::uint64_t{0}), 0u);
  }
}

// Threads change the same words in step, so that they do meet there.
template <class Word>
void expect_changes_add_up(std::uint32_t size, Order order) {
  constexpr Word kRounds = 4000, kRoundsTogether = 500, kTightRounds = 200'000, kHigh = 1'000'000;
  ThreadTeam team(size);
  struct {
    Word sum = 0, exchanged = 0, compared = 0, min = kHigh, max = 0;
  } words;
  std::vector<Word> bits(kRounds), taken(size), wrong(size);
  run_on(&team, [&](const HostPlatform& p) {
    const auto thread = static_cast<Word>(p.thread());
    Word mine = 0, min_seen = kHigh, max_seen = 0;
    for (Word i = 0; i < kRounds; ++i) {
      if (i % kRoundsTogether == 0) p.grid_barrier();
      for (Word old = p.load(&words.compared, kRelaxed, kDevice);;) {
        const Word met = p.compare_exchange(&words.compared, old, old + 1, order, kDevice);
        if (met == old) break;
        old = met;
      }
      p.fetch_add(&bits[i], Word{1} << thread, order, kDevice);
      // Never back up, or down: then a change was lost, though a later one may hide it.
      const Word min = p.fetch_min(&words.min, kHigh - 1 - (i * size + thread), order, kDevice);
      const Word max = p.fetch_max(&words.max, i * size + thread, order, kDevice);
      if (min > min_seen || max < max_seen) ++wrong[p.thread()];
      min_seen = std::min(min, kHigh - 1 - (i * size + thread));
      max_seen = std::max(max, i * size + thread);
    }
    p.grid_barrier();
    for (Word i = 0; i < kTightRounds; ++i) p.fetch_add(&words.sum, 1, order, kDevice);
    p.grid_barrier();
    for (Word i = 0; i < kTightRounds; ++i) {
      mine += p.exchange(&words.exchanged, i * size + thread, order, kDevice);
    }
    taken[p.thread()] = mine;
  });
  Word given = 0;
  for (Word i = 0; i < kTightRounds * size; ++i) given += i;
  const auto last = static_cast<Word>(kRounds * size - 1);
  EXPECT_EQ(words.sum, kTightRounds * size);
  EXPECT_EQ(words.compared, kRounds * size);
  // All that were given were taken, but for the one that stays.
  EXPECT_EQ(words.exchanged + std::accumulate(taken.begin(), taken.end(), Word{0}), given);
  EXPECT_EQ(words.min, kHigh - 1 - last);
  EXPECT_EQ(words.max, last);
  EXPECT_EQ(std::count(bits.begin(), bits.end(), (Word{1} << size) - 1), static_cast<std::ptrdiff_t>(kRounds));
  EXPECT_EQ(std::accumulate(wrong.begin(), wrong.end(), Word{0}), Word{0});
}

TEST(contended_words_lose_nothing) {
  for (const std::uint32_t size : kTeamSizes) {
    for (const Order order : {Order::relaxed, Order::release, Order::acquire_release, Order::sequential}) {
      expect_changes_add_up<std::uint64_t>(size, order);
      expect_changes_add_up<std::uint32_t>(size, order);
    }
  }
}

TEST(changes_return_what_was_there) {
  ThreadTeam team(1);
  std::uint64_t word = 5;
  run_on(&team, [&](const HostPlatform& p) {
    EXPECT_EQ(p.fetch_min(&word, 7, kRelaxed, kDevice), 5u);
    EXPECT_EQ(p.fetch_min(&word, 3, kRelaxed, kDevice), 5u);
    EXPECT_EQ(p.fetch_max(&word, 2, kRelaxed, kDevice), 3u);
    EXPECT_EQ(p.fetch_max(&word, 8, kRelaxed, kDevice), 3u);
    EXPECT_EQ(p.fetch_add(&word, 2, kRelaxed, kDevice), 8u);
    EXPECT_EQ(p.compare_exchange(&word, 9, 1, kRelaxed, kDevice), 10u);
    EXPECT_EQ(p.compare_exchange(&word, 10, 1, kRelaxed, kDevice), 10u);
    EXPECT_EQ(p.exchange(&word, 4, kRelaxed, kDevice), 1u);
    p.store(&word, 6, Order::release, kDevice);
    EXPECT_EQ(p.load(&word, Order::acquire, kDevice), 6u);
  });
}

// A lock of release and acquire orders what is plain.
TEST(release_and_acquire_order_data) {
  for (const std::uint32_t size : kTeamSizes) {
    ThreadTeam team(size);
    std::uint64_t lock = 0, counter = 0;
    run_on(&team, [&](const HostPlatform& p) {
      for (int i = 0; i < 200; ++i) {
        while (p.compare_exchange(&lock, 0, 1, Order::acquire, kDevice) != 0) std::this_thread::yield();
        p.put(&counter, p.get(&counter) + 1);
        p.store(&lock, 0, Order::release, kDevice);
      }
    });
    EXPECT_EQ(counter, 200u * size);
  }
}

}  // namespace
}  // namespace kilokv::engine
