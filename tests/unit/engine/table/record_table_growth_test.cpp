// The record table while it grows: after every insert and erase of a growth, everything that it says is compared with a
// model (std::unordered_set). The tables are small, so that they grow often.

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/table/record_table.hpp"
#include "tests/unit/engine/few_addresses.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

constexpr unsigned kSeed = 20261128;
constexpr std::uint32_t kSlotsPerBurst = 2048 + 32;

std::uint64_t mixed(std::uint64_t number) {
  number *= 0x9e3779b97f4a7c15u;
  number ^= number >> 29;
  return number * 0xbf58476d1ce4e5b9u;
}

// How the homes of ids are spread.
enum class Spread { even, many_at_the_end, clustered, edges };

// The least hash of a home, or the greatest one of the home before: the boundary of a growth may be there.
std::uint64_t edge(std::uint64_t number) {
  std::uint64_t homes = 64;
  for (std::uint64_t i = mixed(number) % 20; i > 0; --i) homes = homes * 6 / 5 + 1;
  const std::uint64_t least = (((1 + mixed(~number) % (homes - 1)) << 32) + homes - 1) / homes;
  return number % 2 == 0 ? least : least - 1;
}

KeyId id_of(std::uint64_t number, Spread spread) {
  std::uint64_t high = mixed(number);
  if (spread == Spread::many_at_the_end && number % 16 == 0) high |= ~std::uint64_t{0} << 32;
  if (spread == Spread::clustered && number % 4 == 0) high &= 0xf0f0ffff'ffffffff;
  if (spread == Spread::edges) high = edge(number) << 32 | high >> 32;
  return {number, high};
}

// A table, and a model of it. What a record holds follows from its number.
class Model {
 public:
  Model(std::uint64_t seed, Spread spread, std::size_t records_max)
      : random_(seed), spread_(spread), table_(0, records_max) {}

  void change(std::uint64_t numbers, unsigned erases_in_eight) {
    const std::uint64_t number = 1 + random_() % numbers;
    const std::uint32_t slot = table_.find(id_of(number, spread_));
    ASSERT_EQ(slot != RecordTable::absent_slot(), numbers_.contains(number));
    if (slot == RecordTable::absent_slot()) {
      insert(number);
    } else if (random_() % 8 < erases_in_eight) {
      table_.erase(slot);
      numbers_.erase(number);
    }
  }

  // Whether the table is exact. Cost: linear.
  bool check() const {
    check_finds();
    check_iteration();
    check_memory();
    return !test::has_failed();
  }

  const RecordTable& table() const { return table_; }
  std::size_t growths() const { return growths_; }

 private:
  void insert(std::uint64_t number) {
    const std::uint32_t before = table_.capacity();
    const std::uint32_t slot = table_.insert(id_of(number, spread_), static_cast<std::uint32_t>(number * 5));
    growths_ += table_.capacity() != before ? 1 : 0;
    ASSERT_TRUE(table_[slot].cell == Cell{} && table_.chunk(slot) == 0);
    table_[slot].cell = {number * 7, number * 11};
    table_.set_chunk(slot, static_cast<std::uint32_t>(number * 3));
    numbers_.insert(number);
  }

  void check_finds() const {
    std::vector<KeyId> ids;
    for (const std::uint64_t number : numbers_) {
      const std::uint32_t slot = table_.find(id_of(number, spread_));
      ASSERT_TRUE(slot != RecordTable::absent_slot());
      ASSERT_TRUE(table_[slot].id == id_of(number, spread_));
      ASSERT_TRUE((table_[slot].cell == Cell{number * 7, number * 11}));
      ASSERT_EQ(table_.key_ref(slot), static_cast<std::uint32_t>(number * 5));
      ASSERT_EQ(table_.chunk(slot), static_cast<std::uint32_t>(number * 3));
      std::size_t found = 0;
      table_.for_each_of(static_cast<std::uint32_t>(id_of(number, spread_).high >> 32),
                         [&](std::uint32_t at) { found += at == slot ? 1 : 0; });
      ASSERT_EQ(found, std::size_t{1});
      ids.push_back(id_of(number, spread_));
    }
    std::vector<std::uint32_t> slots(ids.size() + 1);
    ASSERT_TRUE(table_.find_all(ids, slots.data()));
    for (std::size_t i = 0; i < ids.size(); ++i) ASSERT_TRUE(table_[slots[i]].id == ids[i]);
    ids.push_back(id_of(~std::uint64_t{0}, spread_));
    ASSERT_TRUE(!table_.find_all(ids, slots.data()));
    ASSERT_EQ(slots.back(), RecordTable::absent_slot());
    table_.for_each_of(0x12345678, [&](std::uint32_t at) { ASSERT_EQ(table_[at].id.high >> 32, 0x12345678u); });
  }

  void check_iteration() const {
    std::size_t occupied = 0;
    for (std::uint32_t slot = 0; slot < table_.end_slot(); ++slot) occupied += table_.occupied(slot) ? 1 : 0;
    ASSERT_EQ(occupied, numbers_.size());
    ASSERT_EQ(table_.size(), numbers_.size());
    ASSERT_TRUE(!table_.occupied(0) && table_[0].cell == Cell{});
    ASSERT_TRUE(!table_.occupied(table_.end_slot() - 1));
  }

  void check_memory() const {
    const std::size_t expected = RecordTable::memory_of(table_.memory_capacity());
    if (spread_ == Spread::many_at_the_end) {
      ASSERT_TRUE(table_.memory_bytes() >= expected);
    } else {
      ASSERT_EQ(table_.memory_bytes(), expected);
      ASSERT_TRUE(table_.memory_bytes() <= RecordTable::memory_until(64, table_.capacity()));
    }
    ASSERT_EQ(RecordTable::memory_until(table_.memory_capacity(), table_.size()), expected);
  }

  std::mt19937_64 random_;
  const Spread spread_;
  RecordTable table_;
  std::unordered_set<std::uint64_t> numbers_;
  std::size_t growths_ = 0;
};

// Grows the table to some thousand records, with erases, and checks it after every step of a growth.
void run(Model* model, std::size_t growths_wanted) {
  std::size_t steps_of_growth = 0;
  for (std::uint64_t step = 0; model->growths() < growths_wanted; ++step) {
    model->change(100 + step / 4, step % 7 == 0 ? 6 : 1);
    if (test::has_failed()) return;
    if (model->table().growing()) ++steps_of_growth;
    if (model->table().growing() || step % 500 == 0) {
      ASSERT_TRUE(model->check());
    }
  }
  EXPECT_TRUE(model->check());
  EXPECT_TRUE(steps_of_growth > 10 * growths_wanted);
}

void run_seeds(std::size_t records_max) {
  for (const Spread spread : {Spread::even, Spread::many_at_the_end, Spread::clustered, Spread::edges}) {
    for (std::uint64_t seed = 0; seed < test::runs_to_make(10); ++seed) {
      Model model(kSeed + seed, spread, records_max);
      run(&model, 20);
      if (test::has_failed()) {
        std::fprintf(stderr, "seed %llu, spread %d\n", static_cast<unsigned long long>(kSeed + seed),
                     static_cast<int>(spread));
        return;
      }
    }
  }
}

TEST(a_table_is_exact_at_every_step_of_a_growth) { run_seeds(1000000); }

// The columns outgrow what they have reserved, and move to larger ranges.
TEST(a_table_outgrows_its_range) { run_seeds(0); }

TEST(a_table_grows_where_the_system_refuses_addresses) {
  const test::FewAddresses few(rlim_t{1} << 30);
  Model model(kSeed, Spread::even, std::size_t{1} << 31);
  run(&model, 20);
}

// A run that reaches the end of the table gets more overflow slots, in a growth and without one.
TEST(a_run_may_be_longer_than_the_overflow) {
  RecordTable table(0);
  for (std::uint64_t number = 1; number <= 3000; ++number) {
    table.insert({number, ~std::uint64_t{0}}, 0);
    for (std::uint64_t known = 1; known <= number; known += 97) {
      const std::uint32_t slot = table.find({known, ~std::uint64_t{0}});
      ASSERT_EQ(table[slot].id.low, known);
    }
    ASSERT_TRUE(!table.occupied(table.end_slot() - 1));
  }
  EXPECT_TRUE(table.end_slot() > table.capacity() + 1000);
  EXPECT_TRUE(table.memory_bytes() >= table.end_slot() * std::size_t{40});
}

// No insert moves more than one burst, and the growth has ended long before the table is full.
TEST(growth_is_spread_over_inserts) {
  RecordTable table(40000);
  const std::uint32_t old_homes = table.capacity();
  std::uint64_t number = 0;
  while (!table.growing()) table.insert(id_of(++number, Spread::even), 0);
  const auto find_all = [&] {
    std::vector<std::uint32_t> slots;
    for (std::uint64_t known = 1; known <= number; ++known) slots.push_back(table.find(id_of(known, Spread::even)));
    return slots;
  };
  std::size_t inserts = 0, moved_most = 0;
  for (std::vector<std::uint32_t> before = find_all(), after; table.growing(); before = after) {
    table.insert(id_of(++number, Spread::even), 0);
    ++inserts;
    after = find_all();
    std::size_t moved = 0;
    for (std::size_t i = 0; i < before.size(); ++i) moved += before[i] != after[i] ? 1 : 0;
    moved_most = std::max(moved_most, moved);
  }
  EXPECT_TRUE(moved_most > 1000 && moved_most < kSlotsPerBurst + 500);
  EXPECT_TRUE(inserts > 1000);
  EXPECT_TRUE(static_cast<double>(table.size()) / old_homes < 0.84);
}

}  // namespace
}  // namespace kilokv::engine
