#include "tls/peer_probe.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>

namespace kilokv::tls {
namespace {

using std::chrono::milliseconds;

// Accepts one connection, reads what comes first, sends `answer`, and waits until the client ends.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    endpoint_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, answer = std::move(answer)] {
      const int connection = ::accept(listener_, nullptr, nullptr);
      std::array<char, 4096> read{};
      first_ = std::string(read.data(), static_cast<std::size_t>(::recv(connection, read.data(), read.size(), 0)));
      EXPECT_EQ(::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
      ::recv(connection, read.data(), read.size(), 0);
      ::close(connection);
    });
  }
  ~OneAnswer() {
    join();
    ::close(listener_);
  }
  const std::string& endpoint() const { return endpoint_; }
  std::string first() {
    join();
    return first_;
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  int listener_;
  std::string endpoint_, first_;
  std::thread thread_;
};

bool probe(const std::string& answer) {
  OneAnswer server(answer);
  return speaks_tls(server.endpoint(), milliseconds(300));
}

TEST(PeerProbe, SendsAClientHello) {
  OneAnswer server("\x16\x03");
  EXPECT_TRUE(speaks_tls(server.endpoint(), milliseconds(2000)));
  EXPECT_EQ(server.first().substr(0, 2), "\x16\x03");
}

TEST(PeerProbe, TellsTlsFromOthers) {
  using namespace std::string_view_literals;
  EXPECT_TRUE(probe("\x15\x03\x03"));                                          // an alert
  EXPECT_FALSE(probe(std::string("\x00\x00\x12\x04\x00\x00\x00\x00\x00"sv)));  // settings of HTTP/2
  EXPECT_FALSE(probe("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_FALSE(probe(std::string("\x16")));
  EXPECT_FALSE(probe(""));
}

TEST(PeerProbe, WhereNobodyListensThereIsNoTls) {
  EXPECT_FALSE(speaks_tls("127.0.0.1:1", milliseconds(300)));
  EXPECT_FALSE(speaks_tls("no-such-host.invalid:1", milliseconds(300)));
  EXPECT_FALSE(speaks_tls("127.0.0.1", milliseconds(300)));
}

}  // namespace
}  // namespace kilokv::tls
