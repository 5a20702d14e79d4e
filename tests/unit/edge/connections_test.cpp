// How many connections are taken, from whom, and when their places are free again.
#include "server/edge/connections.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace kilokv::server {
namespace {

constexpr std::uint64_t kConnectionBytes = std::uint64_t{1} << 20;  // as in connections.cpp
constexpr std::uint64_t kMessageBytesMax = 100000, kUnreadBytesMax = 3000000;
constexpr std::uint32_t kCancelsMax = 100;

ConnectionLimits limits(std::uint32_t connections_max, std::uint32_t connections_per_address_max) {
  return {.connections_max = connections_max,
          .connections_per_address_max = connections_per_address_max,
          .message_bytes_max = kMessageBytesMax,
          .messages_more = 2,
          .unread_bytes_max = kUnreadBytesMax,
          .refused_calls_max = 20,
          .calls_max = 10,
          .cancels_max = kCancelsMax,
          .opens_max = 100000};
}

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

std::int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

class ConnectionsTest : public testing::Test {
 protected:
  void start(ConnectionLimits limits) {
    Result<Listener> listener = listen_on("127.0.0.1:0");
    ASSERT_TRUE(listener.ok());
    port_ = listener->port;
    Connections::Callbacks callbacks;
    callbacks.hand_over = [this](int, Descriptor connection) {
      if (reads_for_ever_) return read_to_the_end(connection);
      const std::lock_guard lock(mutex_);
      handed_over_.push_back(std::move(connection));
    };
    callbacks.inspect = [this](const std::string& peer) -> std::optional<CallCounts> {
      const std::lock_guard lock(mutex_);
      inspected_.insert(peer);
      ++inspections_;
      return found_;
    };
    callbacks.use_of = [this](const std::string&) {
      return PeerUse{.accounted_bytes =
                         accounts_for_all_.load() ? accounted_.fetch_add(std::uint64_t{1} << 32) : accounted_.load(),
                     .message_bytes = message_bytes_.load(),
                     .forgiven_bytes = forgives_all_.load() ? forgiven_.fetch_add(std::uint64_t{1} << 32) : 0,
                     .refused_calls = refused_calls_.load(),
                     .late_since_ms = late_since_ms_.load()};
    };
    callbacks.end_late_calls = [this](const Connections::Late& late) {
      const std::lock_guard lock(mutex_);
      if (late_calls_end_) late_since_ms_ = PeerUse::kNever;
      told_again_ = told_again_ || late.is_again;
      ended_calls_.push_back(late.peer.substr(0, late.peer.rfind(':')) + ": " + std::to_string(late.bytes));
    };
    callbacks.take_ended = [this] {
      const std::lock_guard lock(mutex_);
      return std::exchange(to_end_, {});
    };
    callbacks.on_end = [this](const std::string& peer) {
      const std::lock_guard lock(mutex_);
      ended_.push_back(peer);
    };
    callbacks.on_report = [this](const Connections::Report& report) {
      const std::lock_guard lock(mutex_);
      if (report.crowds > 0) crowd_ = report.crowd;
      reports_.push_back(std::to_string(report.refused) + "+" + std::to_string(report.cut_off) + " " + report.address +
                         ": " + report.why);
    };
    connections_ = std::make_unique<Connections>(std::move(*listener), limits, std::move(callbacks));
    connections_->start();
  }

  void read_to_the_end(const Descriptor& connection) {
    is_reading_.store(true);
    std::vector<char> chunk(1000);
    for (;;) {
      const ssize_t got = ::recv(connection.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return;
    }
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
  // A client, after whose socket the process may have no further descriptor.
  Descriptor connect_without_descriptors(rlimit limit) const {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    limit.rlim_cur = static_cast<rlim_t>(socket.get()) + 1;  // the lowest free number, so all below are in use
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(0x7F000001u);
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return socket;
  }
  std::size_t handed_over() {
    const std::lock_guard lock(mutex_);
    return handed_over_.size();
  }
  std::size_t ended() {
    const std::lock_guard lock(mutex_);
    return ended_.size();
  }
  // As gRPC does when it is done with a connection.
  void end_first() {
    const std::lock_guard lock(mutex_);
    ::shutdown(handed_over_.front().get(), SHUT_RDWR);
    handed_over_.erase(handed_over_.begin());
  }
  static bool is_closed(const Descriptor& client) {
    const timeval patience = {.tv_sec = 30, .tv_usec = 0};
    EXPECT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    char byte = 0;
    const ssize_t got = ::recv(client.get(), &byte, 1, 0);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }

  int port_ = 0;
  std::mutex mutex_;
  std::vector<Descriptor> handed_over_;
  std::vector<std::string> reports_;
  std::string crowd_;  // the last address whose connections took turns
  std::set<std::string> inspected_;
  std::vector<std::string> to_end_, ended_;  // peers
  std::vector<std::string> ended_calls_;     // the address, and the bytes
  bool late_calls_end_ = true;               // when they are told to
  std::atomic<bool> told_again_{false};      // some were told for a while, and had not ended
  std::atomic<std::uint64_t> inspections_{0};
  std::atomic<bool> accounts_for_all_{true};  // all bytes are of whole messages, and not only those in `accounted_`
  std::atomic<std::uint64_t> accounted_{0};
  std::atomic<bool> forgives_all_{false};  // all bytes may be of calls that were refused
  std::atomic<std::uint64_t> forgiven_{0};
  std::atomic<std::uint64_t> refused_calls_{0};               // of each connection
  std::atomic<std::int64_t> late_since_ms_{PeerUse::kNever};  // likewise
  std::atomic<std::uint64_t> message_bytes_{0};
  bool reads_for_ever_ = false;
  std::atomic<bool> is_reading_{false};
  std::optional<CallCounts> found_;
  std::unique_ptr<Connections> connections_;  // uses the others, so it ends first
};

std::string name_of(const Descriptor& client) {
  sockaddr_in own = {};
  socklen_t size = sizeof own;
  EXPECT_EQ(::getsockname(client.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
  return "ipv4:127.0.0.1:" + std::to_string(ntohs(own.sin_port));
}

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

// Floods. What is "found" in the connection is what the test says.
class FloodTest : public ConnectionsTest {
 protected:
  void SetUp() override { accounts_for_all_ = false; }
  void find(const CallCounts& counts) {
    const std::lock_guard lock(mutex_);
    found_ = counts;
  }
  // Sends, and reads at the other end, as gRPC does. Returns false if the connection was cut off.
  bool send(const Descriptor& client, std::uint64_t bytes) {
    std::vector<char> chunk(10000);
    for (std::uint64_t sent = 0; sent < bytes; sent += chunk.size()) {
      if (::send(client.get(), chunk.data(), chunk.size(), MSG_NOSIGNAL) <= 0) return false;
      const std::lock_guard lock(mutex_);
      for (const Descriptor& reader : handed_over_) {
        while (::recv(reader.get(), chunk.data(), chunk.size(), MSG_DONTWAIT) > 0) continue;
      }
    }
    return true;
  }
  std::string report() {
    EXPECT_TRUE(soon([&] {
      const std::lock_guard lock(mutex_);
      return !reports_.empty();
    }));
    return reports_.empty() ? "" : reports_.front();
  }
  void connect_many(std::size_t count, std::vector<Descriptor>* clients) {
    while (clients->size() < count) {
      clients->push_back(connect(2));
      ASSERT_TRUE(soon([&] { return handed_over() == clients->size(); }));
    }
  }
  // Sends until the connection is cut off.
  testing::AssertionResult is_cut(const Descriptor& client) {
    return soon([&] { return !send(client, kMessageBytesMax); });
  }
  // Connects from 127.0.0.`address`, and sends these many bytes.
  void connect_late(int address, std::uint64_t bytes, std::vector<Descriptor>* clients) {
    clients->push_back(connect(address));
    ASSERT_TRUE(soon([&] { return handed_over() == clients->size(); }));
    ASSERT_TRUE(send(clients->back(), bytes));
  }
  std::vector<std::string> ended_calls() {
    const std::lock_guard lock(mutex_);
    return ended_calls_;
  }
  // Waits for two inspections, or until the connection is cut off: when the second begins, the first has had its
  // effect. The bytes that the client sends make its connection busy enough.
  void look(const Descriptor& client) {
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t before = inspections_.load();
      if (!send(client, 10000)) return;
      EXPECT_TRUE(soon([&] { return inspections_.load() > before || connections_->counts().cut_off > 0; }));
    }
  }
};

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

// A crowd of connections of 127.0.0.2, and one of 127.0.0.3.
class CrowdTest : public FloodTest {
 protected:
  static constexpr std::size_t kMany = 6;

  void SetUp() override {
    accounts_for_all_ = true;
    start(limits(20, 20));
    for (std::size_t i = 0; i <= kMany; ++i) {
      clients_.push_back(connect(i < kMany ? 2 : 3));
      ASSERT_TRUE(soon([&] { return handed_over() == i + 1; }));
    }
  }
  void send_calls(const Descriptor& client) {
    const std::vector<char> calls(100);
    ASSERT_EQ(::send(client.get(), calls.data(), calls.size(), 0), 100);
  }
  // The buffer of the first connection is full.
  void begin_turns_with_a_full_buffer() {
    for (const Descriptor& client : clients_) send_calls(client);
    ASSERT_TRUE(soon([&] { return held() > 0; }));
    const std::vector<char> chunk(10000);
    while (::send(clients_[0].get(), chunk.data(), chunk.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
  // The connections that gRPC would read now.
  std::vector<std::size_t> readable() {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < handed_over_.size(); ++i) {
      pollfd one = {.fd = handed_over_[i].get(), .events = POLLIN, .revents = 0};
      if (::poll(&one, 1, 0) == 1) numbers.push_back(i);
    }
    return numbers;
  }
  std::size_t held() {
    std::size_t count = 0;
    for (const Descriptor& connection : handed_over_) {
      int least = 0;
      socklen_t size = sizeof least;
      EXPECT_EQ(::getsockopt(connection.get(), SOL_SOCKET, SO_RCVLOWAT, &least, &size), 0);
      count += least != 1;
    }
    return count;
  }
  ssize_t read(std::size_t number) {
    std::vector<char> bytes(1000);
    return ::recv(handed_over_[number].get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  }

  std::vector<Descriptor> clients_;
};

TEST_F(CrowdTest, IsReadInTurnsUntilNobodyWaits) {
  for (const Descriptor& client : clients_) send_calls(client);
  ASSERT_TRUE(soon([&] { return readable().size() == 2; }));
  EXPECT_EQ(read(kMany), 100) << "the other address does not wait";
  std::set<std::size_t> were_read;
  while (were_read.size() < kMany) {
    ASSERT_TRUE(soon([&] { return !readable().empty(); }));
    for (const std::size_t number : readable()) {
      EXPECT_EQ(read(number), 100);
      EXPECT_TRUE(were_read.insert(number).second);
    }
  }
  ASSERT_TRUE(soon([&] {
    const std::lock_guard lock(mutex_);
    return crowd_ == "127.0.0.2";
  }));
  EXPECT_TRUE(soon([&] { return held() == 0; }));
  for (const Descriptor& client : clients_) send_calls(client);
  EXPECT_EQ(readable().size(), clients_.size());
  EXPECT_EQ(connections_->counts().cut_off, 0u);
}

TEST_F(CrowdTest, ManyBytesOfCallsAreCutOff) {
  begin_turns_with_a_full_buffer();
  EXPECT_TRUE(soon([&] { return connections_->counts().open == kMany; }));
  EXPECT_TRUE(is_closed(clients_[0]));
  EXPECT_EQ(connections_->counts().cut_off, 1u);
}

TEST_F(CrowdTest, LongMessagesAreNotCutOff) {
  begin_turns_with_a_full_buffer();
  message_bytes_ = 1 << 20;  // of each connection
  std::this_thread::sleep_for(std::chrono::milliseconds(2 * ReadingTurns::kUnbearableMs));
  EXPECT_EQ(connections_->counts().cut_off, 0u);
}

TEST_F(CrowdTest, EndsBeforeTheTurnsGetNoneEither) {
  for (std::size_t i = 0; i < kMany; ++i) {
    send_calls(clients_[i]);
    ::shutdown(clients_[i].get(), SHUT_WR);
  }
  send_calls(clients_[kMany]);
  EXPECT_TRUE(soon([&] { return connections_->counts().open == 1; }));
  EXPECT_EQ(connections_->counts().cut_off, 0u);
  for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(read(i), 0);
}

TEST_F(CrowdTest, NobodyIsHeldBackAfterTheEnd) {
  for (const Descriptor& client : clients_) send_calls(client);
  ASSERT_TRUE(soon([&] { return held() > 0; }));
  connections_->stop();
  EXPECT_EQ(held(), 0u);
}

TEST_F(CrowdTest, AnEndGetsNoTurn) {
  for (const Descriptor& client : clients_) send_calls(client);
  ASSERT_TRUE(soon([&] { return readable().size() == 2; }));
  const std::size_t held = readable().front() == 0 ? 1 : 0;
  ::shutdown(clients_[held].get(), SHUT_WR);
  EXPECT_TRUE(soon([&] { return connections_->counts().open == kMany; }));
  EXPECT_EQ(read(held), 0) << "its calls are gone";
  EXPECT_TRUE(is_closed(clients_[held]));
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
