// The memory of open calls, and what is counted for their connection.
#include "server/service/call_account.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace kilokv::server {
namespace {

constexpr std::uint64_t kCallBytes = 12288;  // of a call without headers

class CallAccountTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Client> client(const char* name) { return std::make_shared<Client>(name); }
  Status enter(const std::shared_ptr<Client>& who, CallAccount::Place* place, std::uint64_t header_bytes = 0) {
    return account.enter(who, connection, header_bytes, place);
  }

  CallAccount account{100 * kCallBytes};
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
  CallAccount::Place first, second, third, stream;
  for (CallAccount::Place* place : {&first, &second, &third, &stream}) ASSERT_TRUE(enter(alice, place).ok());
  const std::int64_t later = CallAccount::now_ms() + 1000000;  // everything is late then
  first.await_message();
  second.await_message();
  stream.await_next_message();
  first.message_came();
  first.message_came();
  EXPECT_FALSE(stream.next_message_is_late()) << "not yet";
  EXPECT_EQ(connection->awaited.late(later), 1u) << "the second";
  EXPECT_EQ(connection->awaited_by_streams.late(later), 1u);
  EXPECT_TRUE(stream.next_message_is_late()) << "nothing goes back";
  EXPECT_FALSE(second.next_message_is_late()) << "it is no stream";
  second = {};
  first = {};
  EXPECT_EQ(connection->awaited.late(later), 0u);
  stream.message_came();
  EXPECT_FALSE(stream.next_message_is_late()) << "it waits for none";
  EXPECT_EQ(connection->awaited_by_streams.late(later), 0u);
  stream.await_next_message();
  EXPECT_FALSE(third.next_message_is_late()) << "it never waited";
  EXPECT_EQ(connection->awaited_by_streams.late(2 * later), 1u);
  stream = {};
  EXPECT_EQ(connection->awaited_by_streams.late(2 * later), 0u);
}

TEST(AwaitedMessagesTest, AMessageIsLateAfterASecond) {
  AwaitedMessages awaited;
  const auto late = [&awaited](std::int64_t now_ms) { return awaited.late(now_ms); };
  const std::int64_t first = awaited.begin(10000), second = awaited.begin(10600);
  EXPECT_EQ(late(11249), 0u);
  EXPECT_FALSE(awaited.is_late(first, 11249));
  EXPECT_EQ(late(11250), 1u);
  EXPECT_TRUE(awaited.is_late(first, 11250));
  EXPECT_FALSE(awaited.is_late(second, 11250));
  const std::int64_t third = awaited.begin(11260);
  EXPECT_EQ(late(11900), 2u);
  awaited.end(first, 11910);
  awaited.end(third, 11920);
  EXPECT_EQ(late(11930), 1u);
  EXPECT_EQ(late(1000000), 1u) << "a long time without a call";
  awaited.end(second, 1000001);
  EXPECT_EQ(late(1000002), 0u);
}

// One that ends in the tick in which it becomes late, and one that ends just before.
TEST(AwaitedMessagesTest, TheLastMomentCounts) {
  for (const std::int64_t end : {10999, 11249, 11250, 11500}) {
    AwaitedMessages awaited;
    const std::int64_t begun = awaited.begin(10000);
    awaited.end(begun, end);
    EXPECT_EQ(awaited.late(end), 0u) << end;
    EXPECT_EQ(awaited.late(end + 5000), 0u) << end;
  }
}

}  // namespace
}  // namespace kilokv::server
