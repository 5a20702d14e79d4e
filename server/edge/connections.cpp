#include "server/edge/connections.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "server/edge/socket_calls.hpp"

namespace kilokv::server {
namespace {

constexpr int kLookMs = 100, kHurriedLookMs = 20;
// So many times as much as all connections together may have is too much even for a moment.
constexpr std::uint64_t kFarTooMany = 4;
constexpr std::int64_t kReportMs = 10000;
constexpr std::int64_t kLingerMs = 10000;
// The most connections that one look reads, and the most of the busiest that it inspects. With these bounds, a look
// takes about a millisecond. While the connections of an address take turns, it reads all of these, too.
constexpr std::size_t kLooksMax = 512;
constexpr std::size_t kInspectionsMax = 32;
// A connection is inspected when it received so much since the last inspection, and that was a while ago or much more
// came. A cancelled call takes at least 20 bytes.
constexpr std::uint64_t kBusyBytes = 8192, kVeryBusyBytes = std::uint64_t{4} << 20;
constexpr std::int64_t kInspectMs = 250;
constexpr std::int64_t kOverdrawnMs = 1000;  // so long, connections of an address with too many calls are cut off
// In this time, an address may lose ConnectionLimits::unread_bytes_max. It is forgiven as much for refused calls.
constexpr double kLossSeconds = 10;
constexpr std::int64_t kLoserMs = 1000;  // so long, what such an address holds is cut off
constexpr std::int64_t kEndMs = 1000;    // so long, calls may take to end
// Each connection takes bytes for its handshake and its pings. So many of them are not lost.
constexpr std::uint64_t kNotLostBytes = std::uint64_t{64} << 10;
constexpr int kAcceptsMax = 64;  // of one listener, before the others have their turn

std::int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string useless_calls(std::uint64_t most) {
  return "more than " + std::to_string(most) + " in a second were cancelled, or more than " +
         std::to_string(most / ConnectionLimits::kWithoutLogin) + " had no valid login (--connection-cancels-max)";
}

double rate_of_address(std::uint32_t cancels_max) {
  return static_cast<double>(cancels_max) * ConnectionLimits::kAddressCancels;
}

std::uint64_t grown(std::uint64_t before, std::uint64_t now) { return now - std::min(now, before); }

}  // namespace

Connections::Connections(Listener listener, ConnectionLimits limits, Callbacks callbacks)
    : listener_(std::move(listener)),
      limits_(limits),
      callbacks_(std::move(callbacks)),
      listeners_(::epoll_create1(EPOLL_CLOEXEC)),
      duplicates_(::epoll_create1(EPOLL_CLOEXEC)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      openings_(limits.opens_max, std::max(limits.opens_max, limits.connections_per_address_max)),
      cancels_(rate_of_address(limits.cancels_max), rate_of_address(limits.cancels_max)),
      losses_(static_cast<double>(limits.unread_bytes_max) / kLossSeconds,
              static_cast<double>(limits.unread_bytes_max)),
      forgiven_(losses_),
      turns_(&hold_back) {
  KILOKV_CHECK(listeners_ && duplicates_ && stop_);
  KILOKV_CHECK(watch(listeners_.get(), stop_.get(), EPOLLIN));
  for (const Descriptor& socket : listener_.sockets) KILOKV_CHECK(watch(listeners_.get(), socket.get(), EPOLLIN));
}

Connections::~Connections() { stop(); }

void Connections::start() {
  accepting_.store(true);
  acceptor_ = std::thread([this] {
    accept_connections();
    accepting_.store(false);
  });
  watcher_ = std::thread([this] { watch_connections(); });
  pthread_setname_np(acceptor_.native_handle(), "accept");
  pthread_setname_np(watcher_.native_handle(), "connections");
}

void Connections::stop() {
  if (!acceptor_.joinable()) return;
  stopping_.store(true);
  const std::uint64_t one = 1;
  KILOKV_CHECK(::write(stop_.get(), &one, sizeof one) == sizeof one);
  while (accepting_.load()) {  // a connection that never pauses may keep the thread busy
    {
      const std::lock_guard lock(mutex_);
      if (handing_over_ >= 0) ::shutdown(handing_over_, SHUT_RDWR);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  acceptor_.join();
  watching_.store(false);
  watcher_.join();
  {
    const std::lock_guard lock(mutex_);
    turns_.stop();
  }
  listener_.sockets.clear();
}

ConnectionCounts Connections::counts() const {
  return {open_.load(std::memory_order_relaxed), accepted_.load(std::memory_order_relaxed),
          refused_.load(std::memory_order_relaxed), cut_off_.load(std::memory_order_relaxed)};
}

std::vector<ConnectionInfo> Connections::list() const {
  const std::int64_t now = now_ms();
  std::vector<ConnectionInfo> open;
  const std::lock_guard lock(mutex_);
  open.reserve(connections_.size());
  for (const auto& [number, connection] : connections_) {
    const ConnectionAccount& account = connection.account;
    open.push_back({.peer = connection.peer.name,
                    .age_ms = now - connection.accepted_ms,
                    .received_bytes = account.received(),
                    .open_calls = account.open_calls(),
                    .unfinished_bytes = account.held()});
  }
  return open;
}

void Connections::accept_connections() {
  std::array<epoll_event, 16> events{};
  bool had_room = true;
  while (!stopping_.load()) {
    const int count = ::epoll_wait(listeners_.get(), events.data(), static_cast<int>(events.size()), -1);
    bool has_room = true;
    for (int i = 0; i < count; ++i) {
      const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
      if (descriptor != stop_.get()) has_room = accept_some(descriptor) && has_room;
    }
    if (std::exchange(had_room, has_room) && !has_room) {
      const std::lock_guard lock(mutex_);
      refuse("unknown", "the process is out of descriptors or memory");
    }
    if (!has_room) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the listener stays readable
  }
}

void Connections::watch_connections() {
  std::array<epoll_event, 64> events{};
  while (watching_.load()) {
    const int count = ::epoll_wait(duplicates_.get(), events.data(), static_cast<int>(events.size()),
                                   hurries_ ? kHurriedLookMs : kLookMs);
    {
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        on_event(event.data.fd, event.events);
      }
      const std::int64_t now = now_ms();
      if (now - looked_at_ms_ >= (hurries_ ? kHurriedLookMs : kLookMs)) look(now);
    }
    for (const Late& late : std::exchange(late_, {})) callbacks_.end_late_calls(late);  // many calls
  }
}

void Connections::look(std::int64_t now_ms) {
  looked_at_ms_ = now_ms;
  hurries_ = false;
  charge_addresses(now_ms);
  look_for_floods(now_ms);
  give_turns(now_ms);
  bound_taken(now_ms);
  bound_unfinished(now_ms);
  bound_late(now_ms);
  bound_refused(now_ms);
  cut_off_losers(now_ms);
  end_half_closed(now_ms);
  end_those_that_must();
  report(now_ms);
}

void Connections::on_event(int descriptor, std::uint32_t events) {
  const auto found = connections_.find(descriptor);
  if (found == connections_.end()) return;
  if ((events & EPOLLERR) != 0) found->second.why_ended = "the client reset it, or the network failed";
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return end(descriptor, now_ms());
  if ((events & EPOLLRDHUP) != 0 && found->second.half_closed_ms == 0) found->second.half_closed_ms = now_ms();
}

// Returns false if there are no descriptors for more.
bool Connections::accept_some(int listener) {
  for (int i = 0; i < kAcceptsMax && !stopping_.load(); ++i) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    Descriptor connection(::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      if (admit(connection.get(), name_of_peer(peer))) hand_over(listener, std::move(connection));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EBADF || errno == EINVAL) {
      return true;
    }  // others: errors of the network that the next connection does not have
  }
  return true;
}

bool Connections::admit(int connection, PeerName peer) {
  const std::lock_guard lock(mutex_);
  if (connections_.size() >= limits_.connections_max) {
    refuse(peer.address, std::to_string(limits_.connections_max) + " connections are open (--connections-max)");
    return false;
  }
  const std::int64_t now = now_ms();
  if (const std::optional<std::string> why = pauses_.refusal(peer.address, now)) {
    refuse(peer.address, *why);
    return false;
  }
  if (names_.contains(peer.name)) {  // a socket can connect to several addresses of one server
    refuse(peer.address, "a connection from the same port of this address is open");
    return false;
  }
  const auto of_address = by_address_.find(peer.address);
  const std::uint32_t per_address_max =
      std::min(limits_.connections_per_address_max, std::max(limits_.connections_max / 2, 1u));
  if (of_address != by_address_.end() && of_address->second >= per_address_max) {
    refuse(peer.address,
           std::to_string(of_address->second) +
               " connections of this address are open (--connections-per-address-max, and at most half of "
               "--connections-max)");
    return false;
  }
  if (!openings_.take(peer.address, 1, now)) {
    refuse(peer.address, "this address opens more than " + std::to_string(limits_.opens_max) +
                             " connections in a second (--connection-opens-max)");
    return false;
  }
  Descriptor duplicate(::fcntl(connection, F_DUPFD_CLOEXEC, 0));
  // EPOLLHUP and EPOLLERR always come.
  if (!duplicate || !watch(duplicates_.get(), duplicate.get(), EPOLLRDHUP | EPOLLET)) {
    refuse(peer.address, "the process is out of descriptors or memory");
    return false;
  }
  ++by_address_[peer.address];
  names_.insert(peer.name);
  pauses_.connected(peer.address, now);
  const int on = 1;
  ::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Otherwise what came after an urgent byte does not count as waiting.
  ::setsockopt(connection, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
  const int number = handing_over_ = duplicate.get();
  const ConnectionAccount account(&limits_, callbacks_.use_of(peer.name), now);
  turns_.begin(number, peer.address, now);
  callbacks_.on_open(peer.name);
  connections_.emplace(number, Connection{std::move(duplicate), std::move(peer), account, now});
  count_open();
  accepted_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Connections::count_open() {
  const auto open = static_cast<std::uint32_t>(connections_.size());
  open_.store(open, std::memory_order_relaxed);
  callbacks_.on_count(open);
}

void Connections::hand_over(int listener, Descriptor connection) {
  callbacks_.hand_over(listener, std::move(connection));
  const std::lock_guard lock(mutex_);
  handing_over_ = -1;
}

void Connections::refuse(const std::string& address, const std::string& why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  ++unreported_.refused;
  unreported_.address = address;
  unreported_.why = why;
}

void Connections::report(std::int64_t now_ms) {
  if (unreported_.refused + unreported_.cut_off + unreported_.crowds == 0) return;
  if (reported_at_ms_ != 0 && now_ms - reported_at_ms_ < kReportMs) return;
  callbacks_.on_report(std::exchange(unreported_, {}));
  reported_at_ms_ = now_ms;
}

// The busiest connections are inspected. Where there are many connections, each look takes a part of them.
void Connections::look_for_floods(std::int64_t now_ms) {
  for (AddressRate* rate : {&openings_, &cancels_, &losses_, &forgiven_}) rate->forget_quiet_ones(now_ms);
  pauses_.forget_quiet_ones(now_ms);
  const auto parts = static_cast<std::uint32_t>(1 + connections_.size() / kLooksMax);
  const std::uint32_t part = looks_++ % parts;
  std::vector<std::pair<std::uint64_t, int>> busy;  // bytes, descriptor
  for (auto& [number, connection] : connections_) {
    if (static_cast<std::uint32_t>(number) / 2 % parts != part) continue;  // each connection has two numbers
    look_at(&connection, now_ms);
    const ConnectionAccount& account = connection.account;
    const std::uint64_t more = account.received_since();
    const bool is_due = now_ms - account.inspected_ms() >= kInspectMs || more >= kVeryBusyBytes;
    if (account.unread() > account.unread_bytes_max()) {
      busy.emplace_back(UINT64_MAX, number);  // unless its messages have got their end, or its calls are more
    } else if (more >= kBusyBytes && is_due) {
      busy.emplace_back(more, number);
    }
  }
  cut_off_overdrawn(now_ms);
  std::erase_if(busy, [this](const auto& item) { return !connections_.contains(item.second); });
  const std::size_t inspections = std::min(busy.size(), kInspectionsMax);
  std::partial_sort(busy.begin(), busy.begin() + static_cast<std::ptrdiff_t>(inspections), busy.end(),
                    std::greater<>());
  for (std::size_t i = 0; i < inspections; ++i) inspect(busy[i].second, now_ms);
}

// Ends a connection that cannot be held back, because the peer has ended its side. What nobody has read is not lost.
void Connections::drop(int descriptor, std::int64_t now_ms) {
  Connection& connection = connections_.at(descriptor);
  look_at(&connection, now_ms);
  count_loss(&connection, now_ms);
  connection.why_ended = "the client closed its side while the connections of its address took turns";
  end_unread(descriptor);
  forget(descriptor);
}

void Connections::give_turns(std::int64_t now_ms) {
  if (turns_.any()) {
    for (auto& [number, connection] : connections_) {
      if (turns_.takes_turns(connection.peer.address)) look_at(&connection, now_ms);
    }
  }
  const ReadingTurns::Decision decision = turns_.decide(now_ms);
  hurries_ = hurries_ || turns_.hurries();
  for (const std::string& address : decision.crowds) {
    ++unreported_.crowds;
    unreported_.crowd = address;
  }
  for (const int number : decision.to_cut_off) {
    if (connections_.at(number).account.sends_messages()) continue;
    cut_off(number, now_ms, true, "the connections of its address take turns, and it could not be held back");
  }
  if (!turns_.any()) return;
  std::vector<int> half_closed;
  for (const auto& [number, connection] : connections_) {
    const bool is_half_closed = connection.half_closed_ms != 0;
    if (is_half_closed && turns_.takes_turns(connection.peer.address)) half_closed.push_back(number);
  }
  for (const int number : half_closed) drop(number, now_ms);
}

void Connections::inspect(int descriptor, std::int64_t now_ms) {
  Connection& connection = connections_.at(descriptor);
  ConnectionAccount& account = connection.account;
  const std::optional<CallCounts> found = callbacks_.inspect(connection.peer.name);
  if (!found) return account.inspect_nothing(now_ms);
  look_at(&connection, now_ms);
  const double cancels = account.inspect(*found, now_ms);
  if (account.has_lost_calls() && !count_loss(&connection, now_ms)) {
    cut_off(descriptor, now_ms, true, lost_too_much());
  } else if (const std::uint64_t bytes = account.unread(); bytes > account.unread_bytes_max()) {
    cut_off(descriptor, now_ms, !account.has_calls(),
            "it sent " + std::to_string(bytes) + " bytes that are no whole message");
  } else if (account.cancels_too_much()) {
    cut_off(descriptor, now_ms, true, "its calls: " + useless_calls(limits_.cancels_max));
  } else if (cancels > 0 && !cancels_.take(connection.peer.address, cancels, now_ms)) {
    cut_off(descriptor, now_ms, true, useless_calls_of_address());
  }
}

// The connections of which the amount is not 0: first those of the address that has most, and the one that has most of
// these. At most kInspectionsMax. `all`: the sum over all connections.
std::vector<int> Connections::largest_holders(Amount amount, std::uint64_t* all) const {
  std::unordered_map<std::string, std::uint64_t> of_address;
  for (const auto& [number, connection] : connections_) {
    const std::uint64_t own = (connection.account.*amount)();
    if (own > 0) of_address[connection.peer.address] += own;
    *all += own;
  }
  std::vector<std::tuple<std::uint64_t, std::uint64_t, int>> holders;  // amount of the address, own amount, descriptor
  for (const auto& [number, connection] : connections_) {
    const std::uint64_t own = (connection.account.*amount)();
    if (own > 0) holders.emplace_back(of_address.at(connection.peer.address), own, number);
  }
  const std::size_t count = std::min(holders.size(), kInspectionsMax);
  std::partial_sort(holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(count), holders.end(),
                    std::greater<>());
  std::vector<int> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(std::get<int>(holders[i]));
  return numbers;
}

// Before it is known how long messages lack their end, there may be far too many of them.
void Connections::bound_taken(std::int64_t now_ms) {
  std::uint64_t all = 0;
  for (const auto& [number, connection] : connections_) all += connection.account.unused();
  if (all <= limits_.unread_bytes_max) return;
  hurries_ = true;
  cut_off_holders(&ConnectionAccount::unused, kFarTooMany * limits_.unread_bytes_max, now_ms,
                  " bytes of messages that lack their end");
}

// When all connections together hold too much of unfinished messages, some are cut off. Otherwise gRPC would end
// connections when its memory is used up, and it does not look whose they are.
void Connections::bound_unfinished(std::int64_t now_ms) {
  std::uint64_t all = 0;
  for (const int number : largest_holders(&ConnectionAccount::held, &all)) {
    if (all <= limits_.unread_bytes_max) return;
    const std::uint64_t before = connections_.at(number).account.held();
    inspect(number, now_ms);  // its messages may be whole by now, and its calls may have ended
    const auto found = connections_.find(number);
    const std::uint64_t now = found == connections_.end() ? 0 : found->second.account.held();
    all -= grown(now, before);
    if (all <= limits_.unread_bytes_max || now == 0) continue;
    all -= std::min(all, now);
    cut_off(number, now_ms, true,
            "it held " + std::to_string(now) +
                " bytes of unfinished messages, and all connections together too many (--grpc-memory-max)");
  }
}

// The same for calls whose messages are late. What a connection received since then may be the headers of its other
// calls, so the calls end, and not the connection. What came faster than an address may lose counts as lost.
void Connections::bound_late(std::int64_t now_ms) {
  std::unordered_map<std::string, std::uint32_t> sharers;  // connections with late calls, by address
  for (const auto& [number, connection] : connections_) {
    if (connection.account.held_by_late() > 0) ++sharers[connection.peer.address];
  }
  std::uint64_t all = 0;
  for (const int number : largest_holders(&ConnectionAccount::held_by_late, &all)) {
    if (all <= limits_.unread_bytes_max) return;
    hurries_ = true;
    Connection& connection = connections_.at(number);
    ConnectionAccount& account = connection.account;
    all -= account.held_by_late();
    look_at(&connection, now_ms);
    const std::uint64_t bytes = account.held_by_late();
    if (bytes == 0) continue;  // the messages have come
    const double of_address = static_cast<double>(limits_.unread_bytes_max) / (kLossSeconds * 1e3) *
                              static_cast<double>(account.late_for_ms(now_ms));
    const double slow = of_address / std::max(sharers[connection.peer.address], 1u);
    const std::int64_t told_ms = account.tell_late(now_ms);
    if (told_ms >= kEndMs) {
      cut_off(number, now_ms, true,
              "its calls whose messages were late did not end, and may hold " + std::to_string(bytes) +
                  " bytes; all connections together may hold too many (--grpc-memory-max)");
    } else if (told_ms == 0 &&
               !take_loss(connection.peer.address, grown(static_cast<std::uint64_t>(slow), bytes), now_ms)) {
      cut_off(number, now_ms, true, lost_too_much());
    } else {
      late_.push_back({connection.peer.name, bytes, /*is_again=*/told_ms >= kEndMs / 2});
    }
  }
}

// Cuts off connections until all together have no more than this.
void Connections::cut_off_holders(Amount amount, std::uint64_t max, std::int64_t now_ms, const std::string& what) {
  std::uint64_t all = 0;
  for (const int number : largest_holders(amount, &all)) {
    if (all <= max) return;
    Connection& connection = connections_.at(number);
    all -= (connection.account.*amount)();
    look_at(&connection, now_ms);
    const std::uint64_t own = (connection.account.*amount)();
    if (all + own <= max) return;
    if (own == 0) continue;  // its calls have ended meanwhile
    cut_off(number, now_ms, true,
            "it has " + std::to_string(own) + what + ", and all connections together too many (--grpc-memory-max)");
  }
}

// gRPC keeps a refused call until its client takes the error, and does not count what the call takes.
void Connections::bound_refused(std::int64_t now_ms) {
  std::uint64_t all = 0;
  for (const auto& [number, connection] : connections_) all += connection.account.refused();
  if (all <= limits_.refused_calls_max) return;
  hurries_ = true;
  const bool far = all > kFarTooMany * limits_.refused_calls_max;
  cut_off_holders(far ? &ConnectionAccount::refused : &ConnectionAccount::lasting_refused, limits_.refused_calls_max,
                  now_ms, " refused calls whose errors it does not take");
}

void Connections::look_at(Connection* connection, std::int64_t now_ms) {
  const PeerUse use = callbacks_.use_of(connection->peer.name);  // before the bytes
  const std::string& address = connection->peer.address;
  const auto forgivable = static_cast<std::uint64_t>(forgiven_.left(address, now_ms));
  const SocketBytes bytes = socket_bytes(connection->descriptor.get());
  turns_.see(connection->descriptor.get(), bytes.received, bytes.waiting, bytes.is_stuck, now_ms);
  const std::uint64_t forgiven = connection->account.look(use, bytes, forgivable, now_ms);
  if (forgiven > 0) forgiven_.take(address, static_cast<double>(forgiven), now_ms);
}

// Also for calls of connections that have ended.
void Connections::charge_addresses(std::int64_t now_ms) {
  std::erase_if(overdrawn_, [now_ms](const auto& item) { return now_ms >= item.second; });
  for (const AddressCalls& calls : callbacks_.take_calls_without_login()) {
    const std::uint64_t as_cancelled = calls.count * ConnectionLimits::kWithoutLogin;
    if (cancels_.take(calls.address, static_cast<double>(as_cancelled), now_ms)) continue;
    pauses_.add(calls.address, useless_calls_of_address(), now_ms);
    overdrawn_[calls.address] = now_ms + kOverdrawnMs;
  }
}

// Cuts off the connections that go on with calls without a login, unless they have fewer than the average of those of
// their address. So somebody behind the same address with a few health checks stays.
void Connections::cut_off_overdrawn(std::int64_t now_ms) {
  if (overdrawn_.empty()) return;
  struct Calls {
    std::uint64_t connections = 0, count = 0;
  };
  std::unordered_map<std::string, Calls> of_address;
  for (const auto& [number, connection] : connections_) {
    const std::uint64_t count = connection.account.without_login();
    if (count == 0 || !overdrawn_.contains(connection.peer.address)) continue;
    Calls& calls = of_address[connection.peer.address];
    ++calls.connections, calls.count += count;
  }
  std::vector<int> numbers;
  for (const auto& [number, connection] : connections_) {
    const auto found = of_address.find(connection.peer.address);
    const std::uint64_t count = connection.account.without_login();
    if (found != of_address.end() && count > 0 && count * found->second.connections >= found->second.count) {
      numbers.push_back(number);
    }
  }
  for (const int number : numbers) cut_off(number, now_ms, true, useless_calls_of_address());
}

// Unfinished messages may be many, and gone before anybody looks at them: their calls or connections end, or gRPC ends
// these because its memory is used up, and they come back with more. Returns false if the address has lost too much.
bool Connections::count_loss(Connection* connection, std::int64_t now_ms) {
  return take_loss(connection->peer.address, connection->account.lose(), now_ms);
}

bool Connections::take_loss(const std::string& address, std::uint64_t lost, std::int64_t now_ms) {
  if (lost <= kNotLostBytes) return true;
  if (losses_.take(address, static_cast<double>(lost), now_ms)) return true;
  pauses_.add(address, lost_too_much(), now_ms);
  losers_[address] = now_ms + kLoserMs;
  return false;
}

std::string Connections::useless_calls_of_address() const {
  return "the calls of its address: " +
         useless_calls(std::uint64_t{limits_.cancels_max} * ConnectionLimits::kAddressCancels);
}

std::string Connections::lost_too_much() const {
  return "its address lost more than " + std::to_string(limits_.unread_bytes_max) +
         " bytes of unfinished messages in " + std::to_string(static_cast<int>(kLossSeconds)) +
         " seconds (--grpc-memory-max)";
}

void Connections::cut_off_losers(std::int64_t now_ms) {
  std::erase_if(losers_, [now_ms](const auto& loser) { return now_ms >= loser.second; });
  if (losers_.empty()) return;
  std::vector<int> numbers;
  for (auto& [number, connection] : connections_) {
    if (!losers_.contains(connection.peer.address)) continue;
    look_at(&connection, now_ms);
    if (connection.account.lasting() > kNotLostBytes) numbers.push_back(number);
  }
  for (const int number : numbers) cut_off(number, now_ms, true, lost_too_much());
}

void Connections::cut_off(int descriptor, std::int64_t now_ms, bool is_flood, const std::string& why) {
  const std::string& address = connections_.at(descriptor).peer.address;
  connections_.at(descriptor).why_ended = "cut off: " + why;
  cut_off_.fetch_add(1, std::memory_order_relaxed);
  ++unreported_.cut_off;
  unreported_.address = address;
  unreported_.why = why;
  if (is_flood) pauses_.add(address, why, now_ms);
  if (!is_flood) {
    ::shutdown(descriptor, SHUT_RDWR);
    return end(descriptor, now_ms);
  }
  end_unread(descriptor);
  forget(descriptor);  // what a flood has lost has had its effect
}

void Connections::end_half_closed(std::int64_t now_ms) {
  std::vector<int> late;
  for (const auto& [number, connection] : connections_) {
    if (connection.half_closed_ms != 0 && now_ms - connection.half_closed_ms >= kLingerMs) late.push_back(number);
  }
  for (const int number : late) {
    ::shutdown(number, SHUT_RDWR);
    end(number, now_ms);
  }
}

void Connections::end_those_that_must() {
  const std::vector<std::string> peers = std::exchange(to_end_, callbacks_.take_ended());
  if (peers.empty()) return;
  const std::unordered_set<std::string> names(peers.begin(), peers.end());
  std::vector<int> numbers;
  for (const auto& [number, connection] : connections_) {
    if (names.contains(connection.peer.name)) numbers.push_back(number);
  }
  for (const int number : numbers) {
    connections_.at(number).why_ended = "its login or its certificate does not count any more";
    ::shutdown(number, SHUT_RDWR);
    forget(number);
  }
}

void Connections::end(int descriptor, std::int64_t now_ms) {
  Connection& connection = connections_.at(descriptor);
  look_at(&connection, now_ms);
  count_loss(&connection, now_ms);
  forget(descriptor);
}

// The system tells only that the connection is closed. Who was first is known if some time passed between them.
ConnectionEnd Connections::end_of(const Connection& connection) {
  std::string why = connection.why_ended;
  if (why.empty()) {
    why = connection.half_closed_ms != 0 ? "the client closed it" : "it was closed; which side was first is not known";
  }
  return {.peer = connection.peer.name,
          .age_ms = now_ms() - connection.accepted_ms,
          .received_bytes = connection.account.received(),
          .why = std::move(why)};
}

void Connections::forget(int descriptor) {
  if (handing_over_ == descriptor) handing_over_ = -1;
  const auto found = connections_.find(descriptor);
  callbacks_.on_end(end_of(found->second));
  turns_.end(descriptor);
  names_.erase(found->second.peer.name);
  const auto of_address = by_address_.find(found->second.peer.address);
  if (--of_address->second == 0) by_address_.erase(of_address);
  ::epoll_ctl(duplicates_.get(), EPOLL_CTL_DEL, descriptor, nullptr);  // the other descriptor may keep the socket open
  connections_.erase(found);
  count_open();
}

}  // namespace kilokv::server
