#include "server/edge/socket_calls.hpp"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "server/edge/reading_turns.hpp"

namespace kilokv::server {

bool watch(int epoll, int descriptor, std::uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = descriptor;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

SocketBytes socket_bytes(int socket) {
  tcp_info info = {};
  socklen_t size = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  int queued = 0;  // in the system, until somebody reads them; asked for later, so the difference is too little
  if (::ioctl(socket, SIOCINQ, &queued) != 0) return {};
  const auto waiting = static_cast<std::uint64_t>(queued);
  return {.received = info.tcpi_bytes_received - std::min<std::uint64_t>(info.tcpi_bytes_received, waiting),
          .waiting = waiting,
          .taken = info.tcpi_bytes_acked,
          .is_stuck = info.tcpi_notsent_bytes > 0};
}

void hold_back(int socket, bool is_held) {
  const int least = is_held ? ReadingTurns::kHeldBytes : 1;
  ::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

void end_unread(int socket) {
  ::shutdown(socket, SHUT_RDWR);
  while (::recv(socket, nullptr, std::size_t{1} << 30, MSG_TRUNC | MSG_DONTWAIT) > 0) {
  }
}

}  // namespace kilokv::server
