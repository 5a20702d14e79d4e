#include "server/core/access/key_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace kilokv::server {
namespace {

TEST(KeySet, APrefixHasAllKeysThatBeginWithIt) {
  const KeyRange range = keys_with_prefix("order/");
  EXPECT_EQ(range.from, "order/");
  EXPECT_EQ(range.to, "order0");
  EXPECT_EQ(keys_with_prefix("a\xff\xff").to, "b");
  EXPECT_EQ(keys_with_prefix("\xff").to, "");  // there is no upper bound
  EXPECT_EQ(keys_with_prefix("").to, "");
  const KeySet set({keys_with_prefix("order/")});
  EXPECT_TRUE(set.contains("order/"));
  EXPECT_TRUE(set.contains("order/\xff\xff"));
  EXPECT_FALSE(set.contains("order"));
  EXPECT_FALSE(set.contains("order0"));
}

TEST(KeySet, WithoutRangesItIsEmpty) {
  const KeySet none;
  EXPECT_FALSE(none.contains("a"));
  EXPECT_FALSE(none.contains_all("a", "b"));
  EXPECT_FALSE(none.contains_all("", ""));
  const KeySet all({KeyRange{}});
  EXPECT_TRUE(all.contains("a"));
  EXPECT_TRUE(all.contains_all("", ""));
}

TEST(KeySet, ARangeMustBeInItAsAWhole) {
  const KeySet set({{"b", "d"}, {"d", "f"}, {"x", ""}});
  EXPECT_TRUE(set.contains_all("b", "f"));  // ranges that touch are one
  EXPECT_TRUE(set.contains_all("c", "d"));
  EXPECT_FALSE(set.contains_all("a", "c"));
  EXPECT_FALSE(set.contains_all("e", "g"));
  EXPECT_FALSE(set.contains_all("b", ""));
  EXPECT_FALSE(set.contains_all("e", "y"));  // there is a gap
  EXPECT_TRUE(set.contains_all("x", ""));
  EXPECT_TRUE(set.contains_all("y", "z"));
}

// Against the definition: a key is in the set if it is in one of the ranges.
TEST(KeySet, RandomSetsHaveTheKeysOfTheirRanges) {
  std::minstd_rand random(7);
  const auto key = [&random] { return std::string(1, static_cast<char>('a' + random() % 12)); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<KeyRange> ranges;
    for (auto i = random() % 6; i > 0; --i) {
      KeyRange range{key(), random() % 8 == 0 ? "" : key()};
      if (range.to.empty() || range.from < range.to) ranges.push_back(range);
    }
    const KeySet set(ranges);
    const auto has = [&ranges](const std::string& k) {
      return std::any_of(ranges.begin(), ranges.end(),
                         [&k](const KeyRange& r) { return r.from <= k && (r.to.empty() || k < r.to); });
    };
    for (char c = 'a'; c <= 'm'; ++c) ASSERT_EQ(set.contains(std::string(1, c)), has(std::string(1, c)));
    for (char from = 'a'; from <= 'm'; ++from) {
      for (char to = static_cast<char>(from + 1); to <= 'n'; ++to) {
        bool all = true;
        for (char c = from; c < to; ++c) all &= has(std::string(1, c));
        ASSERT_EQ(set.contains_all(std::string(1, from), std::string(1, to)), all) << from << to;
      }
    }
  }
}

TEST(KeySet, RangesOverlapIfAKeyIsInBoth) {
  const KeyRange all{"", ""}, a{"a", "c"}, b{"b", "d"}, c{"c", "e"}, end{"d", ""};
  for (const KeyRange& range : {a, b, c, end}) {
    EXPECT_TRUE(overlap(range, all) && overlap(all, range) && overlap(range, range));
  }
  EXPECT_TRUE(overlap(a, b) && overlap(b, a));
  EXPECT_FALSE(overlap(a, c) || overlap(c, a)) << "they touch";
  EXPECT_FALSE(overlap(a, end) || overlap(end, a));
  EXPECT_TRUE(overlap(c, end) && overlap(end, c));
}

}  // namespace
}  // namespace kilokv::server
