// How many connections are taken, from whom, and when their places are free again.
#include "server/edge/connections.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <vector>

namespace kilokv::server {
namespace {

// Waits for something that another thread does. Fails after a minute.
template <class Condition>
testing::AssertionResult soon(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return testing::AssertionFailure() << "not within a minute";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return testing::AssertionSuccess();
}

class ConnectionsTest : public testing::Test {
 protected:
  void start(ConnectionLimits limits) {
    Result<Listener> listener = listen_on("127.0.0.1:0");
    ASSERT_TRUE(listener.ok());
    port_ = listener->port;
    connections_ = std::make_unique<Connections>(
        std::move(*listener), limits,
        [this](int, Descriptor connection) {
          const std::lock_guard lock(mutex_);
          handed_over_.push_back(std::move(connection));
        },
        [this](std::uint64_t count, const std::string& address, const std::string& why) {
          const std::lock_guard lock(mutex_);
          reports_.push_back(std::to_string(count) + " " + address + ": " + why);
        });
    connections_->start();
  }

  // A client at 127.0.0.`address`.
  Descriptor connect(int address) const {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in from = {}, to = {};
    from.sin_family = to.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(0x7F000000u + static_cast<std::uint32_t>(address));
    to.sin_addr.s_addr = htonl(0x7F000001u);
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return socket;
  }
  std::size_t handed_over() {
    const std::lock_guard lock(mutex_);
    return handed_over_.size();
  }
  // As gRPC does when it is done with a connection.
  void end_first() {
    const std::lock_guard lock(mutex_);
    ::shutdown(handed_over_.front().get(), SHUT_RDWR);
    handed_over_.erase(handed_over_.begin());
  }
  static bool is_closed(const Descriptor& client) {
    char byte = 0;
    return ::recv(client.get(), &byte, 1, 0) <= 0;
  }

  int port_ = 0;
  std::mutex mutex_;
  std::vector<Descriptor> handed_over_;
  std::vector<std::string> reports_;
  std::unique_ptr<Connections> connections_;  // uses the others, so it ends first
};

TEST_F(ConnectionsTest, BeyondTheTotalAreClosedAndCounted) {
  start({.connections_max = 4, .connections_per_address_max = 10});
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
  EXPECT_EQ(reports_[0], "1 127.0.0.5: 4 connections are open (--connections-max)");
  end_first();
  ASSERT_TRUE(soon([&] { return connections_->counts().open == 3; }));
  const Descriptor next = connect(5);
  EXPECT_TRUE(soon([&] { return handed_over() == 4; }));
}

TEST_F(ConnectionsTest, OneAddressHasABoundOfItsOwn) {
  start({.connections_max = 10, .connections_per_address_max = 2});
  const Descriptor first = connect(2), second = connect(2);
  EXPECT_TRUE(is_closed(connect(2)));
  const Descriptor other = connect(3);
  ASSERT_TRUE(soon([&] { return handed_over() == 3; }));
  end_first();
  ASSERT_TRUE(soon([&] { return connections_->counts().open == 2; }));
  const Descriptor again = connect(2);
  EXPECT_TRUE(soon([&] { return handed_over() == 3; }));
}

TEST_F(ConnectionsTest, OneAddressNeverHasMoreThanHalf) {
  start({.connections_max = 4, .connections_per_address_max = 100});
  const Descriptor first = connect(2), second = connect(2);
  EXPECT_TRUE(is_closed(connect(2)));
  const Descriptor other = connect(3);
  EXPECT_TRUE(soon([&] { return handed_over() == 3; }));
}

TEST_F(ConnectionsTest, AClientThatResetsTheConnectionFreesItsPlace) {
  start({.connections_max = 2, .connections_per_address_max = 2});
  {
    const Descriptor client = connect(1);
    ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  }
  EXPECT_TRUE(soon([&] { return connections_->counts().open == 0; }));
}

// Whoever reads from the connection may have gone without a word.
TEST_F(ConnectionsTest, AHalfClosedConnectionIsEndedAfterAWhile) {
  start({.connections_max = 2, .connections_per_address_max = 2});
  const Descriptor client = connect(1);
  ASSERT_TRUE(soon([&] { return handed_over() == 1; }));
  ASSERT_EQ(::shutdown(client.get(), SHUT_WR), 0);
  EXPECT_EQ(connections_->counts().open, 1u);
  EXPECT_TRUE(soon([&] { return connections_->counts().open == 0; }));
  EXPECT_TRUE(is_closed(client));
}

TEST_F(ConnectionsTest, AStoppedServerListensNoMore) {
  start({.connections_max = 2, .connections_per_address_max = 2});
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
