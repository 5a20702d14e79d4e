// What people see of the keys that are used most: only what is certain.
#include "client/cli/activity_text.hpp"

#include <gtest/gtest.h>

namespace kilokv::client {
namespace {

HotKey key_of(const std::string& name, double per_second, double error) {
  HotKey key;
  key.key.key = name;
  key.per_second = per_second;
  key.error = error;
  return key;
}

std::string names_of(const std::vector<HotKey>& keys) {
  std::string names;
  for (const HotKey& key : keys) names += key.key.key;
  return names;
}

TEST(ActivityText, KeysWhoseRateIsMostlyErrorAreLeftOut) {
  HotKeysOfUse use;
  use.per_second = 1000;
  use.keys = {key_of("a", 10, 9.9), key_of("b", 9, 7),     key_of("c", 8, 0),     key_of("d", 2, 1.01),
              key_of("e", 0.2, 0),  key_of("f", 0.2, 0.1), key_of("g", 0.2, 0.11)};
  EXPECT_EQ(names_of(certain_keys(use, 100)), "cef") << "by the certain part: 8, 0.2, 0.1";
  EXPECT_EQ(names_of(certain_keys(use, 2)), "ce");
  use.keys.push_back(key_of("h", 20, 14));
  EXPECT_EQ(names_of(certain_keys(use, 100)), "chef") << "6 a second is more than 1/256 of all";
  EXPECT_EQ(names_of(certain_keys(HotKeysOfUse(), 2)), "");
}

// Those that are equal stay in the order of the server. A rate cannot be less than nothing.
TEST(ActivityText, TheCertainPartOfARate) {
  HotKeysOfUse use;
  use.keys = {key_of("a", 5, 1), key_of("b", 4, 0), key_of("c", 4, 0)};
  EXPECT_EQ(names_of(certain_keys(use, 100)), "abc");
  EXPECT_EQ(at_least(key_of("a", 5, 1)), 4);
  EXPECT_EQ(at_least(key_of("a", 1, 2)), 0);
  EXPECT_TRUE(certain_keys({KeyUse::read, 1, {key_of("a", 1, 2)}}, 10).empty());
}

TEST(ActivityText, Rates) {
  EXPECT_EQ(rate_text(0.04), "0.0");
  EXPECT_EQ(rate_text(9.94), "9.9");
  EXPECT_EQ(rate_text(12.5), "13");
  EXPECT_EQ(rate_text(1234567.2), "1,234,567");
}

TEST(ActivityText, TheStateSaysThatAServerOnlyReads) {
  ServerStatus status;
  status.state = "ready";
  EXPECT_EQ(state_text(status), "ready");
  status.read_only = true;
  EXPECT_EQ(state_text(status), "ready, read-only");
}

}  // namespace
}  // namespace kilokv::client
