#include "server/service/activity_calls.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/core/access/key_set.hpp"
#include "server/core/shown_key.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kRoomy = std::uint64_t{4} << 20;
constexpr engine::KeyHashSecret kSecret{3, 4};

Rights may_read(const std::string& prefix) {
  Rights rights;
  rights.read = KeySet({keys_with_prefix(prefix)});
  return rights;
}

TEST(ListLimits, BoundWhatIsAskedFor) {
  EXPECT_EQ(*limit_of(0, {256, 20}), 20u);
  EXPECT_EQ(*limit_of(1, {256, 20}), 1u);
  EXPECT_EQ(*limit_of(256, {256, 20}), 256u);
  const Result<std::uint32_t> refused = limit_of(257, {256, 20});
  EXPECT_EQ(refused.status().code(), StatusCode::invalid_argument);
  EXPECT_NE(refused.status().message().find("limit is 257 entries"), std::string::npos) << refused.status().message();
}

TEST(KeyViewer, ShowsOnlyKeysThatMayBeRead) {
  v1::ShownKey shown;
  KeyViewer(nullptr, &kSecret).show("bank/7", false, &shown);
  EXPECT_EQ(shown.key(), "bank/7");
  const Rights rights = may_read("shop/");
  const KeyViewer viewer(&rights, &kSecret);
  viewer.show("shop/1", true, &shown);
  EXPECT_EQ(shown.key(), "shop/1");
  EXPECT_TRUE(shown.is_range());
  viewer.show("bank/7", false, &shown);
  EXPECT_TRUE(shown.key().empty());
  EXPECT_EQ(shown.hash(), key_hash_text("bank/7", kSecret)) << "as in the log";
  EXPECT_FALSE(shown.is_range());
}

TEST(HotKeyList, HasTheUsesThatAreAskedFor) {
  EXPECT_EQ(uses_of(v1::KEY_USE_UNSPECIFIED)->size(), kKeyUses);
  EXPECT_EQ(*uses_of(v1::KEY_USE_WAIT), std::vector<KeyUse>{KeyUse::wait});
  EXPECT_EQ(uses_of(static_cast<v1::KeyUse>(9)).status().code(), StatusCode::invalid_argument);
  HotKeys reads, writes;
  reads.per_second = 10.5;
  reads.keys = {{"a", false, 7, 0}, {"b", true, 3.5, 1}};
  writes.sampled_one_in = 8;
  v1::ListHotKeysResponse response;
  fill_hot_keys({KeyUse::read, KeyUse::write}, {reads, writes}, KeyViewer(nullptr, &kSecret), kRoomy, &response);
  ASSERT_EQ(response.uses_size(), 2);
  EXPECT_EQ(response.sampled_one_in(), 8u);
  EXPECT_EQ(response.half_life_us(), static_cast<std::uint64_t>(kHotKeysHalfLifeUs));
  EXPECT_EQ(response.uses(0).use(), v1::KEY_USE_READ);
  EXPECT_EQ(response.uses(0).per_second(), 10.5);
  ASSERT_EQ(response.uses(0).keys_size(), 2);
  EXPECT_EQ(response.uses(0).keys(1).key().key(), "b");
  EXPECT_TRUE(response.uses(0).keys(1).key().is_range());
  EXPECT_EQ(response.uses(0).keys(1).per_second(), 3.5);
  EXPECT_EQ(response.uses(0).keys(1).error(), 1);
  EXPECT_EQ(response.uses(1).keys_size(), 0);
}

SlowTransaction slow_one(const std::string& key) {
  SlowTransaction slow;
  slow.reason = SlowReason::waiting;
  slow.answered_us = 11;
  slow.total_us = 22;
  slow.queued_us = 1;
  slow.waited_us = 18;
  slow.execution_us = 2;
  slow.sync_us = 3;
  slow.answer_us = 4;
  slow.client = "user:alice";
  slow.session = SessionId{{0xAB, 0xCD, 0xEF, 0x01, 0x99}};
  slow.request = 5;
  slow.index = 6;
  slow.transactions = 7;
  slow.outcome = engine::Outcome::wait_expired;
  slow.batch = 8;
  slow.admitted_batch = 9;
  slow.batch_transactions = 10;
  slow.reads = 12;
  slow.guard = 0;
  slow.guard_key = key;
  slow.trace.trace[0] = 0x4B;
  slow.trace.span[7] = 0x01;
  return slow;
}

TEST(SlowList, SaysWhatIsKnown) {
  v1::ListSlowResponse response;
  const Rights rights = may_read("shop/");
  SlowTransaction without = slow_one("");
  without.reason = SlowReason::sync;
  without.guard = engine::kNone;
  without.session = {};
  without.trace = {};
  fill_slow({slow_one("bank/7"), without}, 10, KeyViewer(&rights, &kSecret), kRoomy, &response);
  ASSERT_EQ(response.transactions_size(), 2);
  const v1::SlowTransaction& slow = response.transactions(0);
  EXPECT_EQ(slow.reason(), v1::SLOW_REASON_WAITING);
  EXPECT_EQ(slow.answered_us(), 11);
  EXPECT_EQ(slow.total_us(), 22u);
  EXPECT_EQ(slow.queued_us() + slow.waited_us() + slow.execution_us() + slow.sync_us() + slow.answer_us(), 28u);
  EXPECT_EQ(slow.client(), "user:alice");
  EXPECT_EQ(slow.session(), "abcdef01") << "the rest of the id is a secret";
  EXPECT_EQ(slow.number(), 5u);
  EXPECT_EQ(slow.index(), 6u);
  EXPECT_EQ(slow.transactions(), 7u);
  EXPECT_EQ(slow.outcome(), v1::OUTCOME_WAIT_EXPIRED);
  EXPECT_EQ(slow.batch(), 8u);
  EXPECT_EQ(slow.admitted_batch(), 9u);
  EXPECT_EQ(slow.batch_transactions(), 10u);
  EXPECT_EQ(slow.reads(), 12u);
  EXPECT_TRUE(slow.has_guard());
  EXPECT_EQ(slow.guard_key().hash(), key_hash_text("bank/7", kSecret));
  EXPECT_EQ(slow.trace(), "4b000000000000000000000000000000");
  EXPECT_EQ(slow.span(), "0000000000000001");
  EXPECT_FALSE(response.transactions(1).has_guard());
  EXPECT_FALSE(response.transactions(1).has_guard_key());
  EXPECT_EQ(response.transactions(1).session() + response.transactions(1).trace(), "");
  response.Clear();
  fill_slow({slow_one("")}, 1, KeyViewer(nullptr, &kSecret), kRoomy, &response);
  EXPECT_TRUE(response.transactions(0).has_guard());
  EXPECT_FALSE(response.transactions(0).has_guard_key()) << "a guard of time with a constant";
  response.Clear();
  fill_slow({slow_one("a"), slow_one("b")}, 1, KeyViewer(nullptr, &kSecret), kRoomy, &response);
  EXPECT_EQ(response.transactions_size(), 1);
}

TEST(SlowList, CountsEachReason) {
  v1::ListSlowResponse response;
  fill_slow_counts({1, 2, 3, 4, 5, 6}, &response);
  ASSERT_EQ(response.counts_size(), static_cast<int>(kSlowReasons));
  EXPECT_EQ(response.counts(0).reason(), v1::SLOW_REASON_WAITING);
  EXPECT_EQ(response.counts(5).reason(), v1::SLOW_REASON_ANSWER);
  EXPECT_EQ(response.counts(5).transactions(), 6u);
}

TEST(SessionsList, HasTheLargestFirst) {
  std::vector<SessionInfo> sessions(3);
  for (unsigned char i = 0; i < 3; ++i) sessions[i].id.bytes[0] = i;
  sessions[0].stored_bytes = 10;
  sessions[1].stored_bytes = 5;
  sessions[1].reserved_bytes = 50;
  sessions[1].user = "alice";
  sessions[1].left_us = -3;
  sessions[2].stored_bytes = 20;
  v1::ListSessionsResponse response;
  fill_sessions(sessions, 7, kRoomy, &response);
  EXPECT_EQ(response.count(), 7u);
  ASSERT_EQ(response.sessions_size(), 3);
  EXPECT_EQ(response.sessions(0).id(), "01000000");
  EXPECT_EQ(response.sessions(0).user(), "alice");
  EXPECT_EQ(response.sessions(0).lease_left_us(), -3);
  EXPECT_EQ(response.sessions(0).reserved_bytes(), 50u);
  EXPECT_EQ(response.sessions(1).id(), "02000000");
}

TEST(ConnectionsList, HasTheBusiestFirstWithTheirUsers) {
  v1::ListConnectionsResponse response;
  fill_connections(
      {{"ipv4:127.0.0.1:1", 1500, 10, 0, 0}, {"ipv4:127.0.0.1:2", 3, 99, 4, 5}}, 5,
      [](const std::string& peer) { return peer.ends_with(":2") ? "alice" : ""; }, kRoomy, &response);
  EXPECT_EQ(response.count(), 2u);
  ASSERT_EQ(response.connections_size(), 2);
  EXPECT_EQ(response.connections(0).peer(), "ipv4:127.0.0.1:2");
  EXPECT_EQ(response.connections(0).user(), "alice");
  EXPECT_EQ(response.connections(0).open_calls(), 4u);
  EXPECT_EQ(response.connections(0).unfinished_bytes(), 5u);
  EXPECT_EQ(response.connections(1).age_us(), 1500000u);
  EXPECT_EQ(response.connections(1).user(), "");
}

// However long the keys and names are, an answer fits into a message.
TEST(Lists, FitIntoAMessage) {
  constexpr std::uint64_t kSmall = 10000;
  const std::string key(900, 'k');
  HotKeys hot;
  for (int i = 0; i < 100; ++i) hot.keys.push_back({key + std::to_string(i), false, 1, 0});
  v1::ListHotKeysResponse keys;
  const KeyViewer viewer(nullptr, &kSecret);
  fill_hot_keys({KeyUse::read, KeyUse::write}, {hot, hot}, viewer, kSmall, &keys);
  EXPECT_LE(keys.ByteSizeLong(), kSmall);
  EXPECT_GE(keys.uses(0).keys_size(), 8);
  v1::ListSlowResponse slow;
  fill_slow(std::vector<SlowTransaction>(100, slow_one(key)), 1000, viewer, kSmall, &slow);
  EXPECT_LE(slow.ByteSizeLong(), kSmall);
  EXPECT_GE(slow.transactions_size(), 8);
  v1::ListSessionsResponse sessions;
  fill_sessions(std::vector<SessionInfo>(1000), 1000, kSmall, &sessions);
  EXPECT_LE(sessions.ByteSizeLong(), kSmall);
  EXPECT_EQ(sessions.count(), 1000u);
  v1::ListConnectionsResponse connections;
  fill_connections(
      std::vector<ConnectionInfo>(1000, ConnectionInfo{.peer = "ipv6:[::1]:1"}), 1000,
      [](const std::string&) { return std::string(128, 'u'); }, kSmall, &connections);
  EXPECT_LE(connections.ByteSizeLong(), kSmall);
  EXPECT_GT(connections.connections_size(), 50);
}

}  // namespace
}  // namespace kilokv::server
