// The table of expiries against a model: a map.

#include "engine/table/expiry_table.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {
namespace {

KeyId id_of(std::uint64_t key) { return {key * 0x9e3779b97f4a7c15, ~key}; }

using Due = std::vector<std::pair<TimeUs, std::uint64_t>>;  // time and id.high

Due due_of(const ExpiryTable& table, TimeUs stamp_us, std::size_t max) {
  Due due;
  table.visit_due(stamp_us, max, [&](KeyId id, TimeUs expires_us) { due.emplace_back(expires_us, id.high); });
  return due;
}

TEST(agrees_with_a_map) {
  std::mt19937_64 random(20261130);
  ExpiryTable table;
  std::map<std::uint64_t, TimeUs> model;
  for (int step = 0; step < 20000; ++step) {
    const std::uint64_t key = random() % 50;
    const TimeUs time = random() % 4 == 0 ? 0 : 1 + static_cast<TimeUs>(random() % 30);
    const auto found = model.find(key);
    EXPECT_EQ(table.find(id_of(key)), found == model.end() ? 0 : found->second);
    EXPECT_EQ(table.set(id_of(key), time), found == model.end() ? 0 : found->second);
    if (time == 0) {
      model.erase(key);
    } else {
      model[key] = time;
    }
    EXPECT_EQ(table.size(), model.size());
    EXPECT_EQ(table.empty(), model.empty());
    EXPECT_TRUE(table.hash() == table.compute_hash());
    Due all;
    for (const auto& [at, expires_us] : model) all.emplace_back(expires_us, id_of(at).high);
    std::sort(all.begin(), all.end());
    EXPECT_EQ(table.next(), all.empty() ? kNever : all.front().first);
    const TimeUs stamp = static_cast<TimeUs>(random() % 32);
    const std::size_t max = random() % 10;
    std::erase_if(all, [&](const auto& entry) { return entry.first > stamp; });
    if (all.size() > max) all.resize(max);
    EXPECT_TRUE(due_of(table, stamp, max) == all);
  }
}

// Each size up to 3,000 and back: buckets split, and merge again.
TEST(finds_every_key_while_it_grows_and_shrinks) {
  constexpr std::uint64_t kKeys = 3000;
  ExpiryTable table;
  const auto time_of = [](std::uint64_t key) { return 1 + static_cast<TimeUs>(key * 7919 % kKeys); };
  const auto check = [&](std::uint64_t from, std::uint64_t to) {
    EXPECT_EQ(table.size(), static_cast<std::size_t>(to - from));
    EXPECT_TRUE(table.buckets() >= table.size());
    EXPECT_TRUE(table.buckets() <= 2 * table.size() + 1);
    const std::uint64_t step = table.size() % 64 == 0 ? 1 : 97;  // not all keys each time
    for (std::uint64_t key = 0; key < kKeys; key += step) {
      EXPECT_EQ(table.find(id_of(key)), key >= from && key < to ? time_of(key) : 0);
    }
  };
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      EXPECT_EQ(table.set(id_of(key), time_of(key)), 0);
      check(0, key + 1);
    }
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      EXPECT_EQ(table.set(id_of(key), 0), time_of(key));
      check(key + 1, kKeys);
    }
    EXPECT_TRUE(table.empty());
    EXPECT_TRUE(table.hash() == 0);
  }
}

TEST(a_key_is_due_at_its_time) {
  ExpiryTable table;
  table.set(id_of(1), 100);
  EXPECT_EQ(due_of(table, 99, 9).size(), std::size_t{0});
  EXPECT_EQ(due_of(table, 100, 9).size(), std::size_t{1});
  EXPECT_EQ(due_of(table, 100, 0).size(), std::size_t{0});
}

TEST(the_hash_names_key_and_time) {
  ExpiryTable a, b;
  a.set(id_of(1), 100);
  b.set(id_of(2), 100);
  EXPECT_FALSE(a.hash() == b.hash());
  b.set(id_of(2), 0);
  EXPECT_TRUE(b.hash() == 0);
  b.set(id_of(1), 101);
  EXPECT_FALSE(a.hash() == b.hash());
  b.set(id_of(1), 100);
  EXPECT_TRUE(a.hash() == b.hash());
}

}  // namespace
}  // namespace kilokv::engine
