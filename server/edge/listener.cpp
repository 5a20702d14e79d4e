#include "server/edge/listener.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace kilokv::server {
namespace {

Status cannot_listen(const std::string& endpoint, const std::string& setting, const std::string& why) {
  return {StatusCode::unavailable, ErrorReason::unspecified,
          "cannot listen on " + endpoint + " (" + setting + "): " + why};
}

std::string reason_of(int error) {
  std::string reason = std::generic_category().message(error);
  switch (error) {
    case EADDRINUSE: return reason + ": another program listens there; end it, or choose another port";
    case EADDRNOTAVAIL: return reason + ": this machine does not have the address";
    case EACCES:
      return reason +
             ": a port below 1024 needs the capability CAP_NET_BIND_SERVICE; choose a higher one, or look for a "
             "rule of the system that forbids this one";
    default: return reason;
  }
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

int port_of(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

// `port` is 0, or the port that another address of the host has got.
Result<Descriptor> open_socket(const addrinfo& info, int port) {
  Descriptor socket(::socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1, off = 0;
  sockaddr_storage address = {};
  std::copy_n(reinterpret_cast<const char*>(info.ai_addr), info.ai_addrlen, reinterpret_cast<char*>(&address));
  if (port != 0) {
    auto& place = info.ai_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<sockaddr_in6&>(address).sin6_port;
    place = htons(static_cast<std::uint16_t>(port));
  }
  bool ok = static_cast<bool>(socket);
  // A server that is started again may use the port although connections of its predecessor still end. Two servers at
  // the same time may not.
  ok = ok && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
  if (info.ai_family == AF_INET6) {  // [::] is every address, of IPv4 too
    ok = ok && ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
  }
  ok = ok && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), info.ai_addrlen) == 0;
  ok = ok && ::listen(socket.get(), SOMAXCONN) == 0;
  if (ok) return socket;
  return Status(StatusCode::unavailable, ErrorReason::unspecified, reason_of(errno));
}

// Never empty.
using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<Addresses> addresses_of(const std::string& endpoint, const std::string& setting) {
  const std::size_t colon = endpoint.rfind(':');
  std::string host = endpoint.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), endpoint.substr(colon + 1).c_str(), &hints, &found);
  if (error == 0) return Addresses(found, ::freeaddrinfo);
  return cannot_listen(endpoint, setting, "the host is not known: " + std::string(::gai_strerror(error)));
}

}  // namespace

bool is_repeated(const addrinfo& list, const addrinfo& info) {
  for (const addrinfo* other = &list; other != &info; other = other->ai_next) {
    if (other->ai_addrlen == info.ai_addrlen && std::memcmp(other->ai_addr, info.ai_addr, info.ai_addrlen) == 0) {
      return true;
    }
  }
  return false;
}

Result<Listener> listen_on(const std::string& endpoint, const std::string& setting) {
  const Result<Addresses> addresses = addresses_of(endpoint, setting);
  if (!addresses.ok()) return addresses.status();
  const addrinfo* const found = addresses->get();
  Listener listener;
  std::string why;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    if (is_repeated(*found, *info)) continue;
    Result<Descriptor> socket = open_socket(*info, listener.port);
    if (!socket.ok()) {
      why = socket.status().message();
      // A machine may name an address of IPv6 that it does not have. A port in use is an error for every address.
      if (why == reason_of(EADDRINUSE)) return cannot_listen(endpoint, setting, why);
      continue;
    }
    listener.port = port_of(socket->get());
    listener.loopback_only = listener.loopback_only && is_loopback(*info->ai_addr);
    listener.sockets.push_back(std::move(*socket));
  }
  if (listener.sockets.empty()) return cannot_listen(endpoint, setting, why);
  listener.endpoint = endpoint.substr(0, endpoint.rfind(':') + 1) + std::to_string(listener.port);
  return listener;
}

Result<bool> is_for_this_machine(const std::string& endpoint, const std::string& setting) {
  const Result<Addresses> addresses = addresses_of(endpoint, setting);
  if (!addresses.ok()) return addresses.status();
  bool alone = true;
  for (const addrinfo* info = addresses->get(); info != nullptr; info = info->ai_next) {
    alone = alone && is_loopback(*info->ai_addr);
  }
  return alone;
}

}  // namespace kilokv::server
