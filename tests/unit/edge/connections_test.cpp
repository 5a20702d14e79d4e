// How many connections are taken, from whom, and when their places are free again.
#include "tests/unit/edge/connections_fixture.hpp"

namespace kilokv::server {
namespace {

TEST_F(ConnectionsTest, NamedConnectionsEndAndTheOthersStay) {
  start(limits(10, 10));
  const Descriptor lost = connect(1), stays = connect(1);
  ASSERT_TRUE(soon([this] { return handed_over() == 2; }));
  {
    const std::lock_guard lock(mutex_);
    to_end_ = {name_of(lost), "ipv4:127.0.0.1:1"};
  }
  EXPECT_TRUE(is_closed(lost));
  ASSERT_TRUE(soon([this] { return connections_->counts().open == 1; }));
  EXPECT_EQ(connections_->counts().cut_off, 0u) << "its address has sent no flood";
  const Descriptor next = connect(1);
  ASSERT_TRUE(soon([this] { return handed_over() == 3; }));
  char byte = 0;
  EXPECT_EQ(::recv(stays.get(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(ended_, std::vector<std::string>{name_of(lost)});
  EXPECT_EQ(ends_.at(0).why, "its login or its certificate does not count any more");
}

// For the log: who closed it, for how long it was open, and what came on it.
TEST_F(ConnectionsTest, AnEndSaysWhy) {
  start(limits(10, 10));
  const auto next_end = [&](std::size_t count) {
    EXPECT_TRUE(soon([&] { return ended() == count; }));
    const std::lock_guard lock(mutex_);
    return ends_.at(count - 1);
  };
  {
    const std::int64_t before = steady_ms();
    Descriptor client = connect(1);
    const std::string name = name_of(client);
    ASSERT_TRUE(soon([this] { return handed_over() == 1; }));
    ASSERT_EQ(::send(client.get(), "12345", 5, MSG_NOSIGNAL), 5);
    client = {};
    const std::uint64_t looks = looks_;  // the second one from now on has noticed it
    ASSERT_TRUE(soon([&] { return looks_ >= looks + 2; }));
    {
      const std::lock_guard lock(mutex_);
      char bytes[5];
      EXPECT_EQ(::recv(handed_over_.front().get(), bytes, 5, 0), 5);
    }
    end_first();
    const ConnectionEnd end = next_end(1);
    EXPECT_EQ(end.peer, name);
    EXPECT_EQ(end.why, "the client closed it");
    EXPECT_GE(end.received_bytes, 5u);
    EXPECT_LE(end.received_bytes, 6u) << "the system counts the end of the connection as a byte";
    EXPECT_GT(end.age_ms, 0);
    EXPECT_LE(end.age_ms, steady_ms() - before);
  }
  const Descriptor stays = connect(1);
  ASSERT_TRUE(soon([this] { return handed_over() == 1; }));
  end_first();
  ASSERT_TRUE(is_closed(stays));
  EXPECT_EQ(next_end(2).why, "it was closed; which side was first is not known")
      << "the client has not closed its side";
  {
    Descriptor client = connect(1);
    ASSERT_TRUE(soon([this] { return handed_over() == 1; }));
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  }
  EXPECT_EQ(next_end(3).why, "the client reset it, or the network failed");
}

TEST_F(ConnectionsTest, BeyondTheTotalAreClosedAndCounted) {
  start(limits(4, 10));
  std::vector<Descriptor> clients;
  for (int address = 1; address <= 4; ++address) clients.push_back(connect(address));
  ASSERT_TRUE(soon([&] { return handed_over() == 4; }));
  EXPECT_TRUE(is_closed(connect(5)));
  EXPECT_EQ(connections_->counts().open, 4u);
  EXPECT_EQ(connections_->counts().accepted, 4u);
  EXPECT_EQ(connections_->counts().refused, 1u);
  ASSERT_TRUE(soon([&] {
    const std::lock_guard lock(mutex_);
    return !reports_.empty();
  }));
  EXPECT_EQ(reports_[0], "1+0 127.0.0.5: 4 connections are open (--connections-max)");
  end_first();
  ASSERT_TRUE(soon([&] { return connections_->counts().open == 3; }));
  const Descriptor next = connect(5);
  EXPECT_TRUE(soon([&] { return handed_over() == 4; }));
}

TEST_F(ConnectionsTest, ConnectionsThatEndAtOnceComeNoFasterThanTheyMay) {
  ConnectionLimits few = limits(100, 3);
  few.opens_max = 3;
  start(few);
  for (int i = 0; i < 3; ++i) {
    connect(2);  // and ends
    ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
    end_first();
    ASSERT_TRUE(soon([&] { return connections_->counts().open == 0; }));
  }
  EXPECT_TRUE(is_closed(connect(2)));
  const Descriptor other = connect(3);
  EXPECT_TRUE(soon([&] { return handed_over() == 1; }));
  EXPECT_EQ(connections_->counts().refused, 1u);
}

TEST(AddressRateTest, ComesBackWithTime) {
  AddressRate rate(10, 20);
  const auto all_at = [&](std::int64_t now_ms) {
    int taken = 0;
    while (rate.take("a", 1, now_ms)) ++taken;
    return taken;
  };
  EXPECT_EQ(all_at(0), 20);
  EXPECT_EQ(all_at(99), 0);
  EXPECT_EQ(all_at(500), 5);
  EXPECT_FALSE(rate.take("b", 21, 500));
  EXPECT_TRUE(rate.take("b", 20, 500)) << "what was refused did not count";
  EXPECT_FALSE(rate.take("b", 1, 500));
  EXPECT_EQ(rate.left("b", 600), 1);
  EXPECT_EQ(rate.left("c", 600), 20);
  rate.forget_quiet_ones(2499);
  EXPECT_EQ(rate.addresses(), 2u);
  EXPECT_TRUE(rate.take("a", 5, 2499));
  rate.forget_quiet_ones(2500);
  EXPECT_EQ(rate.addresses(), 1u) << "b is like a new address";
  EXPECT_EQ(all_at(100000), 20);
  rate.forget_quiet_ones(200000);
  EXPECT_EQ(rate.addresses(), 0u);
}

// gRPC names connections by address and port of the peer. Two of one name would hide each other's calls.
TEST_F(ConnectionsTest, APortOfAnAddressHasOneConnection) {
  start(limits(10, 10), "0.0.0.0:0");
  Descriptor first = connect(2, 0, 1);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  sockaddr_in own = {};
  socklen_t size = sizeof own;
  ASSERT_EQ(::getsockname(first.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
  const int port = ntohs(own.sin_port);
  EXPECT_TRUE(is_closed(connect(2, port, 3)));
  EXPECT_EQ(connections_->counts().refused, 1u);
  first = {};
  end_first();
  ASSERT_TRUE(soon([&] { return connections_->counts().open == 0; }));
  const Descriptor next = connect(2, port, 4);  // the system may not have ended the one to 3 yet
  EXPECT_TRUE(soon([&] { return handed_over() == 1; }));
}

TEST_F(ConnectionsTest, OneAddressHasABoundOfItsOwn) {
  start(limits(10, 2));
  const Descriptor first = connect(2), second = connect(2);
  EXPECT_TRUE(is_closed(connect(2)));
  const Descriptor other = connect(3);
  ASSERT_TRUE(soon([&] { return handed_over() == 3; }));
  end_first();
  ASSERT_TRUE(soon([&] { return connections_->counts().open == 2; }));
  const Descriptor again = connect(2);
  EXPECT_TRUE(soon([&] { return handed_over() == 3; }));
  EXPECT_TRUE(is_closed(connect(2))) << "the second connection still counts";
}

TEST_F(ConnectionsTest, OneAddressNeverHasMoreThanHalf) {
  start(limits(4, 100));
  const Descriptor first = connect(2), second = connect(2);
  EXPECT_TRUE(is_closed(connect(2)));
  const Descriptor other = connect(3);
  EXPECT_TRUE(soon([&] { return handed_over() == 3; }));
}

TEST_F(ConnectionsTest, AClientThatResetsTheConnectionFreesItsPlace) {
  start(limits(2, 2));
  {
    const Descriptor client = connect(1);
    ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  }
  EXPECT_TRUE(soon([&] { return connections_->counts().open == 0; }));
}

// The reader of the connection may not notice its end.
TEST_F(ConnectionsTest, AHalfClosedConnectionIsEndedAfterAWhile) {
  start(limits(2, 2));
  const Descriptor client = connect(1);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  ASSERT_EQ(::shutdown(client.get(), SHUT_WR), 0);
  EXPECT_EQ(connections_->counts().open, 1u);
  EXPECT_TRUE(soon([&] { return connections_->counts().open == 0; }));
  EXPECT_TRUE(is_closed(client));
}

// Without descriptors, connections wait in the listener, and the log is told.
TEST_F(ConnectionsTest, WithoutDescriptorsTheNextConnectionWaits) {
  start(limits(10, 10));
  const Descriptor first = connect(1);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Descriptor waiting = connect_without_descriptors(before);
  ASSERT_TRUE(soon([&] {
    const std::lock_guard lock(mutex_);
    return !reports_.empty();
  }));
  EXPECT_NE(reports_[0].find("unknown: the process is out of descriptors or memory"), std::string::npos) << reports_[0];
  EXPECT_EQ(handed_over(), 1u);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(soon([&] { return handed_over() == 2; }));
}

// gRPC reads from a new connection in the thread that hands it over, for as long as data comes.
TEST_F(ConnectionsTest, StopFreesAThreadThatReadsForEver) {
  reads_for_ever_ = true;
  start(limits(10, 10));
  const Descriptor client = connect(1);
  std::atomic<bool> sending{true};
  std::thread sender([&] {
    const std::vector<char> chunk(1000);
    while (sending.load()) ::send(client.get(), chunk.data(), chunk.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  });
  ASSERT_TRUE(soon([&] { return is_reading_.load(); }));
  connections_->stop();
  sending.store(false);
  sender.join();
}

TEST_F(ConnectionsTest, AStoppedServerListensNoMore) {
  start(limits(2, 2));
  connections_->stop();
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(0x7F000001u);
  to.sin_port = htons(static_cast<std::uint16_t>(port_));
  EXPECT_NE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
}

}  // namespace
}  // namespace kilokv::server
