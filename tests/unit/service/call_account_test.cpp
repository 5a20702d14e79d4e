// The memory of open calls, and what is counted for their connection.
#include "server/service/call_account.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kilokv::server {
namespace {

constexpr std::uint64_t kCallBytes = 12288;  // of a call without headers
constexpr std::uint64_t kWindowBytes = 300000;

class CallAccountTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Client> client(const char* name) { return std::make_shared<Client>(name); }
  Status enter(const std::shared_ptr<Client>& who, CallAccount::Place* place, std::uint64_t header_bytes = 0) {
    return account.enter(who, connection, header_bytes, place);
  }

  CallAccount account{100 * kCallBytes, kWindowBytes};
  const std::shared_ptr<Client> connection = client("ipv4:127.0.0.1:1");
};

TEST_F(CallAccountTest, ACallHasItsPlaceUntilItEnds) {
  const auto alice = client("alice");
  {
    CallAccount::Place place;
    ASSERT_TRUE(enter(alice, &place, 1000).ok());
    EXPECT_EQ(account.bytes(), kCallBytes + 1500);
    EXPECT_EQ(alice->call_bytes.load(), kCallBytes + 1500);
    CallAccount::Place moved = std::move(place);
    EXPECT_EQ(account.bytes(), kCallBytes + 1500);
    moved = {};
    EXPECT_EQ(account.bytes(), 0u);
    EXPECT_EQ(alice->call_bytes.load(), 0u);
  }
  EXPECT_EQ(account.bytes(), 0u);
  EXPECT_EQ(connection->refused_calls.load(), 0u);
}

TEST_F(CallAccountTest, ARefusedCallCountsForItsConnectionUntilItEnds) {
  const auto greedy = client("greedy"), light = client("light");
  std::vector<CallAccount::Place> places(100);
  std::size_t taken = 0;
  Status status;
  while (taken < places.size() && (status = enter(greedy, &places[taken])).ok()) ++taken;
  ASSERT_LT(taken, places.size()) << "one client may not have all";
  EXPECT_EQ(status.code(), StatusCode::resource_exhausted);
  EXPECT_EQ(status.violation()->setting, "--calls-bytes-max");
  EXPECT_EQ(connection->refused_calls.load(), 1u);
  EXPECT_EQ(account.bytes(), taken * kCallBytes) << "what is refused does not take the room of others";
  CallAccount::Place of_light;
  EXPECT_TRUE(enter(light, &of_light).ok());
  places.clear();
  EXPECT_EQ(connection->refused_calls.load(), 0u);
  EXPECT_EQ(account.bytes(), kCallBytes);
}

TEST_F(CallAccountTest, ACallLacksItsMessageUntilItComesOrTheCallEnds) {
  const auto alice = client("alice");
  CallAccount::Place first, second, third;
  for (CallAccount::Place* place : {&first, &second, &third}) ASSERT_TRUE(enter(alice, place).ok());
  const auto waits = [this] {
    const std::int64_t later = CallAccount::now_ms() + 1000000;  // everything is late then
    return connection->awaited.late_since_ms(later) != AwaitedMessages::kNever;
  };
  EXPECT_FALSE(waits());
  first.await_message({});
  second.await_message({});
  first.message_came();
  first.message_came();
  EXPECT_TRUE(waits()) << "the second";
  second = {};
  EXPECT_FALSE(waits());
  first.await_message({});  // a stream waits for its next one
  EXPECT_TRUE(waits());
  first = {};
  EXPECT_FALSE(waits());
}

TEST_F(CallAccountTest, WhatARefusedCallSentIsForgivenWhenItEnds) {
  const auto alice = client("alice");
  {
    CallAccount::Place place;
    ASSERT_TRUE(enter(alice, &place).ok());
    place.forgive_message();
    CallAccount::Place moved = std::move(place);
    EXPECT_EQ(connection->forgiven_bytes.load(), 0u) << "until then gRPC has it";
  }
  EXPECT_EQ(connection->forgiven_bytes.load(), kWindowBytes);
}

struct FakeCall : AwaitingCall {
  bool end_late(const Status& status, bool /*is_again*/) override {
    ended = status.message();
    return true;
  }
  std::string ended;
};

TEST(AwaitedMessagesTest, AMessageIsLateAfterASecond) {
  AwaitedMessages awaited;
  const auto first = std::make_shared<FakeCall>(), second = std::make_shared<FakeCall>();
  const auto of_first = awaited.begin(first, 10000), of_second = awaited.begin(second, 10600);
  EXPECT_EQ(awaited.late_since_ms(10999), AwaitedMessages::kNever);
  EXPECT_TRUE(awaited.late_calls(10999).empty());
  EXPECT_EQ(awaited.late_since_ms(11000), 10000);
  for (const auto& call : awaited.late_calls(11599)) call->end_late(Status(StatusCode::cancelled, "late"), false);
  EXPECT_EQ(first->ended, "late");
  EXPECT_EQ(second->ended, "");
  awaited.end(of_first);
  EXPECT_EQ(awaited.late_since_ms(11599), AwaitedMessages::kNever);
  EXPECT_EQ(awaited.late_since_ms(11600), 10600);
  awaited.end(of_second);
  EXPECT_EQ(awaited.late_since_ms(1000000), AwaitedMessages::kNever);
}

TEST(AwaitedMessagesTest, ACallThatIsGoneStillCountsUntilItsPlaceIs) {
  AwaitedMessages awaited;
  const auto handle = awaited.begin(std::make_shared<FakeCall>(), 10000);
  EXPECT_EQ(awaited.late_since_ms(20000), 10000);
  EXPECT_TRUE(awaited.late_calls(20000).empty());
  awaited.end(handle);
}

}  // namespace
}  // namespace kilokv::server
