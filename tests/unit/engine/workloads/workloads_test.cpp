// The generators: shapes, distributions and determinism. The engine conserves what the generators' transactions
// conserve.

#include "engine/workloads/workload.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/txn/validate.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/workloads/workload_scenario.hpp"

namespace kilokv::engine {
namespace {

constexpr KeyHashSecret kSecret{1, 2};

static_assert(TransactionSink<ColumnsBuilder>);

TransactionColumns generate(Workload* workload, std::size_t transactions) {
  TransactionColumns columns;
  ColumnsBuilder builder(&columns, kSecret);
  workload->generate(&builder, transactions);
  return columns;
}

std::string all_packed(const TransactionColumns& columns) {
  std::string packed;
  for (std::size_t t = 0; t < columns.size(); ++t) packed += pack_transaction(columns, t);
  return packed;
}

std::vector<double> frequencies(std::uint64_t keys, const DistributionOptions& options, std::size_t draws) {
  const KeyDistribution distribution(keys, options);
  Random random(42);
  std::vector<double> counts(keys);
  for (std::size_t i = 0; i < draws; ++i) ++counts.at(distribution.draw(&random));
  for (double& count : counts) count /= static_cast<double>(draws);
  return counts;
}

TEST(uniform_draws_every_key_alike) {
  for (const double frequency : frequencies(50, {}, 500'000)) EXPECT_TRUE(std::abs(frequency - 0.02) < 0.001);
}

TEST(zipf_has_the_frequencies_of_its_definition) {
  constexpr std::uint64_t kKeys = 1000;
  for (const double theta : {0.5, 0.99, 1.0, 1.2}) {
    double sum = 0;
    for (std::uint64_t rank = 1; rank <= kKeys; ++rank) sum += std::pow(static_cast<double>(rank), -theta);
    const std::vector<double> got = frequencies(kKeys, {.theta = theta, .scrambled = false}, 1'000'000);
    for (const std::uint64_t rank : {1, 2, 3, 10, 100}) {
      const double expected = std::pow(static_cast<double>(rank), -theta) / sum;
      const double deviation = std::sqrt(expected / 1e6);
      EXPECT_TRUE(std::abs(got[rank - 1] - expected) < 5 * deviation);
    }
  }
}

TEST(scrambling_moves_ranks_to_different_keys) {
  for (const std::uint64_t keys : {2u, 3u, 10u, 1000u, 4096u}) {
    std::vector<double> plain = frequencies(keys, {.theta = 0.99, .scrambled = false}, 200'000);
    std::vector<double> scrambled = frequencies(keys, {.theta = 0.99, .scrambled = true}, 200'000);
    if (keys > 3) EXPECT_TRUE(plain != scrambled);
    std::sort(plain.begin(), plain.end());
    std::sort(scrambled.begin(), scrambled.end());
    EXPECT_TRUE(plain == scrambled);
  }
}

TEST(distribution_is_parsed_and_printed) {
  for (const char* text : {"uniform", "zipf:0.99", "zipf:1.2", "zipf-ordered:0.5"}) {
    EXPECT_EQ(to_string(*parse_distribution(text)), text);
  }
  for (const char* text : {"", "zipf", "zipf:", "zipf:-1", "zipf:0.9x", "zipf:nan", "pareto"}) {
    EXPECT_TRUE(!parse_distribution(text).ok());
  }
}

TEST(key_names_are_fixed_and_ordered) {
  EXPECT_EQ(std::string(KeyName("acct", 42).view()), "acct000000000042");
  EXPECT_EQ(std::string(KeyName("acct", 987'654'321'012).view()), "acct987654321012");
  EXPECT_TRUE(KeyName("acct", 99).view() < KeyName("acct", 100).view());
}

TEST(same_seed_same_transactions) {
  for (const std::string& name : Workload::names()) {
    Workload first = make(fitting(name, 100, 5)), again = make(fitting(name, 100, 5));
    Workload other = make(fitting(name, 100, 6));
    WorkloadOptions stream = fitting(name, 100, 5);
    stream.stream = 1;
    Workload second_stream = make(stream);
    const std::string packed = all_packed(generate(&first, 200));
    EXPECT_TRUE(packed == all_packed(generate(&again, 200)));
    EXPECT_TRUE(packed != all_packed(generate(&other, 200)));
    EXPECT_TRUE(packed != all_packed(generate(&second_stream, 200)));
  }
}

TEST(everything_generated_is_valid) {
  for (const std::string& name : Workload::names()) {
    Workload workload = make(named(name, 30));
    const TransactionColumns columns = generate(&workload, 5000);
    EXPECT_EQ(columns.size(), std::size_t{5000});
    EXPECT_EQ(validate(columns, TransactionLimits{}).message(), "");
  }
}

TEST(bank_is_as_the_design_defines_it) {
  Workload workload = make(named("bank", 1000));
  const TransactionColumns columns = generate(&workload, 2000);
  std::set<std::int64_t> amounts;
  for (std::size_t t = 0; t < columns.size(); ++t) {
    const std::uint32_t guard = columns.guard_begin(t), op = columns.then_begin(t);
    EXPECT_EQ(columns.guard_end[t] - guard, 1u);
    EXPECT_EQ(columns.then_end[t] - op, 2u);
    EXPECT_EQ(columns.else_end[t], columns.then_end[t]);
    EXPECT_EQ(static_cast<int>(columns.guard_on_false[guard]), static_cast<int>(OnFalse::fail));
    EXPECT_EQ(columns.guard_key[guard], columns.op_key[op]);
    EXPECT_EQ(columns.op_value[op], -columns.op_value[op + 1]);
    EXPECT_EQ(columns.guard_operand[guard], columns.op_value[op + 1]);
    EXPECT_TRUE(columns.key(columns.op_key[op]) != columns.key(columns.op_key[op + 1]));
    EXPECT_EQ(columns.key(columns.op_key[op]).size(), std::size_t{16});
    amounts.insert(columns.op_value[op + 1]);
  }
  EXPECT_EQ(*amounts.begin(), 1);
  EXPECT_EQ(*amounts.rbegin(), 100);
}

TEST(hot_transfers_all_touch_one_account) {
  for (const auto& [name, hot] : {std::pair{"hot", "hott000000000000"}, {"hot-deposits", "hotd000000000000"}}) {
    Workload workload = make(named(name, 1000));
    const TransactionColumns columns = generate(&workload, 500);
    for (std::size_t t = 0; t < columns.size(); ++t) {
      const std::uint32_t op = columns.then_begin(t);
      const bool source_is_hot = columns.key(columns.op_key[op]) == hot;
      const bool target_is_hot = columns.key(columns.op_key[op + 1]) == hot;
      EXPECT_TRUE(source_is_hot != target_is_hot);
    }
  }
}

// So that one database serves them all, one after the other.
TEST(no_two_workloads_share_a_key) {
  std::map<std::string, std::string> owners;
  for (const std::string& name : Workload::names()) {
    make(named(name, 10)).for_each_initial([&](const InitialRecord& record) {
      const auto [owner, fresh] = owners.emplace(std::string(record.key), name);
      EXPECT_TRUE(fresh || owner->second == name);
    });
  }
}

// Signed sum of deposits (+) and withdrawals (-) of each checking account, in order; the lowest it ever was.
struct Checking {
  std::int64_t balance = 0, lowest = 0;
};
std::map<std::string, Checking> follow_pairs(const TransactionColumns& columns) {
  std::map<std::string, Checking> accounts;
  for (std::size_t t = 0; t < columns.size(); ++t) {
    for (std::uint32_t op = columns.then_begin(t); op < columns.then_end[t]; ++op) {
      const std::string key(columns.key(columns.op_key[op]));
      if (!key.starts_with("chck")) continue;
      Checking& account = accounts[key];
      account.balance += columns.op_value[op];
      account.lowest = std::min(account.lowest, account.balance);
    }
  }
  return accounts;
}

TEST(withdrawals_come_before_the_deposits_that_cover_them) {
  for (const std::size_t transactions : {1u, 2u, 7u, 1024u}) {
    WorkloadOptions options = named("bank-semantic", 100'000);
    Workload unsorted = make(options);
    options.semantic.order = PairOrder::deposits_first;
    Workload sorted = make(options);
    std::int64_t lowest = 0;
    for (const auto& [key, account] : follow_pairs(generate(&unsorted, transactions))) {
      EXPECT_EQ(account.balance, 0);
      lowest = std::min(lowest, account.lowest);
    }
    EXPECT_EQ(lowest<0, transactions> 1);
    for (const auto& [key, account] : follow_pairs(generate(&sorted, transactions))) {
      EXPECT_EQ(account.balance, 0);
      EXPECT_EQ(account.lowest, 0);
    }
  }
}

TEST(open_pairs_stay_open_across_calls_when_asked) {
  WorkloadOptions options = named("bank-semantic", 1000);
  options.semantic.across_calls = true;
  options.semantic.wait_lag = 8;
  Workload workload = make(options);
  for (int call = 0; call < 8; ++call) {
    const TransactionColumns columns = generate(&workload, 1);
    EXPECT_TRUE(columns.key(columns.guard_key[0]).starts_with("chck"));  // a withdrawal
  }
  const TransactionColumns ninth = generate(&workload, 1);
  EXPECT_TRUE(ninth.key(ninth.guard_key[0]).starts_with("save"));
  TransactionColumns rest;
  ColumnsBuilder builder(&rest, kSecret);
  workload.close(&builder);
  EXPECT_EQ(rest.size(), std::size_t{7});
  workload.close(&builder);
  EXPECT_EQ(rest.size(), std::size_t{7});
}

// Runs batches under the referee; returns its complaint, or the invariant's.
std::string run_and_check(const WorkloadOptions& options, std::size_t batches) {
  WorkloadScenario scenario(options);
  const std::string complaint = scenario.run(batches);
  return complaint.empty() ? scenario.violation() : complaint;
}

TEST(invariants_hold_on_the_engine) {
  for (const std::string& name : Workload::names()) {
    EXPECT_EQ(run_and_check(fitting(name, 200), 10), "");
    WorkloadOptions skewed = fitting(name, 200);
    skewed.distribution = {.theta = 0.99, .scrambled = true};
    EXPECT_EQ(run_and_check(skewed, 10), "");
  }
  for (const PairOrder order : {PairOrder::precedence, PairOrder::deposits_first}) {
    WorkloadOptions options = named("bank-semantic", 200);
    options.semantic.order = order;
    options.semantic.wait_share = 0.5;
    EXPECT_EQ(run_and_check(options, 10), "");
  }
}

TEST(semantic_pairs_all_commit_within_their_batch) {
  WorkloadScenario scenario(named("bank-semantic", 100'000));
  EXPECT_EQ(scenario.run(1, 1024), "");
  EXPECT_EQ(scenario.count(Outcome::committed), std::size_t{1024});
  EXPECT_EQ(scenario.scenario.results.passes, 2u);
}

TEST(invariant_notices_what_violates_it) {
  Workload bank = make(named("bank", 3));
  InvariantCheck lost = bank.invariant(), negative = bank.invariant(), short_of_one = bank.invariant();
  for (const std::int64_t balance : {1000, 1000, 999}) lost.add("a", ValueType::integer, balance, {});
  EXPECT_EQ(lost.violation(), "total: expected 3000, got 2999");
  for (const std::int64_t balance : {2000, 1001, -1}) negative.add("a", ValueType::integer, balance, {});
  EXPECT_EQ(negative.violation(), "a is -1, below 0");
  for (const std::int64_t balance : {2000, 1000}) short_of_one.add("a", ValueType::integer, balance, {});
  EXPECT_EQ(short_of_one.violation(), "records: expected 3, got 2");

  InvariantCheck rows = make(named("ycsb-a", 2)).invariant();
  rows.add("user000000000000", ValueType::bytes, 0, "user000000000001");
  EXPECT_EQ(rows.violation(), "user000000000000 does not hold 100 bytes of its own");
}

TEST(the_longest_transactions_are_valid) {
  for (const char* const name : {"ycsb-a", "ycsb-e", "ycsb-f", "skiplist", "array-walk"}) {
    const WorkloadKind kind = Workload::kind(name);
    WorkloadOptions options = named(name, std::min<std::uint64_t>(kind.keys_max, 1 << 17));
    options.ycsb.operations = kind.operations_max;
    options.semantic.read_only_share = 1;
    Workload workload = make(options);
    EXPECT_EQ(validate(generate(&workload, 50), TransactionLimits{}).message(), "");
  }
}

// Each in both presets, the smaller one at once, and not beyond what it takes.
TEST(sizes_are_those_that_are_told) {
  EXPECT_EQ(Workload::kinds().size(), Workload::names().size());
  for (const WorkloadKind& kind : Workload::kinds()) {
    EXPECT_TRUE(kind.keys_small <= kind.keys_paper && kind.keys_paper <= kind.keys_max);
    EXPECT_TRUE(Workload::create(named(kind.name, kind.keys_small)).ok());
    EXPECT_EQ(std::string(Workload::kind(kind.name).keys_are), kind.keys_are);
    EXPECT_TRUE(Workload::describe_sizes(false).find(kind.keys_are) != std::string::npos);
  }
}

TEST(wrong_options_are_refused_by_name) {
  EXPECT_EQ(Workload::create(named("tpce", 10)).status().violation()->field, "workload");
  EXPECT_EQ(Workload::create(named("bank", 1)).status().violation()->field, "keys");
  EXPECT_EQ(Workload::create(named("skiplist", 1 << 20)).status().violation()->field, "keys");
  WorkloadOptions options = named("bank-semantic", 10);
  for (double* const share : {&options.semantic.wait_share, &options.semantic.read_only_share,
                              &options.ycsb.update_share, &options.tpcc.payment_share}) {
    const double good = std::exchange(*share, 1.5);
    EXPECT_EQ(Workload::create(options).status().violation()->field, "share");
    *share = good;
  }
  options.tpcc.warehouses = 11;
  EXPECT_EQ(Workload::create(options).status().violation()->field, "warehouses");
  options.tpcc.warehouses = 0;
  options.name = "ycsb-f";
  options.ycsb.operations = 257;
  EXPECT_EQ(Workload::create(options).status().violation()->field, "operations");
}

}  // namespace
}  // namespace kilokv::engine
