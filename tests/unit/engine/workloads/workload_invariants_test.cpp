// Every workload's invariant. It holds after batches on each strategy. It complains about any record that is lost,
// changed, or of another type.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/workloads/workload_scenario.hpp"

namespace kilokv::engine {
namespace {

// Small enough that records meet; the graph converges, the clusters begin again, and the hotel has four types.
WorkloadOptions small(const std::string& name) {
  WorkloadOptions options = fitting(name, 500);
  options.semantic.read_only_share = 0.2;
  options.semantic.wait_share = 0.8;
  options.tpcc.warehouses = 2;
  return options;
}

// mixed alone leaves what its records hold to the referee.
std::vector<std::string> with_values() {
  std::vector<std::string> names;
  for (const std::string& name : Workload::names()) {
    if (name != "mixed") names.push_back(name);
  }
  return names;
}

TEST(invariants_hold_on_every_strategy) {
  for (const std::string& strategy : Engine::strategies()) {
    EngineOptions engine{.strategy = strategy};
    engine.threads = strategy == "serial" ? 1 : 2;
    for (const std::string& name : Workload::names()) {
      for (const double theta : {0.0, 0.99}) {
        WorkloadOptions options = small(name);
        options.distribution.theta = theta;
        WorkloadScenario scenario(options, engine);
        EXPECT_EQ(name + scenario.run(4), name);
        EXPECT_EQ(name + scenario.violation(), name);
      }
    }
  }
}

// Rows that were inserted into YCSB's d and e are nothing that could be missed.
bool may_go(const std::string& name, const StateRecord& record) {
  const char* const prefix = Workload::kind(name).growing;
  return *prefix != 0 && record.key.starts_with(prefix) && KeyName::index_of(record.key) >= 500;
}

// Has `falsify` change one record after another, each alone, and complains where the invariant does not.
template <class Falsify>
void expect_noticed(const std::string& name, const char* what, const Falsify& falsify) {
  WorkloadScenario scenario(small(name));
  ASSERT_EQ(scenario.run(4), "");
  State state = scenario.state();
  ASSERT_EQ(violation_of(scenario.workload, state), "");
  const std::size_t step = (state.size() / 150) | 1u;
  for (std::size_t i = 0; i < state.size(); i += step) {
    const StateRecord good = state[i];
    falsify(&state[i]);
    if (violation_of(scenario.workload, state).empty())
      FAIL(name + ": " + what + " of " + good.key + " is not noticed");
    state[i] = good;
  }
}

TEST(a_lost_record_is_noticed) {
  for (const std::string& name : with_values()) {
    expect_noticed(name, "the loss", [&](StateRecord* record) {
      // What may go is of another type instead.
      record->type = may_go(name, *record) ? ValueType::integer : ValueType::absent;
    });
  }
}

TEST(a_lost_update_is_noticed) {
  for (const std::string& name : with_values()) {
    expect_noticed(name, "a change", [](StateRecord* record) {
      if (record->type == ValueType::bytes) {
        record->bytes[3] ^= 1;
      } else {
        ++record->integer;
      }
    });
  }
}

TEST(another_type_is_noticed) {
  for (const std::string& name : with_values()) {
    expect_noticed(name, "the type", [](StateRecord* record) {
      record->type = record->type == ValueType::bytes ? ValueType::integer : ValueType::bytes;
    });
  }
}

// What no total shows.
TEST(a_room_that_changes_its_type_is_noticed) {
  WorkloadScenario scenario(named("vacation", 300));
  State state = scenario.state();
  --find(&state, KeyName("vaus", 0))->integer;
  ++find(&state, KeyName("vaus", 100))->integer;
  EXPECT_EQ(scenario.violation(), "");
  EXPECT_EQ(violation_of(scenario.workload, state), "rooms of type 0: expected 150 free or used, got 149");
}

TEST(a_pin_that_a_balance_makes_up_for_is_noticed) {
  WorkloadScenario scenario(named("atm", 10));
  State state = scenario.state();
  --find(&state, KeyName("atmp", 3))->integer;
  ++find(&state, KeyName("atmb", 3))->integer;
  EXPECT_EQ(violation_of(scenario.workload, state), "atmp000000000003 is not the PIN that it was");
}

TEST(a_list_with_a_level_too_many_or_out_of_order_is_noticed) {
  WorkloadScenario scenario(named("skiplist", 10));
  std::uint64_t low = 2;  // of the lowest height
  while (Skiplist::height_of(low) != 1) low += 2;
  State state = scenario.state();
  StateRecord* before = nullptr;
  for (StateRecord& record : state) {
    if (record.key.starts_with("skl1") && KeyName::index_of(record.key) < low) before = &record;
  }
  const std::int64_t next = std::exchange(before->integer, static_cast<std::int64_t>(low));
  state.push_back({std::string(Skiplist::node(1, low).view()), ValueType::integer, next, {}});
  EXPECT_EQ(violation_of(scenario.workload, state),
            "level 1: it has other numbers than those that reach it from below");

  state = scenario.state();
  std::swap(find(&state, Skiplist::node(0, 2))->integer, find(&state, Skiplist::node(0, 4))->integer);
  EXPECT_EQ(violation_of(scenario.workload, state), "level 0: 2 leads to 6 instead of 4");
}

TEST(a_label_from_nowhere_is_noticed) {
  WorkloadScenario scenario(named("graph", 50));
  const RandomGraph graph{50};
  std::uint64_t least = 0;
  for (std::uint64_t vertex = 1; vertex < 50; ++vertex)
    least = graph.label(vertex) < graph.label(least) ? vertex : least;
  std::set<std::uint64_t> near{least};
  for (std::uint64_t edge = 0; edge < graph.edges(); ++edge) {
    if (RandomGraph::source(edge) == least) near.insert(graph.target(edge));
  }
  std::uint64_t far = 0;
  while (near.contains(far)) ++far;
  // It may have this label in the end, but not before one that leads to it.
  State state = scenario.state();
  find(&state, KeyName("vert", far))->integer = graph.label(least);
  EXPECT_TRUE(violation_of(scenario.workload, state).ends_with("and no predecessor has as little"));
}

TEST(tpcc_tells_which_book_is_wrong) {
  const std::pair<const char*, const char*> books[] = {{"tpwy", "W_YTD less the D_YTD of warehouse 0 is 1"},
                                                       {"tpdy", "W_YTD less the D_YTD of warehouse 0 is -1"},
                                                       {"tpdn", "D_NEXT_O_ID less the orders of district 0 is 1"},
                                                       {"tpcb", "C_BALANCE plus C_YTD_PAYMENT of customer 0 is 1"},
                                                       {"tpst", "S_YTD less the order lines of item 0 is 1"},
                                                       {"tpcn", "C_PAYMENT_CNT less history is 1"},
                                                       {"tpit", "item 0 is not the price that it was"}};
  WorkloadScenario scenario(named("tpcc", 500));
  EXPECT_EQ(scenario.run(2), "");
  for (const auto& [prefix, complaint] : books) {
    State state = scenario.state();
    ++find(&state, KeyName(prefix, 0))->integer;
    EXPECT_EQ(violation_of(scenario.workload, state), complaint);
  }
}

}  // namespace
}  // namespace kilokv::engine
