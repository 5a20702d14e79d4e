#include "server/core/pipeline/key_sketch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

namespace kilokv::server {
namespace {

KeyId id_of(std::uint64_t key) { return {key + 1, ~key}; }
std::string text_of(std::uint64_t key) { return "key" + std::to_string(key); }

TEST(KeySketch, CountsExactlyWhatItHasRoomFor) {
  KeySketch sketch(3);
  for (int i = 0; i < 5; ++i) sketch.add(id_of(1), text_of(1), false, 1);
  sketch.add(id_of(2), text_of(2), true, 2.5);
  sketch.add(id_of(3), text_of(3), false, 1);
  EXPECT_DOUBLE_EQ(sketch.total(), 8.5);
  ASSERT_EQ(sketch.entries().size(), 3u);
  for (const KeySketch::Entry& entry : sketch.entries()) {
    EXPECT_EQ(entry.error, 0) << entry.key;
    EXPECT_EQ(entry.is_range, entry.key == "key2");
    EXPECT_DOUBLE_EQ(entry.weight, entry.key == "key1" ? 5 : entry.key == "key2" ? 2.5 : 1);
  }
}

TEST(KeySketch, ANewKeyTakesThePlaceOfTheLeast) {
  KeySketch sketch(2);
  sketch.add(id_of(1), text_of(1), false, 5);
  sketch.add(id_of(2), text_of(2), false, 2);
  sketch.add(id_of(3), text_of(3), false, 1);
  ASSERT_EQ(sketch.entries().size(), 2u);
  for (const KeySketch::Entry& entry : sketch.entries()) {
    EXPECT_NE(entry.key, "key2");
    EXPECT_DOUBLE_EQ(entry.weight, entry.key == "key1" ? 5 : 3);
    EXPECT_DOUBLE_EQ(entry.error, entry.key == "key1" ? 0 : 2);
  }
}

// The guarantees of the paper, against exact sums.
TEST(KeySketch, KeepsItsGuaranteesForRandomStreams) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::size_t capacity = 1 + random() % 40;
    const std::uint64_t keys = 1 + random() % 200;
    const bool skewed = random() % 2 == 0;
    KeySketch sketch(capacity);
    std::map<std::string, double> exact;
    for (int i = 0; i < 5000; ++i) {
      const std::uint64_t key = skewed ? keys / (1 + random() % keys) : random() % keys;
      const double weight = 1 + static_cast<double>(random() % 3);
      sketch.add(id_of(key), text_of(key), false, weight);
      exact[text_of(key)] += weight;
      if (i % 1000 == 999) {
        sketch.scale(0.5);
        for (auto& [name, sum] : exact) sum /= 2;
      }
    }
    double total = 0;
    for (const auto& [name, sum] : exact) total += sum;
    EXPECT_NEAR(sketch.total(), total, 1e-6 * total);
    const double most_error = total / static_cast<double>(capacity);
    std::map<std::string, double> found;
    for (const KeySketch::Entry& entry : sketch.entries()) {
      EXPECT_TRUE(found.emplace(entry.key, entry.weight).second) << entry.key << " is there twice";
      EXPECT_GE(entry.weight, exact[entry.key] - 1e-6) << entry.key;
      EXPECT_LE(entry.weight - entry.error, exact[entry.key] + 1e-6) << entry.key;
      EXPECT_LE(entry.error, most_error + 1e-6) << entry.key;
    }
    for (const auto& [name, sum] : exact) {
      if (sum <= most_error + 1e-6) continue;
      EXPECT_TRUE(found.contains(name)) << name << " has " << sum << " of " << total;
    }
  }
}

}  // namespace
}  // namespace kilokv::server
