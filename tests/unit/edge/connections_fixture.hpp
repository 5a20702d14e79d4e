// What the tests of Connections share: real sockets of this machine, and what the service would count.
#pragma once

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
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <vector>
#include "server/edge/connections.hpp"

namespace kilokv::server {

inline constexpr std::uint64_t kConnectionBytes = std::uint64_t{1} << 20;  // as in connections.cpp
inline constexpr std::uint64_t kMessageBytesMax = 100000, kUnreadBytesMax = 3000000;
inline constexpr std::uint32_t kCancelsMax = 100;

inline ConnectionLimits limits(std::uint32_t connections_max, std::uint32_t connections_per_address_max) {
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

inline std::int64_t steady_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

class ConnectionsTest : public testing::Test {
 protected:
  void start(ConnectionLimits limits, const std::string& listens_on = "127.0.0.1:0") {
    Result<Listener> listener = listen_on(listens_on);
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
    callbacks.use_of = [this](const std::string& peer) {
      if (peer == watched_) ++looks_at_watched_;
      return PeerUse{.accounted_bytes =
                         accounts_for_all_.load() ? accounted_.fetch_add(std::uint64_t{1} << 32) : accounted_.load(),
                     .message_bytes = message_bytes_.load(),
                     .forgiven_bytes = forgives_all_.load() ? forgiven_.fetch_add(std::uint64_t{1} << 32) : 0,
                     .refused_calls = refused_calls_.load(),
                     .calls_without_login = watched_.empty() || peer == watched_ ? calls_without_login_.load() : 0,
                     .late_since_ms = late_since_ms_.load()};
    };
    callbacks.end_late_calls = [this](const Connections::Late& late) {
      const std::lock_guard lock(mutex_);
      if (late_calls_end_) late_since_ms_ = PeerUse::kNever;
      told_again_ = told_again_ || late.is_again;
      ended_calls_.push_back(late.peer.substr(0, late.peer.rfind(':')) + ": " + std::to_string(late.bytes));
    };
    callbacks.take_calls_without_login = [this] {
      ++looks_;
      const std::uint64_t count = address_calls_.exchange(0);
      return std::vector<Connections::AddressCalls>{{limited_address("ipv4:127.0.0.2"), count}};
    };
    callbacks.take_ended = [this] {
      const std::lock_guard lock(mutex_);
      return std::exchange(to_end_, {});
    };
    callbacks.on_end = [this](const ConnectionEnd& end) {
      const std::lock_guard lock(mutex_);
      ended_.push_back(end.peer);
      ends_.push_back(end);
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

  // A client at 127.0.0.`address`, with this port unless it is 0. The server is at 127.0.0.`to_address`.
  Descriptor connect(int address, int port = 0, int to_address = 1) const {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
    sockaddr_in from = {}, to = {};
    from.sin_family = to.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(0x7F000000u + static_cast<std::uint32_t>(address));
    from.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(0x7F000000u + static_cast<std::uint32_t>(to_address));
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0) << std::strerror(errno);
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
  std::vector<ConnectionEnd> ends_;
  std::vector<std::string> ended_calls_;  // the address, and the bytes
  bool late_calls_end_ = true;            // when they are told to
  std::atomic<bool> told_again_{false};   // some were told for a while, and had not ended
  std::atomic<std::uint64_t> inspections_{0};
  std::string watched_;  // the name of a peer, which then alone has calls without a login; set before the start
  std::atomic<std::uint64_t> looks_{0}, looks_at_watched_{0};
  std::atomic<bool> accounts_for_all_{true};  // all bytes are of whole messages, and not only those in `accounted_`
  std::atomic<std::uint64_t> accounted_{0};
  std::atomic<bool> forgives_all_{false};  // all bytes may be of calls that were refused
  std::atomic<std::uint64_t> forgiven_{0};
  std::atomic<std::uint64_t> refused_calls_{0};               // of each connection
  std::atomic<std::int64_t> late_since_ms_{PeerUse::kNever};  // likewise
  std::atomic<std::uint64_t> message_bytes_{0};
  std::atomic<std::uint64_t> calls_without_login_{0};  // likewise
  std::atomic<std::uint64_t> address_calls_{0};        // without a login, of 127.0.0.2
  bool reads_for_ever_ = false;
  std::atomic<bool> is_reading_{false};
  std::optional<CallCounts> found_;
  std::unique_ptr<Connections> connections_;  // uses the others, so it ends first
};

inline std::string name_of(const Descriptor& client) {
  sockaddr_in own = {};
  socklen_t size = sizeof own;
  EXPECT_EQ(::getsockname(client.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
  return "ipv4:127.0.0.1:" + std::to_string(ntohs(own.sin_port));
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

}  // namespace kilokv::server
