// What `auto` chooses, with costs that the test makes up: the faster strategy at each size, for nearly all batches.

#include "engine/exec/run/strategy_choice.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

// Seconds of a batch of n transactions, `first`: after the other strategy has run.
using Cost = std::function<double(std::size_t n, bool first)>;

struct Runs {
  std::vector<Cost> cost;
  StrategyChoice choice{cost.size()};
  std::size_t last = 0;
  double seconds = 0, best = 0;

  std::size_t run(std::size_t n, Contention contention = Contention::low) {
    const std::size_t strategy = choice.next(n, contention);
    const double took = cost[strategy](n, strategy != last);
    choice.took(strategy, took);
    last = strategy;
    seconds += took;
    double least = took;
    for (const Cost& each : cost) least = std::min(least, each(n, false));
    best += least;
    return strategy;
  }
};

double serial_cost(std::size_t n, bool) { return 0.3e-6 * static_cast<double>(n); }
// Pays for each launch, and for what the other strategy has changed meanwhile.
double device_cost(std::size_t n, bool first) {
  return (first ? 0.3e-3 : 0) + 60e-6 + 0.05e-6 * static_cast<double>(n);
}

TEST(each_size_gets_its_faster_strategy) {
  Runs runs{.cost = {serial_cost, device_cost}};
  std::size_t on_device[2] = {};
  for (int i = 0; i < 40000; ++i) {
    on_device[0] += runs.run(100);
    on_device[1] += runs.run(8192);
  }
  EXPECT_TRUE(on_device[0] < 400);
  EXPECT_TRUE(on_device[1] > 39600);
}

TEST(a_change_of_load_is_followed) {
  Runs runs{.cost = {serial_cost, device_cost}};
  for (const std::size_t n : {8192u, 100u, 8192u}) {
    for (int i = 0; i < 30000; ++i) runs.run(n);
  }
  EXPECT_TRUE(runs.seconds < 1.1 * runs.best);
}

TEST(a_strategy_that_becomes_slower_is_left) {
  bool slow = false;
  Runs runs{.cost = {serial_cost, [&](std::size_t n, bool) { return serial_cost(n, false) * (slow ? 10 : 0.5); }}};
  for (int i = 0; i < 1000; ++i) runs.run(1000);
  EXPECT_EQ(runs.last, 1u);
  slow = true;
  std::size_t times = 0;
  for (int i = 0; i < 1000; ++i) times += runs.run(1000);
  EXPECT_TRUE(times < 50);
}

TEST(one_batch_with_slow_helpers_changes_nothing) {
  StrategyChoice choice;
  std::size_t times = 0;
  for (int batch = 0; batch < 20000; ++batch) {
    const std::size_t strategy = choice.next(1000, Contention::low, 0.3);
    const double helpers = 0.5 * serial_cost(1000, false) * (batch % 500 == 499 ? 100 : 1);
    choice.took(strategy, serial_cost(1000, false) * (strategy == 0 ? 1 : 0.7), strategy == 0 ? 0 : helpers);
    times += strategy;
  }
  EXPECT_TRUE(times > 19000);
}

TEST(one_slow_batch_changes_nothing) {
  int batch = 0;
  Runs runs{.cost = {[&](std::size_t n, bool) { return serial_cost(n, false) * (batch % 500 == 499 ? 100 : 1); },
                     [](std::size_t n, bool) { return 1.5 * serial_cost(n, false); }}};
  std::size_t times = 0;
  for (; batch < 20000; ++batch) times += runs.run(1000);
  EXPECT_TRUE(times < 200);
}

// In every 120 batches the first six take three times as long, whatever runs them.
TEST(slow_spells_of_the_machine_change_little) {
  int batch = 0;
  const auto spell = [&] { return batch % 120 < 6 ? 3.0 : 1.0; };
  Runs runs{.cost = {[&](std::size_t n, bool) { return serial_cost(n, false) * spell(); },
                     [&](std::size_t n, bool) { return 0.7 * serial_cost(n, false) * spell(); }}};
  std::size_t times = 0;
  for (; batch < 20000; ++batch) times += runs.run(1000);
  EXPECT_TRUE(times > 18500);
}

// The strategy at hand becomes slower than what is known of the other one. The other one is tried, not taken.
TEST(a_strategy_is_tried_before_it_is_taken) {
  bool slow = false;
  Runs runs{.cost = {[&](std::size_t n, bool) { return (slow ? 3 : 1) * serial_cost(n, false); },
                     [&](std::size_t n, bool) { return (slow ? 5 : 2) * serial_cost(n, false); }}};
  for (int i = 0; i < 1000; ++i) runs.run(1000);
  while (!runs.choice.reason().tries) runs.run(1000);
  for (int i = 0; i < 8; ++i) runs.run(1000);  // the end of the try, and its check
  slow = true;
  std::size_t times = 0;
  for (int i = 0; i < 1000; ++i) {
    times += runs.run(1000);
    EXPECT_EQ(runs.last == 1, runs.choice.reason().tries);
  }
  EXPECT_TRUE(times >= 4);
  EXPECT_TRUE(times < 30);
}

// Two strategies cost the same, but for some noise, and a change between them is expensive.
TEST(equal_strategies_are_not_tried_all_the_time) {
  std::uint32_t state = 1;
  const auto noise = [&] {
    return 0.95 + 0.1 * (static_cast<double>((state = state * 1664525 + 1013904223) >> 8) / (1 << 24));
  };
  Runs runs{.cost = {[&](std::size_t n, bool first) { return (first ? 5 : noise()) * serial_cost(n, false); },
                     [&](std::size_t n, bool first) { return (first ? 5 : noise()) * serial_cost(n, false); }}};
  for (int i = 0; i < 20000; ++i) runs.run(1000);
  EXPECT_TRUE(runs.seconds < 1.15 * runs.best);
}

// Two strategies cost the same, and take turns in a kind of spells. The third one became much cheaper.
TEST(a_cheap_one_is_found_beside_two_that_change) {
  int batch = 0;
  double third = 3;
  Runs runs{.cost = {[&](std::size_t n, bool) { return (batch / 40 % 2 == 0 ? 1 : 2) * serial_cost(n, false); },
                     [&](std::size_t n, bool) { return (batch / 40 % 2 == 0 ? 2 : 1) * serial_cost(n, false); },
                     [&](std::size_t n, bool) { return third * serial_cost(n, false); }}};
  for (; batch < 5000; ++batch) runs.run(1000);
  third = 0.2;
  for (; batch < 30000; ++batch) runs.run(1000);
  EXPECT_EQ(runs.last, 2u);
}

TEST(a_new_size_begins_with_what_is_known_of_its_neighbour) {
  Runs runs{.cost = {serial_cost, [](std::size_t n, bool) { return 0.5 * serial_cost(n, false); },
                     [](std::size_t n, bool) { return 50 * serial_cost(n, false); }}};
  for (int i = 0; i < 1000; ++i) runs.run(1000);
  EXPECT_EQ(runs.last, 1u);
  for (const std::size_t n : {2000u, 4000u, 500u}) {
    for (int i = 0; i < 16; ++i) EXPECT_EQ(runs.run(n), 1u);
  }
  runs.run(64000);
  EXPECT_EQ(runs.choice.reason().times[1].wall, 0.0);
}

// However long its neighbour has tried nothing.
TEST(a_new_size_is_tried_soon) {
  Runs runs{.cost = {serial_cost, device_cost}};
  for (int i = 0; i < 30000; ++i) runs.run(1000);
  EXPECT_EQ(runs.last, 1u);
  Runs other{.cost = {serial_cost, [](std::size_t n, bool) { return (n < 1024 ? 2 : 0.5) * serial_cost(n, false); }}};
  for (int i = 0; i < 30000; ++i) other.run(1000);
  std::size_t times = 0;
  for (int i = 0; i < 100; ++i) times += other.run(2000);
  EXPECT_TRUE(times > 50);
}

// What helpers cost depends on the load, and so does the choice. What was slow under another load is tried again soon.
TEST(a_change_of_other_work_is_followed) {
  StrategyChoice choice;
  bool is_busy = true;
  const auto run = [&](int batches) {
    std::size_t times = 0;
    for (int i = 0; i < batches; ++i) {
      const std::size_t strategy = choice.next(4096, Contention::low, is_busy ? 0.8 : 0);
      choice.took(strategy,
                  serial_cost(4096, false) * (strategy == 0 ? 1
                                              : is_busy     ? 3
                                                            : 0.7),
                  strategy == 0 ? 0 : serial_cost(4096, false) * 0.6);
      times += strategy;
    }
    return times;
  };
  EXPECT_TRUE(run(30000) < 600);
  is_busy = false;
  EXPECT_TRUE(run(1000) > 900);
}

TEST(small_batches_are_for_the_first) {
  Runs runs{.cost = {serial_cost, [](std::size_t, bool) { return 0.0; }}};
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(runs.run(StrategyChoice::kTransactionsMin - 1), 0u);
}

TEST(each_contention_gets_its_faster_strategy) {
  Contention at_hand = Contention::low;
  Runs runs{.cost = {serial_cost, [&](std::size_t n, bool) {
                       return serial_cost(n, false) * (at_hand == Contention::high ? 4 : 0.5);
                     }}};
  std::size_t in_parallel[2] = {};
  for (int i = 0; i < 20000; ++i) {
    at_hand = i % 2 == 0 ? Contention::low : Contention::high;
    in_parallel[i % 2] += runs.run(4096, at_hand);
  }
  EXPECT_TRUE(in_parallel[0] > 9900);
  EXPECT_TRUE(in_parallel[1] < 100);
}

TEST(of_several_the_fastest_is_found_and_the_others_are_tried_in_turn) {
  std::vector<double> factor = {1, 4, 0.5, 2};
  std::vector<std::size_t> times(4);
  std::vector<Cost> cost;
  for (std::size_t i = 0; i < 4; ++i) {
    cost.push_back([&, i](std::size_t n, bool) { return serial_cost(n, false) * factor[i]; });
  }
  Runs runs{.cost = cost};
  for (int i = 0; i < 100000; ++i) ++times[runs.run(4096)];
  for (const std::size_t slower : {0u, 1u, 3u}) {
    EXPECT_TRUE(times[slower] >= 4);
    EXPECT_TRUE(times[slower] < 300);
  }
  EXPECT_TRUE(runs.seconds < 1.03 * runs.best);
  factor = {1, 0.2, 0.5, 2};
  for (int i = 0; i < 100000; ++i) runs.run(4096);
  EXPECT_EQ(runs.last, 1u);
}

// However slow it is.
TEST(trying_costs_little) {
  for (const double factor : {1.5, 10.0, 200.0, 5000.0}) {
    Runs runs{.cost = {serial_cost, [=](std::size_t n, bool) { return serial_cost(n, false) * factor; }}};
    for (int i = 0; i < 20; ++i) runs.run(512);
    runs.seconds = runs.best = 0;
    for (int i = 0; i < 30000; ++i) runs.run(512);
    EXPECT_TRUE(runs.seconds < 1.06 * runs.best);
  }
}

// Instead of one that has no memory for such batches the first runs them.
TEST(one_that_cannot_is_tried_rarely_and_never_chosen) {
  StrategyChoice choice(3);
  std::size_t asked[StrategyChoice::kStrategiesMax] = {};
  for (int i = 0; i < 20000; ++i) {
    const std::size_t strategy = choice.next(4096, Contention::low);
    ++asked[strategy];
    choice.took(strategy == 2 ? 0 : strategy, serial_cost(4096, false) * (strategy == 1 ? 0.5 : 1));
  }
  EXPECT_TRUE(asked[2] >= 4);
  EXPECT_TRUE(asked[2] < 100);
  EXPECT_TRUE(asked[1] > 19000);
}

// The second strategy takes less time, but more processor time.
TEST(helpers_cost_what_other_work_would_use) {
  StrategyChoice choice;
  const auto run = [&](double busy) {
    std::size_t times = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::size_t strategy = choice.next(4096, Contention::low, busy);
      choice.took(strategy, serial_cost(4096, false) * (strategy == 0 ? 1 : 0.7),
                  serial_cost(4096, false) * (strategy == 0 ? 0 : 0.6));
      times += strategy;
    }
    return times;
  };
  EXPECT_TRUE(run(0) > 900);
  EXPECT_TRUE(run(1) < 100);
  EXPECT_TRUE(run(0.6) < 100);  // 0.7 + 0.36
  EXPECT_TRUE(run(0.3) > 900);  // 0.7 + 0.18
  EXPECT_TRUE(run(0.6) < 100);
  for (int i = 0; i < 10; ++i) run(0.4);  // a small gain and a small change: the next planned try finds it
  EXPECT_TRUE(run(0.4) > 900);            // 0.7 + 0.24
}

TEST(it_says_why) {
  StrategyChoice choice;
  const auto run = [&](double serial, double parallel) {
    const std::size_t strategy = choice.next(5000, Contention::some);
    choice.took(strategy, (strategy == 0 ? serial : parallel) * 5000);
    return choice.reason().text({"serial", "ordered"});
  };
  EXPECT_EQ(run(60e-9, 45e-9),
            "serial: a transaction took serial not timed yet, ordered not timed yet in batches of 4096 to 8191, some "
            "contention");
  std::string text;
  for (int i = 0; i < 10; ++i) text = run(60e-9, 45e-9);
  EXPECT_EQ(text,
            "ordered: a transaction took serial 60 ns, ordered 45 ns in batches of 4096 to 8191, some contention");
  for (int i = 0; i < 40; ++i) {
    const std::size_t strategy = choice.next(5000, Contention::some, 0.25);
    choice.took(strategy, (strategy == 0 ? 60e-9 : 45e-9) * 5000, strategy == 0 ? 0 : 30e-9 * 5000);
  }
  EXPECT_EQ(choice.reason().text({"serial", "ordered"}),
            "ordered: a transaction took serial 60 ns, ordered 45 ns and 30 ns of helpers in batches of 4096 to 8191, "
            "some contention; work waits for a core 25% of the time");
}

}  // namespace
}  // namespace kilokv::engine
