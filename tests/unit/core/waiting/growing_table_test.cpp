#include "server/core/waiting/growing_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

namespace kilokv::server {
namespace {

class GrowingTableTest : public ::testing::Test {
 protected:
  inline static std::size_t steps = 0;  // elements that the table has looked at
  inline static std::size_t alive = 0;

  struct Element {
    explicit Element(std::uint64_t its_name) : name_is(its_name) { ++alive; }
    ~Element() { --alive; }
    Element(const Element&) = delete;
    Element& operator=(const Element&) = delete;
    std::uint64_t name() const {
      ++steps;
      return name_is;
    }
    const std::uint64_t name_is;
    Element* next_in_bucket = nullptr;
  };
  struct Hash {
    std::uint64_t operator()(std::uint64_t name) const {
      name = (name ^ name >> 31) * 0x9E3779B97F4A7C15u;
      return (name ^ name >> 29) * 0xBF58476D1CE4E5B9u;
    }
  };
  using Table = GrowingTable<Element, Hash>;

  // How many elements it takes to do this.
  template <class Work>
  static std::size_t steps_of(const Work& work) {
    steps = 0;
    work();
    return steps;
  }

  static Element* insert(Table* table, std::uint64_t name) { return table->insert(std::make_unique<Element>(name)); }
};

TEST_F(GrowingTableTest, NoOperationTakesMoreStepsThanABucketHasElements) {
  constexpr std::uint64_t kElements = 500000, kStepsMax = 40;
  Table table;
  std::vector<Element*> elements;
  std::size_t most = 0, of_absent = 0;
  for (std::uint64_t name = 0; name < kElements; ++name) {
    most = std::max(most, steps_of([&] { elements.push_back(insert(&table, name)); }));
    of_absent += steps_of([&] { EXPECT_EQ(table.find(kElements + name), nullptr); });
  }
  EXPECT_LT(most, kStepsMax) << "to insert one";
  EXPECT_LT(of_absent, kElements / 100) << "to look up those that are not there";
  most = 0;
  for (Element* element : elements) most = std::max(most, steps_of([&] { table.find(element->name_is); }));
  EXPECT_LT(most, kStepsMax) << "to find one";
  most = 0;
  for (Element* element : elements) most = std::max(most, steps_of([&] { table.erase(element); }));
  EXPECT_LT(most, kStepsMax) << "to erase one";
  EXPECT_TRUE(table.empty());
}

// At each size up to some hundreds, all are looked up. So every bucket is met before and after it is split.
TEST_F(GrowingTableTest, NoneIsMissedWhileItGrows) {
  Table table;
  std::vector<Element*> elements;
  for (std::uint64_t name = 0; name < 1500; ++name) {
    elements.push_back(insert(&table, name));
    for (std::uint64_t at = 0; at <= name; ++at) ASSERT_EQ(table.find(at), elements[at]) << "of " << name + 1;
    ASSERT_EQ(table.find(name + 1), nullptr);
  }
}

TEST_F(GrowingTableTest, ItHoldsWhatAModelHoldsWhileElementsComeAndGo) {
  std::mt19937_64 random(1);
  {
    Table table;
    std::unordered_map<std::uint64_t, Element*> model;
    for (int step = 0; step < 300000; ++step) {
      const std::uint64_t name = random() % 40000;
      const auto found = model.find(name);
      ASSERT_EQ(table.find(name), found == model.end() ? nullptr : found->second);
      const bool grows = step / 50000 % 2 == 0;
      if (found == model.end() && (grows || random() % 4 == 0)) {
        model.emplace(name, insert(&table, name));
      } else if (found != model.end() && (!grows || random() % 4 == 0)) {
        table.erase(found->second);
        model.erase(found);
      }
      ASSERT_EQ(table.empty(), model.empty());
      if (step % 10000 != 0) continue;
      for (const auto& [its_name, element] : model) ASSERT_EQ(table.find(its_name), element);
    }
    EXPECT_EQ(alive, model.size());
  }
  EXPECT_EQ(alive, 0u);
}

}  // namespace
}  // namespace kilokv::server
