// What clients may hold of a limit that they share.
#include "server/core/clients/shared_limit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/core/clients/client.hpp"
#include "server/core/clients/client_table.hpp"
#include "server/core/clients/in_flight.hpp"
#include "server/core/sessions/session_owner.hpp"

namespace kilokv::server {
namespace {

constexpr SharedLimit::Name kName{ErrorReason::queue_full, "queue", " bytes", "--queue-bytes-max", 10};

// How much a client gets, one by one, until it is refused.
std::uint64_t take_all(SharedLimit* limit, Held* client) {
  std::uint64_t taken = 0;
  while (limit->charge(client, 1).ok()) ++taken;
  return taken;
}

TEST(SharedLimitTest, NobodyInParticularMayHoldEverything) {
  SharedLimit limit(100, kName);
  EXPECT_EQ(take_all(&limit, nullptr), 100u);
  const Status refused = limit.charge(nullptr, 1);
  EXPECT_EQ(refused.reason(), ErrorReason::queue_full);
  EXPECT_EQ(refused.message(),
            "queue is 101 bytes with this request; the limit is 100 bytes (raise --queue-bytes-max)");
  EXPECT_EQ(refused.retry_after_us(), 10);
  EXPECT_EQ(limit.held(), 100u) << "what was refused is not counted";
  limit.release(nullptr, 100);
  EXPECT_EQ(limit.held(), 0u);
}

TEST(SharedLimitTest, WhoHoldsSomethingIsCounted) {
  SharedLimit limit(100, kName);
  Held first, second;
  EXPECT_TRUE(limit.charge(&first, 2).ok());
  EXPECT_TRUE(limit.charge(&first, 1).ok());
  EXPECT_TRUE(limit.charge(nullptr, 1).ok());
  EXPECT_TRUE(limit.charge(&second, 0).ok());
  EXPECT_EQ(limit.holders(), 1u);
  limit.add(&second, 5);
  EXPECT_FALSE(limit.charge(&second, 200).ok());
  EXPECT_EQ(limit.holders(), 2u);
  limit.release(&first, 2);
  limit.release(&second, 0);
  EXPECT_EQ(limit.holders(), 2u);
  limit.release(&first, 1);
  limit.release(&second, 5);
  EXPECT_EQ(limit.holders(), 0u);
}

TEST(SharedLimitTest, HoweverManyClientsAreGreedyEachLeavesRoomForTheNext) {
  SharedLimit limit(10000, kName);
  std::vector<Held> greedy(64);
  EXPECT_EQ(take_all(&limit, &greedy[0]), 8000u) << "four fifths";
  for (std::size_t i = 1; i < greedy.size(); ++i) EXPECT_GT(take_all(&limit, &greedy[i]), 0u) << i;
  EXPECT_LE(limit.held(), 10000u * 7 / 8 + 64 * 2);
  Held light{0};
  EXPECT_EQ(take_all(&limit, &light), 2u) << "10,000 / 4,096";
}

// Connections that each hold little are not refused before the last sixteenth, however many they are. The rest is for
// clients of other addresses.
TEST(SharedLimitTest, TheConnectionsOfOneAddressCannotFillTheLimit) {
  SharedLimit limit(1000000, kName);
  Held address, other_address;
  std::deque<Held> greedy;
  for (int i = 0; i < 600; ++i) take_all(&limit, &greedy.emplace_back(&address));
  EXPECT_GT(limit.held(), 900000u);
  EXPECT_LE(limit.held(), 1000000u * 15 / 16 + 1000000 / 512);
  Held light(&other_address), next(&other_address);
  EXPECT_EQ(take_all(&limit, &light), 244u) << "1,000,000 / 4,096";
  EXPECT_EQ(take_all(&limit, &next), 244u);
  const Status refused = limit.charge(&greedy.emplace_back(&address), 1);
  EXPECT_NE(refused.message().find(" bytes of the connections of this address with this request; the limit is 1953 "
                                   "bytes for one address at the moment"),
            std::string::npos)
      << refused.message();
}

TEST(SharedLimitTest, AnAddressHasTheShareOfAClientAndWhoHoldsLittleGoesOn) {
  SharedLimit limit(1000000, kName);
  Held address;
  Held first(&address), second(&address), light(&address);
  EXPECT_EQ(take_all(&limit, &first), 800000u) << "four fifths";
  EXPECT_EQ(take_all(&limit, &second), 244u);
  EXPECT_EQ(take_all(&limit, &light), 244u);
  EXPECT_EQ(address.of_address(), 800488u);
  limit.release(&first, 800000);
  EXPECT_EQ(address.of_address(), 488u);
  EXPECT_GT(take_all(&limit, &second), 700000u);
}

TEST(SharedLimitTest, WithALowLimitOneUsualItemCountsAsLittle) {
  SharedLimit low(16 << 20, kName, SharedLimit::kLittleBytes);
  Held greedy, light;
  ASSERT_TRUE(low.charge(nullptr, 15 << 20).ok());
  EXPECT_FALSE(low.charge(&greedy, SharedLimit::kLittleBytes + 1).ok());
  EXPECT_TRUE(low.charge(&light, SharedLimit::kLittleBytes).ok());
}

TEST(SharedLimitTest, ARefusalOfAClientNamesItsShare) {
  SharedLimit limit(100, kName);
  Held client{0};
  ASSERT_TRUE(limit.charge(&client, 60).ok());
  const Status refused = limit.charge(&client, 25);
  EXPECT_EQ(
      refused.message(),
      "queue is 85 bytes of this client with this request; the limit is 60 bytes for one client at the moment (raise "
      "--queue-bytes-max)");
  EXPECT_EQ(client.load(), 60u);
  EXPECT_EQ(limit.held(), 60u);
}

TEST(SharedLimitTest, WhoComesFirstMayTakeEverythingInOneStep) {
  SharedLimit limit(100, kName);
  Held client{0}, other{0};
  EXPECT_TRUE(limit.charge(&client, 100).ok());
  EXPECT_FALSE(limit.charge(&other, 1).ok());
  limit.release(&client, 100);
  EXPECT_TRUE(limit.charge(&client, 150, 150).ok()) << "even more, where the caller raises the limit";
  EXPECT_FALSE(limit.charge(&other, 1, 2).ok());
}

TEST(SharedLimitTest, ASmallPartIsAlwaysFreeForAClientWhileTheLimitHasRoom) {
  SharedLimit limit(1000, kName);
  Held greedy{0}, late{0};
  ASSERT_TRUE(limit.charge(nullptr, 800).ok());
  EXPECT_EQ(take_all(&limit, &greedy), 75u) << "up to the last eighth";
  ASSERT_TRUE(limit.charge(nullptr, 123).ok());
  EXPECT_TRUE(limit.charge(&late, 1).ok()) << "one item is always allowed";
  EXPECT_FALSE(limit.charge(&late, 1).ok());
  ASSERT_TRUE(limit.charge(nullptr, 1).ok());
  Held later{0};
  EXPECT_FALSE(limit.charge(&later, 1).ok()) << "the limit itself holds";
}

TEST(SharedLimitTest, WhatHadItsRoomBeforeIsAddedWithoutACheck) {
  SharedLimit limit(10, kName);
  Held client{0};
  limit.add(&client, 20);
  EXPECT_EQ(limit.held(), 20u);
  EXPECT_FALSE(limit.charge(nullptr, 1).ok());
  limit.release(&client, 20);
  EXPECT_EQ(client.load(), 0u);
}

// A large charge that is refused must not take the room for a moment in which another client needs it.
TEST(SharedLimitTest, WhatIsRefusedDoesNotMakeTheChargesOfOthersFail) {
  SharedLimit limit(1000, kName);
  Held greedy{0}, light{0};
  ASSERT_TRUE(limit.charge(&greedy, 700).ok());
  std::atomic<bool> is_over{false};
  std::thread refused([&] {
    while (!is_over) {
      EXPECT_FALSE(limit.charge(&greedy, 250).ok());  // beyond its share
      EXPECT_FALSE(limit.charge(&greedy, 500).ok());  // beyond the limit
    }
  });
  int failed = 0;
  for (int i = 0; i < 300000; ++i) {
    if (limit.charge(&light, 100).ok()) {
      limit.release(&light, 100);
    } else {
      ++failed;
    }
  }
  is_over = true;
  refused.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(limit.held(), 700u);
}

TEST(InFlightTest, CountsForTheClientUntilTheAnswer) {
  InFlight calls(10, "scans", "--scans-in-flight-max", &Client::scans);
  const auto client = std::make_shared<Client>("a");
  std::vector<std::function<void(int)>> answers;
  while (calls.enter(client).ok()) answers.push_back(calls.returning(client, std::function<void(int)>([](int) {})));
  EXPECT_EQ(answers.size(), 8u);
  const Status refused = calls.enter(client);
  EXPECT_EQ(refused.reason(), ErrorReason::calls_full);
  EXPECT_TRUE(refused.not_run());
  EXPECT_TRUE(calls.enter(nullptr).ok());
  answers.front()(1);
  EXPECT_EQ(client->scans.load(), 7u);
}

TEST(SessionOwnerTest, CopiesCountOnce) {
  const auto client = std::make_shared<Client>("a");
  {
    const SessionOwner owner(client);
    const SessionOwner copy = owner;  // NOLINT(performance-unnecessary-copy-initialization): the test is about copies
    EXPECT_EQ(copy.sessions(), 1u);
    const SessionOwner second(client);
    EXPECT_EQ(client->sessions.load(), 2u);
  }
  EXPECT_EQ(client->sessions.load(), 0u);
  EXPECT_FALSE(SessionOwner(nullptr).known());
  EXPECT_FALSE(SessionOwner(std::make_shared<Client>("")).known());
}

TEST(ClientTableTest, AClientIsKeptWhileItCallsOrIsHeld) {
  ClientTable table;
  const auto held = table.client("held");
  const Client* const regular = table.client("regular").get();
  EXPECT_EQ(table.client("held"), held);
  EXPECT_NE(table.client("regular"), held);
  table.client("regular")->queue.begin = 5;
  for (int i = 0; i < 20000; ++i) {
    table.client("passing " + std::to_string(i));
    if (i % 100 != 0) continue;
    EXPECT_EQ(table.client("regular").get(), regular) << "between its calls nobody holds it";
  }
  EXPECT_EQ(table.client("regular")->queue.begin, 5) << "it keeps its place in the turns";
  EXPECT_LT(table.size(), 6000u) << "those that do not come back are forgotten";
  EXPECT_EQ(table.client("held"), held);
}

TEST(ClientTableTest, TheConnectionsOfOneAddressHaveOneKeeper) {
  ClientTable table;
  const auto a = table.connection("ipv4:10.0.0.1:40000"), b = table.connection("ipv4:10.0.0.1:40001");
  EXPECT_NE(a, b);
  EXPECT_EQ(a->keeper(), b->keeper());
  EXPECT_EQ(a->keeper()->name, "ipv4:10.0.0.1");
  EXPECT_EQ(keeper_of(a).get(), a->keeper());
  EXPECT_NE(table.connection("ipv4:10.0.0.2:40000")->keeper(), a->keeper());
  const auto user = table.client("user:alice");
  EXPECT_EQ(user->keeper(), user.get());
  EXPECT_EQ(keeper_of(nullptr), nullptr);
}

TEST(ClientTableTest, TheKeeperStaysWhileAConnectionOrASessionHoldsIt) {
  ClientTable table;
  SessionOwner owner(table.connection("ipv4:10.0.0.1:1"));
  EXPECT_EQ(owner.sessions(), 1u);
  for (int i = 0; i < 20000; ++i) table.connection("ipv4:10.1." + std::to_string(i % 200) + ".1:" + std::to_string(i));
  EXPECT_EQ(SessionOwner(table.connection("ipv4:10.0.0.1:2")).sessions(), 2u) << "a new connection, the same address";
}

TEST(ClientTableTest, ThePortIsNoPartOfAnAddressAndAHostOfIpv6HasOneName) {
  const auto address = [](const char* peer) { return ClientTable::address_of(peer); };
  EXPECT_EQ(address("ipv4:127.0.0.1:40000"), "ipv4:127.0.0.1");
  EXPECT_EQ(address("ipv6:%5B::1%5D:40000"), "ipv6:::");
  EXPECT_EQ(address("ipv6:[2001:db8:1:2:3:4:5:6]:40000"), "ipv6:2001:db8:1:2::");
  EXPECT_EQ(address("ipv6:%5B2001:db8:1:2:ffff::1%5D:1"), "ipv6:2001:db8:1:2::");
  EXPECT_EQ(address("ipv6:%5Bfe80::1%25eth0%5D:1"), "ipv6:fe80::");
  EXPECT_EQ(address("ipv6:%5B::ffff:10.0.0.1%5D:40000"), "ipv4:10.0.0.1");
  for (const char* odd : {"unix:/run/kilokv", "ipv4:", "ipv6:", "ipv6:%5Bx%5D:1", "", "greedy"}) {
    EXPECT_EQ(address(odd), odd);
  }
}

}  // namespace
}  // namespace kilokv::server
