// The workloads of the papers and benchmarks: they are what their headers say, and they test what they are for.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workloads/ordered_bits.hpp"
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

bool is_near(std::size_t count, std::size_t of, double share) {
  const double expected = static_cast<double>(of) * share;
  return std::abs(static_cast<double>(count) - expected) < 5 * std::sqrt(expected) + 1;
}

std::size_t count_of(const TransactionColumns& columns, OpKind kind) {
  std::size_t count = 0;
  for (const std::uint8_t one : columns.op_kind) count += static_cast<OpKind>(one) == kind ? 1 : 0;
  return count;
}

TEST(ordered_bits_are_an_ordered_set) {
  for (const std::uint64_t bound : {2u, 63u, 64u, 65u, 4096u, 4097u, 300'000u}) {
    OrderedBits bits(bound);
    std::set<std::uint64_t> expected;
    Random random(bound);
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t number = random.below(bound);
      if (expected.insert(number).second) {
        bits.insert(number);
      } else {
        bits.erase(number);
        expected.erase(number);
      }
      const std::uint64_t probe = random.below(bound);
      EXPECT_EQ(bits.contains(probe), expected.contains(probe));
      const auto above = expected.upper_bound(probe), not_below = expected.lower_bound(probe);
      if (above != expected.end()) EXPECT_EQ(bits.after(probe), *above);
      if (not_below != expected.begin()) EXPECT_EQ(bits.before(probe), *std::prev(not_below));
    }
  }
}

TEST(read_only_transactions_write_nothing) {
  for (const std::string name : {"bank-semantic", "vacation", "skiplist", "array-walk"}) {
    WorkloadOptions options = named(name, 500);
    options.semantic.read_only_share = 0.2;
    Workload workload = make(options);
    const TransactionColumns columns = generate(&workload, 5000);
    std::size_t read_only = 0;
    for (std::size_t t = 0; t < columns.size(); ++t) {
      const auto* const first = columns.op_kind.data() + columns.then_begin(t);
      const auto* const last = columns.op_kind.data() + columns.then_end[t];
      read_only += std::all_of(first, last, [](std::uint8_t kind) { return static_cast<OpKind>(kind) == OpKind::get; });
    }
    EXPECT_TRUE(is_near(read_only, 5000, 0.2));
  }
}

TEST(bookings_wait_for_cancellations_unless_sorted) {
  for (const PairOrder order : {PairOrder::withdrawals_first, PairOrder::precedence, PairOrder::deposits_first}) {
    WorkloadOptions options = named("vacation", 15'000);
    options.semantic.order = order;
    WorkloadScenario scenario(options);
    EXPECT_EQ(scenario.run(1, 1024), "");
    EXPECT_TRUE(scenario.count(Outcome::committed) >= 1020);
    EXPECT_EQ(scenario.scenario.results.passes > 1, order == PairOrder::withdrawals_first);
  }
}

TEST(nothing_waits_in_a_hotel_without_pairs) {
  WorkloadOptions options = named("vacation", 1500);
  options.semantic.wait_share = 0;
  Workload workload = make(options);
  for (const std::uint8_t on_false : generate(&workload, 1000).guard_on_false) {
    EXPECT_EQ(static_cast<int>(on_false), static_cast<int>(OnFalse::fail));
  }
}

TEST(one_pin_in_a_hundred_is_wrong) {
  WorkloadScenario scenario(named("atm", 100'000));
  EXPECT_EQ(scenario.run(1, 20'000), "");
  EXPECT_TRUE(is_near(scenario.count(Outcome::guard_failed), 20'000, 0.01));
}

TEST(a_true_copy_of_the_list_never_fails_and_a_stale_one_does_no_harm) {
  WorkloadOptions options = named("skiplist", 1000);
  options.semantic.read_only_share = 0.2;
  WorkloadScenario scenario(options);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(scenario.run(1), "");
    EXPECT_EQ(scenario.count(Outcome::committed), std::size_t{512});
  }
  options.seed = 2;
  Workload other = make(options);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(scenario.run_batch(&other, 512), "");
    EXPECT_TRUE(scenario.count(Outcome::wait_expired) > 50);
    EXPECT_EQ(scenario.violation(), "");
    EXPECT_EQ(scenario.run(1), "");
    EXPECT_EQ(scenario.violation(), "");
  }
}

TEST(each_level_of_the_list_has_a_quarter_of_the_one_below) {
  std::vector<std::size_t> reach(Skiplist::kLevels + 1, 0);
  for (std::uint64_t number = 1; number <= 40'000; ++number) {
    for (std::size_t level = 0; level < Skiplist::height_of(number); ++level) ++reach[level];
  }
  for (std::size_t level = 1; level < Skiplist::kLevels; ++level)
    EXPECT_TRUE(is_near(reach[level], reach[level - 1], 0.25));
}

// Wherever a generator begins, it sums each point once in an iteration, to centroids that do not depend on it.
TEST(every_generator_finds_the_same_clusters) {
  const std::uint64_t sums = KMeans::stamp(300).sums();
  State first;
  for (const std::uint64_t seed : {1u, 2u}) {
    WorkloadScenario scenario(named("kmeans", 300, seed));
    EXPECT_EQ(scenario.run(5, 300), "");
    const State state = scenario.state();
    std::int64_t points = 0;
    for (const StateRecord& record : state) {
      if (KeyName::index_of(record.key) % sums == sums - 1) points += record.integer;
    }
    EXPECT_EQ(points, 5 * 300);
    if (first.empty()) first = state;
    for (std::size_t i = 0; i < state.size(); ++i) EXPECT_EQ(state[i].integer, first[i].integer);
  }
}

TEST(the_graph_comes_to_its_minima_and_rests) {
  WorkloadScenario scenario(named("graph", 100));
  int sweeps = 0;
  do {
    EXPECT_EQ(scenario.run(1, 1000), "");
    EXPECT_EQ(scenario.violation(), "");
  } while (scenario.count(Outcome::committed) > 0 && ++sweeps < 50);
  EXPECT_TRUE(sweeps > 1 && sweeps < 50);
  std::set<std::int64_t> values;
  for (const StateRecord& record : scenario.state()) values.insert(record.integer);
  EXPECT_TRUE(values.size() <= 3);  // nearly all vertices lead to each other
}

TEST(orders_are_as_the_standard_says) {
  WorkloadOptions options = named("tpcc", 6000);
  options.tpcc = {.warehouses = 2, .payment_share = 0};
  WorkloadScenario scenario(options);
  EXPECT_EQ(scenario.run(1, 10'000), "");
  EXPECT_TRUE(is_near(scenario.count(Outcome::guard_failed), 10'000, 0.01));
  EXPECT_EQ(scenario.count(Outcome::committed) + scenario.count(Outcome::guard_failed), std::size_t{10'000});

  const TransactionColumns& columns = scenario.scenario.columns;
  const std::uint64_t items = TpccScale(6000, 2).items;
  std::vector<std::size_t> of_length(16, 0);
  std::size_t lines = 0, remote = 0;
  for (std::size_t t = 0; t < columns.size(); ++t) {
    std::set<std::string_view> prices;
    for (std::uint32_t g = columns.guard_begin(t) + 1; g < columns.guard_end[t]; ++g) {
      prices.insert(columns.key(columns.guard_key[g]));
    }
    ++of_length.at(prices.size());
    const std::uint32_t first = columns.then_begin(t);
    const std::uint64_t home = KeyName::index_of(columns.key(columns.op_key[first])) / TpccScale::kDistricts;
    for (std::uint32_t op = first + 3; op < columns.then_end[t]; op += 2, ++lines) {
      const std::string_view stock = columns.key(columns.op_key[op]);
      EXPECT_TRUE(stock.starts_with("tpst") && columns.op_value[op] >= 1 && columns.op_value[op] <= 10);
      remote += KeyName::index_of(stock) / items != home ? 1 : 0;
    }
  }
  for (std::size_t length = 0; length < 5; ++length) EXPECT_EQ(of_length[length], std::size_t{0});
  for (std::size_t length = 5; length < 16; ++length) EXPECT_TRUE(is_near(of_length[length], 10'000, 1.0 / 11));
  EXPECT_TRUE(is_near(remote, lines, 0.01 + 0.01 / 11));  // an item that does not exist reads as the other warehouse's
}

TEST(payments_are_as_the_standard_says) {
  WorkloadOptions options = named("tpcc", 6000);
  options.tpcc = {.warehouses = 2, .payment_share = 1};
  WorkloadScenario scenario(options);
  EXPECT_EQ(scenario.run(1, 10'000), "");
  EXPECT_EQ(scenario.count(Outcome::committed), std::size_t{10'000});
  const TransactionColumns& columns = scenario.scenario.columns;
  std::size_t remote = 0;
  for (std::size_t t = 0; t < columns.size(); ++t) {
    const std::uint32_t op = columns.then_begin(t);
    const std::uint64_t home = KeyName::index_of(columns.key(columns.op_key[op]));
    remote += KeyName::index_of(columns.key(columns.op_key[op + 2])) / 3000 != home ? 1 : 0;
  }
  EXPECT_TRUE(is_near(remote, 10'000, 0.15));
}

TEST(tpcc_is_cut_in_proportion) {
  const TpccScale full(300'000, 0), one(30, 0), asked(500, 2);
  EXPECT_EQ(full.warehouses, 10u);
  EXPECT_EQ(full.customers_of_district, 3000u);
  EXPECT_EQ(full.items, 100'000u);
  EXPECT_EQ(one.warehouses, 1u);
  EXPECT_EQ(one.customers(), 30u);
  EXPECT_EQ(one.items, 100u);
  EXPECT_EQ(asked.customers(), 500u);
}

TEST(ycsb_has_the_shares_of_its_letters) {
  struct Shares {
    const char* name;
    OpKind written, read;
    double write_share;
  };
  for (const Shares& shares :
       {Shares{"ycsb-a", OpKind::put, OpKind::get, 0.5}, Shares{"ycsb-b", OpKind::put, OpKind::get, 0.05},
        Shares{"ycsb-c", OpKind::put, OpKind::get, 0}, Shares{"ycsb-d", OpKind::put, OpKind::get, 0.05},
        Shares{"ycsb-e", OpKind::put, OpKind::range_get, 0.05}}) {
    WorkloadOptions options = named(shares.name, 1000);
    options.ycsb.operations = 4;
    Workload workload = make(options);
    const TransactionColumns columns = generate(&workload, 5000);
    EXPECT_TRUE(is_near(count_of(columns, shares.written), 20'000, shares.write_share));
    EXPECT_EQ(count_of(columns, shares.written) + count_of(columns, shares.read), std::size_t{20'000});
  }
  Workload f = make(named("ycsb-f", 1000));
  const TransactionColumns columns = generate(&f, 5000);
  EXPECT_EQ(count_of(columns, OpKind::get), std::size_t{10'000});
  EXPECT_TRUE(is_near(count_of(columns, OpKind::add) / 2, 5000, 0.5));
}

// The row that came last is read most, and the first one of all hardly ever.
TEST(ycsb_d_reads_the_latest_rows) {
  Workload workload = make(named("ycsb-d", 1000));
  const TransactionColumns columns = generate(&workload, 20'000);
  std::map<std::string, std::size_t> age_of;  // numbers of rows, by their key; the larger the later
  std::size_t rows = 1000, latest = 0, reads = 0, of_inserted = 0;
  for (std::size_t t = 0; t < columns.size(); ++t) {
    const std::uint32_t op = columns.then_begin(t);
    const std::string key(columns.key(columns.op_key[op]));
    if (static_cast<OpKind>(columns.op_kind[op]) == OpKind::put) {
      age_of[key] = rows++;
      continue;
    }
    ++reads;
    const auto inserted = age_of.find(key);
    const std::uint64_t number = inserted == age_of.end() ? KeyName::index_of(key) : inserted->second;
    ASSERT_TRUE(number < rows);  // nothing that has not been inserted
    of_inserted += inserted != age_of.end() ? 1 : 0;
    latest += number == rows - 1 ? 1 : 0;
  }
  EXPECT_TRUE(latest * 10 > reads && latest * 5 < reads);  // 1 / (the sum of i^-0.99, i from 1 to 1000) is 0.13
  EXPECT_TRUE(of_inserted * 2 > reads);
}

TEST(ycsb_e_finds_rows_and_those_that_it_inserted) {
  WorkloadScenario scenario(named("ycsb-e", 2000));
  EXPECT_EQ(scenario.run(2, 1000), "");
  EXPECT_EQ(scenario.count(Outcome::committed), std::size_t{1000});
  const std::size_t pairs = scenario.scenario.results.pair_cell.size();
  EXPECT_TRUE(pairs > 950 * 45 && pairs < 950 * 56);  // 1 to 100 of each scan
  EXPECT_TRUE(scenario.state().size() > 2050);
}

}  // namespace
}  // namespace kilokv::engine
