// The sessions of browsers: their ends and their places.
#include "server/console/sessions.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kilokv::server {
namespace {

class ConsoleSessionsTest : public testing::Test {
 protected:
  std::string open(const std::string& user) { return sessions_.open({user, "token of " + user}).value(); }
  bool has(const std::string& secret) { return sessions_.find(secret).has_value(); }

  TimeUs now_ = 1;
  ConsoleSessions sessions_{[this] { return now_; }};
};

TEST_F(ConsoleSessionsTest, ASecretFindsItsLoginAlone) {
  const std::string ada = open("ada"), bob = open("bob");
  EXPECT_NE(ada, bob);
  EXPECT_EQ(ada.size(), 64u);
  EXPECT_EQ(sessions_.find(ada)->user, "ada");
  EXPECT_EQ(sessions_.find(bob)->token, "token of bob");
  EXPECT_FALSE(has(""));
  EXPECT_FALSE(has(ada.substr(1)));
  sessions_.close(ada);
  EXPECT_FALSE(has(ada));
  EXPECT_TRUE(has(bob));
}

TEST_F(ConsoleSessionsTest, ASessionEndsWhenItIsIdleAndAtTheLatestAfterItsLife) {
  const std::string idle = open("ada"), used = open("bob");
  const TimeUs begin = now_;
  for (; now_ - begin < ConsoleSessions::kLifeUs; now_ += ConsoleSessions::kIdleUs - 1) EXPECT_TRUE(has(used));
  EXPECT_FALSE(has(idle));
  EXPECT_FALSE(has(used));
}

TEST_F(ConsoleSessionsTest, AUserWhoOpensManyLosesTheOneThatWasUsedLongestAgo) {
  const std::string other = open("bob");
  std::vector<std::string> own;
  for (std::size_t i = 0; i < ConsoleSessions::kSessionsOfUserMax; ++i, ++now_) own.push_back(open("ada"));
  EXPECT_TRUE(has(own[0]));  // so the second one is the oldest
  ++now_;
  const std::string next = open("ada");
  EXPECT_TRUE(has(own[0]));
  EXPECT_FALSE(has(own[1]));
  EXPECT_TRUE(has(next));
  EXPECT_TRUE(has(other));
}

TEST_F(ConsoleSessionsTest, ThePlacesAreBounded) {
  const std::string first = open("user 0");
  ++now_;
  for (std::size_t i = 1; i < ConsoleSessions::kSessionsMax; ++i, ++now_) open("user " + std::to_string(i));
  ++now_;
  const std::string last = open("one more");
  EXPECT_FALSE(has(first));
  EXPECT_TRUE(has(last));
}

}  // namespace
}  // namespace kilokv::server
