// What the database shows of its hot keys and sessions, in virtual time.
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

class DatabaseActivityTest : public CoreFixture {
 protected:
  void SetUp() override { open(&log, sim.environment()); }
  void TearDown() override { database.reset(); }
  std::vector<std::string> keys(KeyUse use, std::size_t limit = 10) const {
    std::vector<std::string> keys;
    for (const HotKey& key : database->hot_keys(use, limit).keys) keys.push_back(key.key);
    return keys;
  }
};

TEST_F(DatabaseActivityTest, HotKeysFollowWhatRuns) {
  EXPECT_TRUE(keys(KeyUse::write).empty());
  for (int i = 0; i < 3; ++i) run(add("hot", 1));
  run(add("cold", 1));
  EXPECT_EQ(keys(KeyUse::write), (std::vector<std::string>{"hot", "cold"}));
  EXPECT_EQ(keys(KeyUse::write, 1), std::vector<std::string>{"hot"});
  EXPECT_TRUE(keys(KeyUse::wait).empty());
}

// A transaction that waits counts each time it is tried.
TEST_F(DatabaseActivityTest, AWaitIsSeenWhileItLasts) {
  const auto waits = submit(withdraw("account", 5, 1000000));
  settle();
  EXPECT_EQ(keys(KeyUse::wait), std::vector<std::string>{"account"});
  EXPECT_TRUE(keys(KeyUse::write).empty()) << "it has not run";
  run(add("account", 5));
  EXPECT_TRUE(waits->ended());
  const auto& writes = database->hot_keys(KeyUse::write, 10).keys;
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_NEAR(writes.front().per_second, 2, 0.5) << "the deposit and the withdrawal, within the first second";
}

TEST_F(DatabaseActivityTest, SessionsAreListed) {
  EXPECT_TRUE(database->list_sessions(10).empty());
  const SessionId id = open_session(2000000);
  run(add("a", 1), id, 1);
  const std::vector<SessionInfo> sessions = database->list_sessions(10);
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions.front().id, id);
  EXPECT_EQ(sessions.front().requests, 1u);
  EXPECT_EQ(sessions.front().in_flight, 0u);
  EXPECT_EQ(sessions.front().lease_us, 2000000);
}

}  // namespace
}  // namespace kilokv::server
