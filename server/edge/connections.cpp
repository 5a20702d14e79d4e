#include "server/edge/connections.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

constexpr int kTickMs = 1000;
constexpr std::int64_t kReportMs = 10000;
constexpr std::int64_t kLingerMs = 10000;

std::int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// An address of IPv4 counts as one, also where it comes by a socket of IPv6. The addresses of a /64 of IPv6 count as
// one address, because one machine can have all of them.
std::string address_of(const sockaddr_storage& peer) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (peer.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, text.data(), text.size());
    return text.data();
  }
  in6_addr address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    ::inet_ntop(AF_INET, &address.s6_addr[12], text.data(), text.size());
    return text.data();
  }
  for (std::size_t i = 8; i < 16; ++i) address.s6_addr[i] = 0;
  ::inet_ntop(AF_INET6, &address, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

void watch(int events, int descriptor, std::uint32_t which) {
  epoll_event event = {};
  event.events = which;
  event.data.fd = descriptor;
  KILOKV_CHECK(::epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event) == 0);
}

}  // namespace

Connections::Connections(Listener listener, ConnectionLimits limits, HandOver hand_over, OnRefused on_refused)
    : listener_(std::move(listener)),
      limits_{limits.connections_max,
              std::min(limits.connections_per_address_max, std::max(limits.connections_max / 2, 1u))},
      hand_over_(std::move(hand_over)),
      on_refused_(std::move(on_refused)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  KILOKV_CHECK(events_ && wake_);
  watch(events_.get(), wake_.get(), EPOLLIN);
  for (const Descriptor& socket : listener_.sockets) watch(events_.get(), socket.get(), EPOLLIN);
}

Connections::~Connections() { stop(); }

void Connections::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "accept");
}

void Connections::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  KILOKV_CHECK(::write(wake_.get(), &one, sizeof one) == sizeof one);
  thread_.join();
  listener_.sockets.clear();
}

ConnectionCounts Connections::counts() const {
  return {open_.load(std::memory_order_relaxed), accepted_.load(std::memory_order_relaxed),
          refused_.load(std::memory_order_relaxed)};
}

void Connections::run() {
  std::array<epoll_event, 64> events{};
  for (;;) {
    const int count = ::epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), kTickMs);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.fd == wake_.get()) return;
      on_event(event.data.fd, event.events);
    }
    if (const std::int64_t now = now_ms(); now - ticked_at_ms_ >= kTickMs) {
      ticked_at_ms_ = now;
      end_half_closed(now);
      report_refused(now);
    }
    if (!std::exchange(out_of_descriptors_, false)) continue;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the listener stays readable: do not spin
  }
}

void Connections::on_event(int descriptor, std::uint32_t events) {
  for (const Descriptor& socket : listener_.sockets) {
    if (socket.get() == descriptor) return accept_all(descriptor);
  }
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;  // it ended in this round
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return forget(descriptor);
  if ((events & EPOLLRDHUP) != 0 && found->second.half_closed_ms == 0) found->second.half_closed_ms = now_ms();
}

void Connections::accept_all(int listener) {
  for (;;) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    Descriptor connection(::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      admit(listener, std::move(connection), address_of(peer));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;  // the peer gave up
    out_of_descriptors_ = errno != EAGAIN && errno != EWOULDBLOCK;
    return;
  }
}

void Connections::admit(int listener, Descriptor connection, std::string address) {
  if (connections_.size() >= limits_.connections_max) {
    return refuse(address, std::to_string(limits_.connections_max) + " connections are open (--connections-max)");
  }
  std::uint32_t& of_address = by_address_[address];
  if (of_address >= limits_.connections_per_address_max) {
    return refuse(address,
                  std::to_string(of_address) + " connections of this address are open (--connections-per-address-max)");
  }
  Descriptor duplicate(::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  if (!duplicate) {
    out_of_descriptors_ = true;
    if (of_address == 0) by_address_.erase(address);
    return;
  }
  ++of_address;
  const int on = 1;
  ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int number = duplicate.get();
  connections_[number] = {std::move(duplicate), std::move(address), 0};
  open_.store(static_cast<std::uint32_t>(connections_.size()), std::memory_order_relaxed);
  accepted_.fetch_add(1, std::memory_order_relaxed);
  watch(events_.get(), number, EPOLLRDHUP | EPOLLET);  // EPOLLHUP and EPOLLERR always come
  hand_over_(listener, std::move(connection));
}

void Connections::refuse(const std::string& address, const std::string& why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  last_address_ = address;
  last_why_ = why;
}

void Connections::report_refused(std::int64_t now) {
  const std::uint64_t refused = refused_.load(std::memory_order_relaxed);
  if (refused == reported_) return;
  if (reported_at_ms_ != 0 && now - reported_at_ms_ < kReportMs) return;
  on_refused_(refused - reported_, last_address_, last_why_);
  reported_ = refused;
  reported_at_ms_ = now;
}

void Connections::end_half_closed(std::int64_t now) {
  std::vector<int> late;
  for (const auto& [number, connection] : connections_) {
    if (connection.half_closed_ms != 0 && now - connection.half_closed_ms >= kLingerMs) late.push_back(number);
  }
  for (const int number : late) {
    ::shutdown(number, SHUT_RDWR);
    forget(number);
  }
}

void Connections::forget(int descriptor) {
  const auto found = connections_.find(descriptor);
  const auto of_address = by_address_.find(found->second.address);
  if (--of_address->second == 0) by_address_.erase(of_address);
  ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, descriptor, nullptr);  // the other descriptor may keep the socket open
  connections_.erase(found);
  open_.store(static_cast<std::uint32_t>(connections_.size()), std::memory_order_relaxed);
}

}  // namespace kilokv::server
