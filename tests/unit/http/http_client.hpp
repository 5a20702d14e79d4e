// A client of HTTP for tests: a plain socket, which sends what the test says. Thread safety: none.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

namespace kilokv::server::test {

class HttpClient {
 public:
  // `from`: the address of this end, of 127.0.0.0/8. `receive_bytes`: of the buffer of the system; 0: the usual.
  explicit HttpClient(int port, const char* from = "127.0.0.1", int receive_bytes = 0)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_bytes != 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    sockaddr_in own = address(from, 0), server = address("127.0.0.1", port);
    ok_ = ::bind(socket_, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0 &&
          ::connect(socket_, reinterpret_cast<sockaddr*>(&server), sizeof server) == 0;
  }
  ~HttpClient() { ::close(socket_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return ok_; }
  bool send(std::string_view text) const {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

  // Waits for an answer whose headers give its length, and returns it. Empty: the connection ended before, or 10 s have
  // passed. `has_body`: false for HEAD.
  std::string read_answer(bool has_body = true) {
    const auto whole = [&] {
      const std::size_t head = read_.find("\r\n\r\n"), length = read_.find("Content-Length: ");
      if (head == std::string::npos || length == std::string::npos) return std::size_t{0};
      return head + 4 + (has_body ? std::stoul(read_.substr(length + 16)) : 0);
    };
    while (whole() == 0 || read_.size() < whole()) {
      if (!read_some(10000)) return {};
    }
    const std::string answer = read_.substr(0, whole());
    read_.erase(0, answer.size());
    return answer;
  }
  // Whether the server closes the connection within this time. What it sends before is read.
  bool is_closed_within(int ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < end) {
      if (!read_some(ms)) return closed_;
    }
    return false;
  }
  const std::string& unread() const { return read_; }

 private:
  static sockaddr_in address(const char* host, int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    ::inet_pton(AF_INET, host, &address.sin_addr);
    return address;
  }
  bool read_some(int ms) {
    pollfd one{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&one, 1, ms) != 1) return false;
    std::array<char, 4096> part{};
    const ssize_t bytes = ::recv(socket_, part.data(), part.size(), 0);
    closed_ = bytes <= 0;
    if (!closed_) read_.append(part.data(), static_cast<std::size_t>(bytes));
    return !closed_;
  }

  const int socket_;
  bool ok_ = false, closed_ = false;
  std::string read_;
};

}  // namespace kilokv::server::test
