// Role: see peer_probe.hpp.
#include "tls/peer_probe.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>

#include "tls/openssl.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace kilokv::tls {
namespace {

using Clock = std::chrono::steady_clock;
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Handshake = std::unique_ptr<SSL, Free<SSL_free>>;

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool wait_for(int socket, short events, Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  pollfd one{.fd = socket, .events = events, .revents = 0};
  return left > 0 && ::poll(&one, 1, static_cast<int>(left)) == 1;
}

bool connect_to(const addrinfo& address, int socket, Clock::time_point end) {
  if (::connect(socket, address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS || !wait_for(socket, POLLOUT, end)) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

// Sends a ClientHello, and reads what comes back. The type of a TLS record is its first byte: 22 is a handshake, and 21
// an alert. The second byte is the version, which is 3 for all of them. A server of HTTP/2 begins with the settings.
bool answers_with_tls(int socket, Clock::time_point end) {
  const Context context(SSL_CTX_new(TLS_client_method()));
  const Handshake handshake(SSL_new(context.get()));
  BIO* const incoming = BIO_new(BIO_s_mem());
  BIO* const outgoing = BIO_new(BIO_s_mem());
  SSL_set_bio(handshake.get(), incoming, outgoing);  // owns both
  static constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};
  SSL_set_alpn_protos(handshake.get(), kHttp2.data(), kHttp2.size());
  SSL_set_connect_state(handshake.get());
  SSL_do_handshake(handshake.get());
  ERR_clear_error();
  char* hello = nullptr;
  const long size = BIO_get_mem_data(outgoing, &hello);
  if (::send(socket, hello, static_cast<std::size_t>(size), MSG_NOSIGNAL) != size) return false;
  std::array<unsigned char, 2> begin{};
  return wait_for(socket, POLLIN, end) && ::recv(socket, begin.data(), begin.size(), MSG_WAITALL) == 2 &&
         (begin[0] == 22 || begin[0] == 21) && begin[1] == 3;
}

}  // namespace

bool speaks_tls(const std::string& endpoint, std::chrono::milliseconds patience) {
  const std::size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos) return false;
  std::string host = endpoint.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  if (::getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, &wanted, &first) != 0) return false;
  const std::unique_ptr<addrinfo, Free<::freeaddrinfo>> addresses(first);
  const auto end = Clock::now() + patience;
  for (const addrinfo* address = first; address != nullptr; address = address->ai_next) {
    const Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.get() >= 0 && connect_to(*address, socket.get(), end)) return answers_with_tls(socket.get(), end);
  }
  return false;
}

}  // namespace kilokv::tls
