// The workloads of KILO TM, GPU-LocalTM and the validator paper: they are what their headers say, and they test what
// they are for.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/workloads/workload_scenario.hpp"

namespace kilokv::engine {
namespace {

TransactionColumns generate(Workload* workload, std::size_t transactions) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, RefereeScenario::kSecret);
  workload->generate(&builder, transactions);
  return columns;
}

std::size_t count_of(const TransactionColumns& columns, std::size_t t, OpKind kind) {
  std::size_t count = 0;
  for (std::uint32_t op = columns.then_begin(t); op < columns.then_end[t]; ++op) {
    count += static_cast<OpKind>(columns.op_kind[op]) == kind ? 1 : 0;
  }
  return count;
}

std::vector<EngineOptions> engines() {
  std::vector<EngineOptions> all;
  for (const std::string& strategy : Engine::strategies()) {
    all.push_back({.strategy = strategy});
    all.back().threads = strategy == "serial" ? 1 : 2;
  }
  return all;
}

TEST(an_insertion_reads_a_word_and_writes_four) {
  Workload workload = make(named("ht-h", 8000));
  const TransactionColumns columns = generate(&workload, 1000);
  for (std::size_t t = 0; t < columns.size(); ++t) {
    EXPECT_EQ(count_of(columns, t, OpKind::get), std::size_t{1});
    EXPECT_EQ(count_of(columns, t, OpKind::put), std::size_t{4});
    EXPECT_EQ(columns.guard_end[t] - columns.guard_begin(t), 0u);
  }
}

// Ten tables, and never the records of more than three; one transaction in 17 gives records up.
TEST(full_hash_tables_are_given_up) {
  for (const EngineOptions& engine : engines()) {
    WorkloadScenario scenario(named("ht-h", 32), engine);
    HashTable table('h', 32, 200, 1);
    for (int batch = 0; batch < 25; ++batch) {
      EXPECT_EQ(scenario.run_batch(&table, 85), "");
      const State state = scenario.state();
      EXPECT_EQ(violation_of(table, state), "");
      EXPECT_TRUE(state.size() <= 3 * (3 * 200 + 200 + 32));
    }
    EXPECT_EQ(scenario.count(Outcome::committed), std::size_t{85});
  }
}

TEST(items_contend_for_the_buckets_that_there_are) {
  for (const std::uint64_t buckets : {2u, 16u, 256u}) {
    WorkloadScenario scenario(named("local-ht", buckets));
    EXPECT_EQ(scenario.run(1, LocalHashTable::kItems), "");
    std::int64_t highest = 0;
    for (const StateRecord& record : scenario.state()) highest = std::max(highest, record.integer);
    EXPECT_EQ(highest, static_cast<std::int64_t>(LocalHashTable::kItems / buckets));
    EXPECT_EQ(scenario.sum_of("lhtc"), static_cast<std::int64_t>(LocalHashTable::kItems));
  }
}

TEST(local_tables_do_not_stay) {
  for (const EngineOptions& engine : engines()) {
    WorkloadScenario scenario(named("local-ht", 4), engine);
    EXPECT_EQ(scenario.run(40, 500), "");  // 78 work-groups
    EXPECT_EQ(scenario.violation(), "");
    EXPECT_TRUE(scenario.state().size() <= (LocalHashTable::kTablesKept + 1) * (LocalHashTable::kItems + 4));
  }
}

TEST(a_work_group_has_256_points_around_its_centers) {
  for (const std::uint64_t centers : {2u, 256u}) {
    WorkloadScenario scenario(named("local-km", centers));
    EXPECT_EQ(scenario.run(1, KMeans::kWorkGroup), "");
    const std::uint64_t sums = KMeans::local(centers).sums();
    std::int64_t points = 0;
    std::size_t used = 0;
    for (const StateRecord& record : scenario.state()) {
      if (KeyName::index_of(record.key) % sums != sums - 1) continue;
      points += record.integer;
      used += record.integer > 0 ? 1 : 0;
    }
    EXPECT_EQ(points, 256);
    EXPECT_EQ(used, static_cast<std::size_t>(centers));
  }
}

TEST(the_best_solution_takes_all_places) {
  for (const EngineOptions& engine : engines()) {
    WorkloadScenario scenario(named("local-ga", 64), engine);
    const State start = scenario.state();
    EXPECT_EQ(scenario.run(4, 500), "");
    EXPECT_TRUE(scenario.count(Outcome::committed) + scenario.count(Outcome::guard_failed) == 500);
    std::int64_t best = start.front().integer;
    for (const StateRecord& record : start) best = std::min(best, record.integer);
    for (const StateRecord& record : scenario.state()) EXPECT_EQ(record.integer, best);
  }
}

TEST(a_shirt_has_4000_constraints) {
  const ClothGrid one{2048}, fifteen{30'720};
  for (const ClothGrid& grid : {one, fifteen}) {
    std::uint64_t constraints = 0;
    for (std::uint64_t i = 0; i < grid.constraints(); ++i) constraints += grid.has(i) ? 1 : 0;
    EXPECT_EQ(constraints, grid.points / 2048 * 4000);
  }
}

TEST(the_cloth_comes_to_its_distances) {
  for (const EngineOptions& engine : engines()) {
    WorkloadScenario scenario(named("cloth", 200), engine);
    const auto strain = [&] {
      std::int64_t sum = 0;
      for (const StateRecord& record : scenario.state()) {
        sum += record.key.starts_with("cler") ? std::abs(record.integer) : 0;
      }
      return sum;
    };
    const std::int64_t before = strain();
    EXPECT_EQ(scenario.run(30, 500), "");
    EXPECT_EQ(scenario.violation(), "");
    EXPECT_TRUE(strain() * 2 < before);
  }
}

TEST(an_octree_isolates_its_bodies) {
  const Octree octree(3000);
  std::vector<std::size_t> bodies_below(octree.cells(), 0);
  std::vector<std::uint32_t> path;
  std::size_t transactions = 0;
  for (std::uint64_t body = 0; body < octree.bodies(); ++body) {
    octree.find_path(body, &path);
    transactions += path.size() + 1;
    EXPECT_EQ(path.front(), 0u);
    EXPECT_TRUE(path.size() <= Octree::kLevels + 1);
    for (const std::uint32_t cell : path) ++bodies_below[cell];
  }
  EXPECT_EQ(bodies_below[0], std::size_t{3000});
  for (const std::size_t below : bodies_below) EXPECT_TRUE(below >= 2);
  EXPECT_TRUE(transactions > 6 * 3000u && transactions < 11 * 3000u);  // the paper: 264106 for 30000
}

// In whatever order the strategy chooses, each body finds the cells above it, and none waits in vain.
TEST(trees_are_built_and_given_up) {
  for (const EngineOptions& engine : engines()) {
    WorkloadScenario scenario(named("barnes-hut", 100), engine);
    const Octree octree(100);
    for (int batch = 0; batch < 12; ++batch) {
      EXPECT_EQ(scenario.run(1, 300), "");
      EXPECT_EQ(scenario.violation(), "");
      EXPECT_EQ(scenario.count(Outcome::wait_expired), std::size_t{0});
      EXPECT_TRUE(scenario.state().size() <= 3 * (octree.bodies() + octree.cells()));
    }
    EXPECT_TRUE(scenario.count(Outcome::committed) > 200);
  }
}

TEST(excess_flows_to_the_sink_and_never_rests) {
  for (const EngineOptions& engine : engines()) {
    WorkloadScenario scenario(named("cuda-cuts", 400), engine);
    const std::int64_t excess = scenario.sum_of("ccex"), sink = scenario.sum_of("ccsi");
    EXPECT_EQ(scenario.run(40, 600), "");
    EXPECT_EQ(scenario.violation(), "");
    EXPECT_EQ(excess - scenario.sum_of("ccex"), sink - scenario.sum_of("ccsi"));
    EXPECT_TRUE(scenario.sum_of("ccsi") * 2 < sink && scenario.sum_of("ccex") > 0);
    EXPECT_TRUE(scenario.count(Outcome::committed) > 50);
  }
}

TEST(baskets_have_six_pairs) {
  Workload workload = make(named("apriori", 1000));
  const TransactionColumns columns = generate(&workload, 5000);
  std::size_t pairs = 0;
  for (std::size_t t = 0; t < columns.size(); ++t) {
    const std::size_t items = count_of(columns, t, OpKind::get);
    EXPECT_EQ(count_of(columns, t, OpKind::add), items * (items - 1) / 2 + 1);
    std::set<std::string_view> keys;
    for (std::uint32_t op = columns.then_begin(t); op < columns.then_end[t]; ++op) {
      EXPECT_TRUE(keys.insert(columns.key(columns.op_key[op])).second);
    }
    pairs += items * (items - 1) / 2;
  }
  EXPECT_TRUE(pairs > 5000 * 5 && pairs < 5000 * 7);
}

TEST(a_walk_is_as_long_as_asked) {
  for (const std::uint32_t operations : {1u, 2u, 100u, ArrayWalk::kOperationsMax}) {
    WorkloadOptions options = named("array-walk", 50);
    options.ycsb.operations = operations;
    WorkloadScenario scenario(options);
    EXPECT_EQ(scenario.run(2, 40), "");
    EXPECT_EQ(scenario.violation(), "");
    const TransactionColumns& columns = scenario.scenario.columns;
    for (std::size_t t = 0; t < columns.size(); ++t) {
      EXPECT_EQ(count_of(columns, t, OpKind::get), static_cast<std::size_t>(std::max(operations, 2u)));
      EXPECT_EQ(count_of(columns, t, OpKind::put), std::size_t{2});
    }
  }
}

TEST(a_library_has_the_sizes_of_stmbench7) {
  const DesignLibrary library(100'000);
  EXPECT_EQ(library.composites, 500u);
  EXPECT_EQ(library.assemblies - library.first_base, 729u);
  EXPECT_EQ(library.first_base, 364u);  // 6 levels of complex assemblies
}

TEST(stmbench7_has_its_shares) {
  for (const double share : {0.1, 0.4, 0.9}) {
    WorkloadOptions options = named("stmbench7", 100'000);
    options.ycsb.update_share = share;
    Workload workload = make(options);
    const TransactionColumns columns = generate(&workload, 5000);
    std::size_t longest = 0, updates = 0;
    for (std::size_t t = 0; t < columns.size(); ++t) {
      const std::size_t gets = count_of(columns, t, OpKind::get);
      longest += gets > 600 ? 1 : 0;
      updates += gets < columns.then_end[t] - columns.then_begin(t) ? 1 : 0;
    }
    EXPECT_TRUE(std::abs(static_cast<double>(longest) - 5000 / 18.0) < 5 * std::sqrt(5000 / 18.0));
    EXPECT_TRUE(std::abs(static_cast<double>(updates) - 5000 * share) < 5 * std::sqrt(5000 * share));
  }
}

}  // namespace
}  // namespace kilokv::engine
