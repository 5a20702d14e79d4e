// Which connections are cut off, and which addresses have to pause then.
#include "tests/unit/edge/connections_fixture.hpp"

namespace kilokv::server {
namespace {

TEST_F(FloodTest, BytesWithoutACallAreCutOff) {
  start(limits(10, 10));
  find({});
  const Descriptor client = connect(2);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  EXPECT_TRUE(is_cut(client));
  EXPECT_NE(report().find("0+1 127.0.0.2: it sent "), std::string::npos) << report();
  EXPECT_NE(report().find(" bytes that are no whole message"), std::string::npos) << report();
  EXPECT_EQ(connections_->counts().cut_off, 1u);
  EXPECT_EQ(inspected_.size(), 1u);
  EXPECT_EQ(inspected_.begin()->substr(0, 15), "ipv4:127.0.0.2:");
  EXPECT_TRUE(is_closed(connect(2))) << "that was a flood, so its address has to pause";
}

TEST_F(FloodTest, WholeMessagesAccountForTheirBytes) {
  start(limits(10, 10));
  find({.started = 1});
  const Descriptor client = connect(2);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  for (int i = 0; i < 5; ++i) {
    accounted_ += 10 * kMessageBytesMax;
    ASSERT_TRUE(send(client, 10 * kMessageBytesMax));
    look(client);
  }
  EXPECT_EQ(connections_->counts().cut_off, 0u);
  EXPECT_TRUE(is_cut(client));
}

// A message that is too long, for example. The client may connect again at once.
TEST_F(FloodTest, TooLongAMessageOfACallIsNoFlood) {
  start(limits(10, 10));
  find({.started = 1});
  const Descriptor client = connect(2);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  ASSERT_TRUE(send(client, kConnectionBytes + 4 * kMessageBytesMax));
  EXPECT_TRUE(soon([&] { return connections_->counts().cut_off == 1; }));
  const std::size_t before = handed_over();
  const Descriptor again = connect(2);
  EXPECT_TRUE(soon([&] { return handed_over() > before; }));
  EXPECT_EQ(connections_->counts().refused, 0u);
}

// A client that begins messages and resets their calls holds nothing for long, but all the time.
TEST_F(FloodTest, WhatCallsLoseCountsForTheirAddress) {
  start(limits(10, 10));
  const Descriptor client = connect(2);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  std::uint64_t calls = 0, sent = 0;
  EXPECT_TRUE(soon([&] {
    find({.started = ++calls, .answered = calls});
    sent += kMessageBytesMax;
    return !send(client, kMessageBytesMax);
  }));
  EXPECT_GT(sent, kUnreadBytesMax);
  EXPECT_NE(report().find("127.0.0.2: its address lost more than 3000000 bytes of unfinished messages in 10 seconds"),
            std::string::npos)
      << report();
  EXPECT_TRUE(is_closed(connect(2))) << "it has to pause";
}

TEST_F(FloodTest, EveryOpenCallMayHaveAMessageUnderWay) {
  start(limits(10, 10));
  find({.started = 6, .answered = 1});
  const Descriptor client = connect(2);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  ASSERT_TRUE(send(client, kConnectionBytes + 13 * kMessageBytesMax / 2));  // five calls, and two messages more
  look(client);
  EXPECT_EQ(connections_->counts().cut_off, 0u);
  EXPECT_TRUE(is_cut(client));
}

// Each connection is within its own bound. The address that holds most pays, until the others have room.
TEST_F(FloodTest, UnfinishedMessagesOfAllConnectionsHaveABound) {
  constexpr std::uint64_t kBytes = kConnectionBytes + kMessageBytesMax;
  start(limits(10, 10));
  find({.started = 2, .answered = 1});
  std::vector<Descriptor> clients;
  for (const int address : {3, 2, 2, 2, 2}) {
    clients.push_back(connect(address));
    ASSERT_TRUE(soon([&] { return handed_over() == clients.size(); }));
    ASSERT_TRUE(send(clients.back(), kBytes));
  }
  EXPECT_NE(report().find("127.0.0.2: it held "), std::string::npos) << report();
  EXPECT_NE(report().find("(--grpc-memory-max)"), std::string::npos) << report();
  EXPECT_TRUE(soon([&] { return connections_->counts().cut_off == 3; }));
  look(clients[0]);
  EXPECT_EQ(connections_->counts().cut_off, 3u);
}

// Nobody waits to see whether these last: messages of other connections come and go all the time.
TEST_F(FloodTest, FarTooManyBytesOfMessagesAreCutOffAtOnce) {
  start(limits(10, 10));
  find({.started = 20, .answered = 1});
  std::vector<Descriptor> clients;
  connect_many(4, &clients);
  for (const Descriptor& client : clients)
    ASSERT_TRUE(send(client, kUnreadBytesMax / 5));  // together less than all may
  for (const Descriptor& client : clients) send(client, kUnreadBytesMax);
  EXPECT_NE(report().find(" bytes of messages that lack their end, and all connections together too many"),
            std::string::npos)
      << report();
}

TEST_F(FloodTest, WhatNobodyHasReadIsNotLost) {
  start(limits(100, 100));
  const std::vector<char> chunk(100000);
  for (int i = 0; i < 40; ++i) {
    const Descriptor client = connect(2);
    ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
    ASSERT_EQ(::send(client.get(), chunk.data(), chunk.size(), MSG_NOSIGNAL), static_cast<ssize_t>(chunk.size()));
    end_first();
    ASSERT_TRUE(soon([&] { return connections_->counts().open == 0; }));
  }
  EXPECT_EQ(connections_->counts().cut_off, 0u);
  const Descriptor client = connect(2);
  EXPECT_TRUE(soon([&] { return handed_over() == 1; })) << "it need not pause";
}

// gRPC ends connections when its memory is used up, and their messages are gone before anybody looks at them.
TEST_F(FloodTest, AnAddressThatLosesMuchIsCutOff) {
  start(limits(20, 10));
  std::vector<Descriptor> clients;
  const auto add = [&](int address, std::uint64_t bytes) {
    clients.push_back(connect(address));
    ASSERT_TRUE(soon([&] { return handed_over() == clients.size(); }));
    ASSERT_TRUE(send(clients.back(), bytes));
  };
  for (int i = 0; i < 4; ++i) add(2, kUnreadBytesMax / 3);
  add(2, 200000);
  add(2, 100);
  add(3, 200000);
  end_first();
  end_first();
  ASSERT_TRUE(soon([&] { return ended() == 2; }));
  EXPECT_EQ(connections_->counts().cut_off, 0u) << "it has lost less than it may";
  end_first();
  end_first();
  EXPECT_NE(report().find("0+1 127.0.0.2: its address lost more than 3000000 bytes of unfinished messages"),
            std::string::npos)
      << report();
  EXPECT_TRUE(is_closed(connect(2))) << "it has to pause";
  const Descriptor other = connect(3);
  EXPECT_TRUE(soon([&] { return handed_over() == 4; })) << "the one that was cut off, two that stay, and this one";
  EXPECT_EQ(connections_->counts().cut_off, 1u);
}

TEST_F(FloodTest, BytesOfWholeMessagesAreNotLost) {
  start(limits(10, 10));
  for (int i = 0; i < 4; ++i) {
    const Descriptor client = connect(2);
    ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
    accounted_ += kUnreadBytesMax - 60000;  // few others are not lost
    ASSERT_TRUE(send(client, kUnreadBytesMax));
    end_first();
    ASSERT_TRUE(soon([&] { return connections_->counts().open == 0; }));
  }
  const Descriptor client = connect(2);
  EXPECT_TRUE(soon([&] { return handed_over() == 1; }));
  EXPECT_EQ(connections_->counts().refused, 0u);
}

// As many bytes come as in the test of unfinished messages, but a moment later they are of whole messages.
TEST_F(FloodTest, MessagesThatGetTheirEndAreNotHeld) {
  start(limits(10, 10));
  find({.started = 2, .answered = 1});
  std::vector<Descriptor> clients;
  connect_many(5, &clients);
  for (int round = 0; round < 5; ++round) {
    accounted_ += kConnectionBytes + kMessageBytesMax;
    for (const Descriptor& client : clients) ASSERT_TRUE(send(client, kConnectionBytes + kMessageBytesMax));
    look(clients[0]);
  }
  EXPECT_EQ(connections_->counts().cut_off, 0u);
}

// Each connection finishes a short message now and then, while it holds long ones.
TEST_F(FloodTest, OneMessageThatGetsItsEndDoesNotHideOthers) {
  start(limits(10, 10));
  find({.started = 2, .answered = 1});
  std::vector<Descriptor> clients;
  connect_many(5, &clients);
  for (const Descriptor& client : clients) ASSERT_TRUE(send(client, kConnectionBytes + kMessageBytesMax));
  EXPECT_TRUE(soon([&] {
    accounted_ += 100;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return connections_->counts().cut_off >= 2;
  }));
}

// What may be a part of a message that is late may be headers of other calls, so the connections stay.
TEST_F(FloodTest, CallsWhoseMessagesAreLateEndWhereTheyMayHoldTooMuch) {
  accounts_for_all_ = true;
  start(limits(10, 10));
  late_since_ms_ = 1;
  find({.started = 6, .answered = 1});
  std::vector<Descriptor> clients;
  connect_late(3, kUnreadBytesMax / 4, &clients);
  connect_late(2, kUnreadBytesMax / 4, &clients);
  connect_late(2, kUnreadBytesMax / 4, &clients);
  look(clients[0]);
  EXPECT_TRUE(ended_calls().empty()) << "three quarters are not too many";
  connect_late(2, kUnreadBytesMax / 2, &clients);
  ASSERT_TRUE(soon([&] { return !ended_calls().empty(); }));
  EXPECT_EQ(ended_calls().front(), "ipv4:127.0.0.2: " + std::to_string(kUnreadBytesMax / 2));
  look(clients[0]);
  EXPECT_EQ(ended_calls().size(), 1u) << "none is late any more";
  EXPECT_EQ(connections_->counts().cut_off, 0u);
}

TEST_F(FloodTest, LateCallsThatDoNotEndAreCutOff) {
  accounts_for_all_ = true;
  late_calls_end_ = false;
  start(limits(10, 10));
  late_since_ms_ = 1;
  find({.started = 6, .answered = 1});
  std::vector<Descriptor> clients;
  connect_late(3, kUnreadBytesMax / 2, &clients);
  connect_late(2, kUnreadBytesMax * 3 / 4, &clients);
  EXPECT_NE(report().find("127.0.0.2: its calls whose messages were late did not end"), std::string::npos) << report();
  EXPECT_GE(ended_calls().size(), 2u) << "they are told until then";
  EXPECT_TRUE(told_again_.load());
  look(clients[0]);
  EXPECT_EQ(connections_->counts().cut_off, 1u) << "the other one has room now";
}

// Messages that hide among short calls, as often as their calls end.
TEST_F(FloodTest, LateMessagesThatComeFastAndOftenAreCutOff) {
  accounts_for_all_ = true;
  start(limits(10, 10));
  find({.started = 6, .answered = 1});
  std::vector<Descriptor> clients;
  late_since_ms_ = steady_ms();
  connect_late(2, kUnreadBytesMax * 5 / 4, &clients);
  EXPECT_TRUE(soon([&] {
    late_since_ms_ = steady_ms();
    if (!send(clients[0], kUnreadBytesMax * 5 / 4)) return true;
    return connections_->counts().cut_off == 1;
  }));
  EXPECT_NE(report().find("127.0.0.2: its address lost more than"), std::string::npos) << report();
}

// Slow uploads, of which each connection has always some, and whole messages that come meanwhile.
TEST_F(FloodTest, WholeMessagesAreNotHeldByThoseThatAreLate) {
  accounts_for_all_ = true;
  start(limits(10, 10));
  late_since_ms_ = 1;
  find({.started = 6, .answered = 1});
  std::vector<Descriptor> clients;
  connect_many(4, &clients);
  for (int round = 0; round < 3; ++round) {
    message_bytes_ += kUnreadBytesMax;
    for (const Descriptor& client : clients) ASSERT_TRUE(send(client, kUnreadBytesMax));
    look(clients[0]);
  }
  EXPECT_EQ(connections_->counts().cut_off, 0u);
  EXPECT_TRUE(ended_calls().empty());
}

// Short calls that are refused do not hide long messages of others for long.
TEST_F(FloodTest, AnAddressIsNotForgivenMuchForRefusedCalls) {
  forgives_all_ = true;
  start(limits(10, 10));
  find({.started = 6, .answered = 1});
  std::vector<Descriptor> clients;
  connect_many(3, &clients);
  for (const Descriptor& client : clients) ASSERT_TRUE(send(client, kUnreadBytesMax / 2));
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));  // by then, what is there has lasted
  look(clients[0]);
  EXPECT_EQ(connections_->counts().cut_off, 0u) << "most of it was forgiven, and the rest is not too much";
  EXPECT_TRUE(is_cut(clients[0]));
}

TEST_F(FloodTest, RefusedCallsWhoseErrorsAreNotTakenHaveABound) {
  start(limits(10, 10));
  refused_calls_ = 6;
  std::vector<Descriptor> clients;
  const auto add = [&](int address) {
    clients.push_back(connect(address));
    ASSERT_TRUE(soon([&] { return handed_over() == clients.size(); }));
  };
  for (const int address : {3, 2, 2}) add(address);
  look(clients[0]);
  EXPECT_EQ(connections_->counts().cut_off, 0u) << "18 are not too many";
  add(2);
  EXPECT_NE(report().find("127.0.0.2: it has 6 refused calls whose errors it does not take"), std::string::npos)
      << report();
  EXPECT_TRUE(is_closed(connect(2))) << "it has to pause";
  look(clients[0]);
  EXPECT_EQ(connections_->counts().cut_off, 1u) << "the others have room again";
}

// All connections have some at the same time, which is too many, but not for long.
TEST_F(FloodTest, RefusedCallsThatComeAndGoAreNotCutOff) {
  start(limits(10, 10));
  std::vector<Descriptor> clients;
  connect_many(4, &clients);
  for (int i = 0; i < 15; ++i) {
    refused_calls_ = i % 2 == 0 ? 8 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // a look comes at least every 100 ms
  }
  EXPECT_EQ(connections_->counts().cut_off, 0u);
  refused_calls_ = 8;
  EXPECT_TRUE(soon([&] { return connections_->counts().cut_off == 2; })) << "until 16 are left";
}

TEST_F(FloodTest, ManyCancelledCallsAreCutOff) {
  for (const bool are_open : {false, true}) {  // gRPC counts a call that was reset as open for a while
    start(limits(10, 10));
    const Descriptor client = connect(2);
    ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
    const std::uint64_t calls = kCancelsMax + 20;
    std::uint64_t found = 0;
    EXPECT_TRUE(soon([&] {
      found += calls;
      find({.started = found, .answered = 0, .failed = are_open ? 0 : found});
      look(client);
      return connections_->counts().cut_off == 1;
    }));
    EXPECT_NE(report().find("its calls: more than 100 in a second were cancelled, or more than 12 had no valid login "
                            "(--connection-cancels-max)"),
              std::string::npos);
    connections_.reset();
    handed_over_.clear();
    reports_.clear();
  }
}

// Each connection stays below the bound of one, and all together do not stay below that of their address.
TEST_F(FloodTest, TheConnectionsOfAnAddressShareABound) {
  accounts_for_all_ = true;
  start(limits(100, 50));
  std::vector<Descriptor> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(connect(2));
  const Descriptor other = connect(3);
  ASSERT_TRUE(soon([&] { return handed_over() == 41; }));
  find({.started = kCancelsMax * 3 / 5, .answered = 0, .failed = kCancelsMax * 3 / 5});
  EXPECT_TRUE(soon([&] {
    for (const Descriptor& client : clients) static_cast<void>(send(client, 10000));
    return connections_->counts().cut_off > 0;
  }));
  EXPECT_NE(report().find("the calls of its address: more than 800 in a second were cancelled"), std::string::npos);
}

// Connections may be short, and their calls begin after their end. Nobody inspects them. The address has to pause.
TEST_F(FloodTest, UselessCallsOfConnectionsThatHaveEndedCount) {
  start(limits(10, 10));
  static_cast<void>(connect(2));
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  end_first();
  ASSERT_TRUE(soon([&] { return connections_->counts().open == 0; }));
  address_calls_ = 90;  // as 720 that are cancelled, of 800 in a second
  ASSERT_TRUE(soon([&] { return address_calls_ == 0; }));
  static_cast<void>(connect(2));
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  end_first();
  address_calls_ = 8000;
  ASSERT_TRUE(soon([&] { return address_calls_ == 0; }));
  static_cast<void>(connect(2));
  EXPECT_TRUE(soon([&] { return connections_->counts().refused == 1; }));
  EXPECT_NE(report().find("127.0.0.2: a flood came from this address"), std::string::npos) << report();
  EXPECT_EQ(inspections_.load(), 0u);
}

// Connections that go on with such calls are cut off, and others of the address are not.
TEST_F(FloodTest, UselessCallsAreCutOffWhereTheirAddressHasTooMany) {
  start(limits(10, 10));
  const Descriptor client = connect(2);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  calls_without_login_ += kCancelsMax;
  address_calls_ = 8000;
  ASSERT_TRUE(soon([&] { return address_calls_ == 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(connections_->counts().open + connections_->counts().cut_off, 1u);
  EXPECT_TRUE(soon([&] {
    address_calls_ = 8000;
    ++calls_without_login_;
    return connections_->counts().cut_off == 1;
  }));
  EXPECT_NE(report().find("the calls of its address: more than 800 in a second were cancelled"), std::string::npos);
}

TEST_F(FloodTest, OtherConnectionsOfAnAddressWithUselessCallsStay) {
  constexpr int kPort = 17172;
  watched_ = "ipv4:127.0.0.2:" + std::to_string(kPort);
  start(limits(10, 10));
  const Descriptor neighbour = connect(2), flood = connect(2, kPort);
  ASSERT_TRUE(soon([&] { return handed_over() == 2; }));
  EXPECT_TRUE(soon([&] {
    address_calls_ = 8000;
    ++calls_without_login_;
    return connections_->counts().cut_off > 0;
  }));
  EXPECT_TRUE(is_closed(flood));
  EXPECT_EQ(connections_->counts().cut_off, 1u);
  EXPECT_EQ(connections_->counts().open, 1u);
}

TEST_F(FloodTest, WhatAFloodHasSentIsNotRead) {
  accounts_for_all_ = true;
  start(limits(10, 10));
  const Descriptor client = connect(2);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  ASSERT_TRUE(send(client, 10000));
  const std::vector<char> calls(1000);
  ASSERT_EQ(::send(client.get(), calls.data(), calls.size(), 0), 1000);
  ASSERT_EQ(::send(client.get(), calls.data(), 1, MSG_OOB), 1);
  ASSERT_EQ(::send(client.get(), calls.data(), calls.size(), 0), 1000);
  find({.started = 1000, .answered = 0, .failed = 1000});
  ASSERT_TRUE(soon([&] { return connections_->counts().open == 0; }));
  EXPECT_EQ(connections_->counts().cut_off, 1u);
  char byte = 0;
  EXPECT_EQ(::recv(handed_over_[0].get(), &byte, 1, MSG_DONTWAIT), 0);
}

TEST_F(FloodTest, SomeCancelledCallsAreNot) {
  start(limits(10, 10));
  const Descriptor client = connect(2);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  for (std::uint64_t calls = 1; calls <= 4; ++calls) {
    find({.started = 30 * calls, .answered = 0, .failed = 30 * calls});
    ASSERT_TRUE(send(client, 10000));
    look(client);
  }
  EXPECT_EQ(connections_->counts().cut_off, 0u);
}

TEST_F(FloodTest, AfterAFloodItsAddressWaitsAndOthersDoNot) {
  start(limits(10, 10));
  find({});
  const Descriptor client = connect(2);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  ASSERT_TRUE(is_cut(client));
  // The pause is a second. On a slow machine it may be over before a connection comes, so several are tried.
  std::vector<Descriptor> tries;
  const std::uint64_t before = connections_->counts().refused;
  for (int i = 0; i < 20; ++i) {
    tries.push_back(connect(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // over some looks
  }
  ASSERT_TRUE(soon([&] { return connections_->counts().refused + connections_->counts().accepted >= before + 21; }));
  EXPECT_GE(connections_->counts().refused, before + 15) << "only one connection after each pause";
  const std::size_t of_others = handed_over();
  const Descriptor other = connect(3);
  ASSERT_TRUE(soon([&] { return handed_over() > of_others; }));
  EXPECT_TRUE(soon([&] {
    const std::uint64_t accepted = connections_->counts().accepted;
    tries.push_back(connect(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return connections_->counts().accepted > accepted;
  }));
}

}  // namespace
}  // namespace kilokv::server
