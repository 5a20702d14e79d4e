// The workloads of KILO TM, GPU-LocalTM and the validator paper: their invariants notice what a broken transaction
// leaves, where no single record shows it.

#include <string>
#include <string_view>
#include <utility>

#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/workloads/workload_scenario.hpp"

namespace kilokv::engine {
namespace {

// A state after two batches, to falsify.
struct Played {
  WorkloadScenario scenario;
  State state;

  Played(const std::string& name, std::uint64_t keys, std::size_t transactions) : scenario(named(name, keys)) {
    EXPECT_EQ(scenario.run(2, transactions), "");
    EXPECT_EQ(scenario.violation(), "");
    state = scenario.state();
  }
  StateRecord* record(std::string_view prefix, std::uint64_t index) {
    StateRecord* const found = find(&state, KeyName(prefix, index));
    KILOKV_CHECK(found != nullptr);
    return found;
  }
  std::int64_t& at(std::string_view prefix, std::uint64_t index) { return record(prefix, index)->integer; }
  void lose(std::string_view prefix, std::uint64_t index) { record(prefix, index)->type = ValueType::absent; }
  std::string violation() const { return violation_of(scenario.workload, state); }
};

TEST(a_list_that_lost_an_insertion_is_noticed) {
  Played played("ht-h", 4, 50);
  // Two insertions read the same head: the later one wrote over the other's.
  for (std::uint64_t element = 99; element-- > 0;) {
    StateRecord* const next = find(&played.state, KeyName("hthn", element));
    if (next == nullptr) continue;
    StateRecord* const skipped = find(&played.state, KeyName("hthn", static_cast<std::uint64_t>(next->integer)));
    if (skipped == nullptr) continue;
    next->integer = skipped->integer;
    break;
  }
  EXPECT_EQ(played.violation(), "elements in lists: expected 100, got 99");
}

TEST(lists_that_change_their_entries_are_noticed) {
  Played played("ht-l", 4, 50);
  std::swap(played.at("htle", 0), played.at("htle", 1));
  EXPECT_EQ(played.violation(), "the list of entry 0 has an element of another one");
  std::swap(played.at("htle", 0), played.at("htle", 1));
  EXPECT_EQ(played.violation(), "");
  for (const char* const prefix : {"htlk", "htlv"}) played.lose(prefix, 99);
  for (std::uint64_t entry = 0; entry < 4; ++entry) {
    if (played.at("htle", entry) == 99) played.at("htle", entry) = played.at("htln", 99);
  }
  played.lose("htln", 99);
  EXPECT_EQ(played.violation(), "");  // as if it had never been
  for (const char* const prefix : {"htlk", "htlv"}) played.lose(prefix, 50);
  EXPECT_EQ(played.violation(), "element 50 is not whole");
}

TEST(two_items_in_one_location_are_noticed) {
  Played played("local-ht", 4, 128);
  played.at("lhtp", 4) = played.at("lhtp", 8);
  EXPECT_EQ(played.violation(), "table 0 has two items in one location, 8");
}

TEST(an_item_beyond_its_bucket_is_noticed) {
  Played played("local-ht", 4, 128);
  played.at("lhtp", 4) = 65;
  EXPECT_EQ(played.violation(), "table 0 has no location for item 4");
}

TEST(a_solution_that_is_lost_or_worse_is_noticed) {
  Played played("local-ga", 8, 1);
  std::uint64_t best = 0, worst = 0;
  for (std::uint64_t place = 1; place < 8; ++place) {
    best = Genetic::initial(place) < Genetic::initial(best) ? place : best;
    worst = Genetic::initial(place) > Genetic::initial(worst) ? place : worst;
  }
  const State good = played.state;
  played.at("lgas", best) = Genetic::initial(worst);
  EXPECT_EQ(played.violation(), "solution " + std::to_string(best) + " has become worse");
  for (StateRecord& record : played.state) record.integer = Genetic::initial(KeyName::index_of(record.key));
  EXPECT_EQ(played.violation(), "");
  played.at("lgas", best) = Genetic::initial(best) - 1;
  EXPECT_EQ(played.violation(), "solution " + std::to_string(best) + " was none at the start");
}

TEST(a_point_that_moved_by_half_a_transaction_is_noticed) {
  Played played("cloth", 100, 200);
  played.at("clpo", 3) += ClothGrid::kStep;
  played.at("clpo", 4) -= ClothGrid::kStep;
  EXPECT_EQ(played.violation(), "point 3 is 16 beyond where its constraints moved it on axis 0");
  ++played.at("clim", 6);  // of the constraint between them
  EXPECT_EQ(played.violation(), "");
  played.at("cler", 6) += 1;
  EXPECT_EQ(played.violation(), "cler000000000006 is no whole step");
}

TEST(a_body_in_another_cell_is_noticed) {
  Played played("barnes-hut", 50, 200);
  std::int64_t& cell = played.at("bhbo", 7);
  const Octree octree(50);
  const auto other = static_cast<std::int64_t>(octree.cells() - 1 - octree.cell_of[7]);
  ++played.at("bhce", static_cast<std::uint64_t>(other));
  --played.at("bhce", static_cast<std::uint64_t>(cell));
  cell = other;
  EXPECT_EQ(played.violation(), "tree 0: body 7 is in another cell than its own");
}

TEST(a_cell_that_counts_wrongly_or_is_not_there_is_noticed) {
  Played played("barnes-hut", 50, 200);
  ++played.at("bhce", 0);
  EXPECT_TRUE(played.violation().starts_with("tree 0: children of cell 0: expected "));
  --played.at("bhce", 0);
  played.lose("bhbo", 7);
  EXPECT_EQ(played.violation(), "tree 0: it is not complete");
  Played first("barnes-hut", 50, 30);
  EXPECT_EQ(first.violation(), "");
  first.lose("bhce", 0);
  EXPECT_EQ(first.violation(), "tree 0: cell 0 is missing, but it has children");
}

TEST(flow_from_nowhere_is_noticed) {
  Played played("cuda-cuts", 400, 700);
  ++played.at("ccex", 5);
  --played.at("ccex", 6);
  EXPECT_EQ(played.violation(), "pixel 5 has 1 more than came to it");
  --played.at("cced", 5 * 4);  // as if 1 had left over the edge from 5 to 6
  EXPECT_EQ(played.violation(), "pixel 5: an edge and its opposite can take -1 more than before");
  ++played.at("cced", 6 * 4 + 2);
  EXPECT_EQ(played.violation(), "pixel 5 has 2 more than came to it");
  played.at("ccex", 5) -= 2;
  played.at("ccex", 6) += 2;
  EXPECT_EQ(played.violation(), "");
  played.at("cche", 5) += 2;
  EXPECT_EQ(played.violation(), "cche000000000005 is no whole step");
}

TEST(a_basket_that_is_counted_in_part_is_noticed) {
  Played played("apriori", 50, 200);
  const State good = played.state;
  for (StateRecord& record : played.state) {
    if (!record.key.starts_with("appr")) continue;
    --record.integer;
    break;
  }
  EXPECT_TRUE(played.violation().starts_with("supports of pairs: expected a total of "));
  played.state = good;
  ++played.at("apit", 3);
  EXPECT_EQ(played.violation(), "apit000000000003 is not the support that it was");
  played.lose("apit", 3);
  EXPECT_EQ(played.violation(), "items: expected 50, got 49");
}

TEST(half_a_swap_is_noticed) {
  Played played("array-walk", 50, 200);
  const std::int64_t lost = std::exchange(played.at("arwk", 7), played.at("arwk", 8));
  EXPECT_EQ(played.violation(), std::to_string(played.at("arwk", 8)) + " is there twice");
  played.at("arwk", 8) = lost;
  EXPECT_EQ(played.violation(), "");
  played.at("arwk", 8) = 50;
  EXPECT_EQ(played.violation(), "50 is no value of the start");
}

TEST(a_library_that_disagrees_with_itself_is_noticed) {
  Played played("stmbench7", 1000, 300);
  const State good = played.state;
  played.at("s7ax", 3) = played.at("s7ay", 3);
  EXPECT_EQ(played.violation(), "x and y of atomic part 3 are not those of the start");
  played.state = good;
  std::swap(played.at("s7ax", 3), played.at("s7ay", 3));
  EXPECT_EQ(played.violation(), "");
  ++played.at("s7ad", 3);
  --played.at("s7ad", 203);
  EXPECT_EQ(played.violation(), "composite part 0: its parts' dates are 1 later than it says");
  played.state = good;
  ++played.at("s7as", 1);
  EXPECT_EQ(played.violation(), "assembly 0 has -1 more changes than those below it");
}

}  // namespace
}  // namespace kilokv::engine
