// Data races: each race is found in every schedule in which both accesses happen. Accesses that are ordered are no
// race.

#include "engine/sim/race_detector.hpp"

#include <array>
#include <string>
#include <vector>

#include "engine/sim/sim_platform.hpp"
#include "tests/unit/engine/sim/lanes_fixture.hpp"

namespace kilokv::engine {
namespace {

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

}  // namespace
}  // namespace kilokv::engine
