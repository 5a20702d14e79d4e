// Role: see http_server.hpp.
#include "server/http/http_server.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/base/check.hpp"
#include "server/edge/address_rate.hpp"
#include "server/http/connection.hpp"

namespace kilokv::server {
namespace {

namespace asio = boost::asio;
using Error = boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr int kAcceptsMax = 16;  // of one listener, before the connections have their turn
constexpr std::chrono::milliseconds kNoDescriptorsPause{50};
constexpr std::int64_t kReportMs = 10000;
constexpr std::chrono::milliseconds kGoneInterval{250};
constexpr std::size_t kAddressesKept = 256;
constexpr int kNice = 10;  // the threads of the pipeline go first
constexpr std::uint32_t kInMakingMax = 64;
// The buffer of the system for each connection. By itself, the system would keep megabytes for a client that takes
// nothing.
constexpr int kSendBufferBytes = 128 << 10, kReceiveBufferBytes = 16 << 10;

std::int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

void name_this_thread(const char* name) {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);  // of this thread alone, on Linux
  pthread_setname_np(pthread_self(), name);
}

Page try_again(unsigned code, std::string why) {
  Page page;
  page.code = code;
  page.body = std::move(why);
  page.headers = {{"Retry-After", "1"}};
  return page;
}

}  // namespace

// The thread of `io_` talks to clients, and that of `maker_` makes pages. The second one uses the callbacks alone.
class HttpServer::Loop final : public HttpConnection::Owner {
 public:
  Loop(std::vector<Descriptor> sockets, const HttpLimits& limits, Callbacks callbacks);
  ~Loop() override;

  void start();
  HttpCounts counts() const;

  const HttpLimits& limits() const override { return limits_; }
  void ask(const std::shared_ptr<HttpConnection>& connection, PageRequest request) override;
  void sent(std::uint64_t bytes) override {
    unsent_bytes_ -= bytes;
    count();
  }
  std::optional<Page> refuse_body(const PageRequest& request) override {
    if (callbacks_.refuse_body) return callbacks_.refuse_body(request);
    return refusal_page(413, "a request for a page has no body");
  }
  void answers(unsigned code) override;
  void left(HttpConnection* connection) override;

 private:
  struct Entrance {
    Entrance(asio::io_context& io, int listener) : socket(io, listener), pause(io) {}
    asio::posix::stream_descriptor socket;
    asio::steady_timer pause;
  };

  void listen(Entrance* entrance);
  bool accept_some(int listener);
  void admit(Descriptor socket, const sockaddr_storage& peer);
  bool has_place_for(const std::string& address);
  bool make_room(const std::string& address);
  bool has_lost_patience(const HttpConnection& connection) const;
  void make(const std::shared_ptr<HttpConnection>& connection, PageRequest request);
  void give(HttpConnection* connection, Page page);
  void look_for_gone();
  bool drop_slowest_answer();
  void refuse(const std::string& address, const std::string& why);
  void report(const std::string& address, const std::string& why);
  void forget_quiet_addresses(std::int64_t now_ms);
  void renew_context();
  void count();

  const HttpLimits limits_;
  const Callbacks callbacks_;
  AddressRate opens_, asks_;
  std::unordered_set<HttpConnection*> connections_;
  std::unordered_map<std::string, std::uint32_t> by_address_;
  std::uint32_t in_making_ = 0;  // pages that are being made, or wait for it
  bool looks_for_gone_ = false;
  std::uint64_t unsent_bytes_ = 0;
  std::int64_t reported_ms_ = -kReportMs;
  std::uint64_t told_refused_ = 0, told_made_room_ = 0;
  std::shared_ptr<asio::ssl::context> context_;
  std::atomic<std::uint32_t> open_{0};
  std::atomic<std::uint64_t> accepted_{0}, refused_{0}, made_room_{0}, memory_{0};
  std::atomic<bool> reports_{false};                                      // a report is not done yet
  std::array<std::atomic<std::uint64_t>, kPageCodes.size()> answered_{};  // with each of the codes

  // The end of io_ ends the connections, which tell left(). So it ends before what is above.
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::deque<Entrance> entrances_;
  asio::steady_timer gone_timer_{io_};
  asio::thread_pool maker_{1};
  std::thread thread_;
};

HttpServer::Loop::Loop(std::vector<Descriptor> sockets, const HttpLimits& limits, Callbacks callbacks)
    : limits_(limits),
      callbacks_(std::move(callbacks)),
      opens_(limits.opens_max, std::max(limits.opens_max, limits.connections_per_address_max)),
      asks_(limits.opens_max, limits.opens_max) {
  for (Descriptor& socket : sockets) {  // connections take the buffers of their listeners
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBufferBytes, sizeof kReceiveBufferBytes);
    listen(&entrances_.emplace_back(io_, socket.release()));
  }
}

// A connection whose page is being made holds itself.
HttpServer::Loop::~Loop() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
  maker_.stop();
  maker_.join();
  while (!connections_.empty()) (*connections_.begin())->drop();
}

void HttpServer::Loop::start() {
  asio::post(maker_, [] { name_this_thread("pages"); });
  thread_ = std::thread([this] {
    name_this_thread("http");
    io_.run();
  });
}

void HttpServer::Loop::listen(Entrance* entrance) {
  entrance->socket.async_wait(asio::posix::descriptor_base::wait_read, [this, entrance](const Error& error) {
    if (error) return;
    if (accept_some(entrance->socket.native_handle())) return listen(entrance);
    refuse("unknown", "the process is out of descriptors or memory");
    entrance->pause.expires_after(kNoDescriptorsPause);
    entrance->pause.async_wait([this, entrance](const Error& ended) {
      if (!ended) listen(entrance);
    });
  });
}

// Returns false if there are no descriptors for more.
bool HttpServer::Loop::accept_some(int listener) {
  for (int i = 0; i < kAcceptsMax; ++i) {
    sockaddr_storage peer = {};
    socklen_t size = sizeof peer;
    Descriptor socket(::accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) {
      admit(std::move(socket), peer);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    }  // others: errors of the network that the next connection does not have
  }
  return true;
}

void HttpServer::Loop::admit(Descriptor socket, const sockaddr_storage& peer) {
  PeerName name = name_of_peer(peer);
  const std::int64_t now = now_ms();
  forget_quiet_addresses(now);
  renew_context();
  if (callbacks_.new_context && context_ == nullptr) return refuse(name.address, "the certificate cannot be used");
  if (!opens_.take(name.address, 1, now)) {
    return refuse(name.address, "this address opens more than " + std::to_string(limits_.opens_max) +
                                    " connections in a second (--connection-opens-max)");
  }
  if (!has_place_for(name.address)) {
    return refuse(name.address, "all places of its address, or of all, are being answered (--http-connections-max)");
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Tcp::socket taken(io_);
  Error error;
  taken.assign(peer.ss_family == AF_INET ? Tcp::v4() : Tcp::v6(), socket.get(), error);
  if (error) return refuse(name.address, "the process is out of descriptors or memory");
  socket.release();
  ++by_address_[name.address];
  const std::shared_ptr<HttpConnection> connection =
      make_http_connection(this, std::move(name), std::move(taken), context_, callbacks_.asks_for_certificates);
  connections_.insert(connection.get());
  accepted_.fetch_add(1, std::memory_order_relaxed);
  count();
  connection->start();
}

bool HttpServer::Loop::has_place_for(const std::string& address) {
  const auto of_address = by_address_.find(address);
  const bool is_crowded = of_address != by_address_.end() && of_address->second >= limits_.connections_per_address_max;
  if (is_crowded && !make_room(address)) return false;
  return connections_.size() < limits_.connections_max || make_room({});
}

// Its request, or its answer, has taken so long that others go first.
bool HttpServer::Loop::has_lost_patience(const HttpConnection& connection) const {
  const auto took = std::chrono::steady_clock::now() - connection.since();
  return took >= std::chrono::microseconds(limits_.patience_us);
}

// Closes a connection of this address or, without an address, of the address that has most. It is the one that has
// waited longest for its client's request. If none waits for one, it is the one that has had its request longest.
// False: all of them have had theirs for a moment only.
bool HttpServer::Loop::make_room(const std::string& address) {
  HttpConnection* chosen = nullptr;
  const auto rank = [this](const HttpConnection& connection) {
    return std::tuple(connection.phase() == HttpConnection::Phase::request, by_address_.at(connection.address()),
                      -connection.since().time_since_epoch());
  };
  for (HttpConnection* connection : connections_) {
    if (!address.empty() && connection->address() != address) continue;
    if (connection->phase() != HttpConnection::Phase::request && !has_lost_patience(*connection)) continue;
    if (chosen == nullptr || rank(*connection) > rank(*chosen)) chosen = connection;
  }
  if (chosen == nullptr) return false;
  made_room_.fetch_add(1, std::memory_order_relaxed);
  report(chosen->address(), "new connections took the places of those that waited longest (--http-connections-max)");
  chosen->drop();
  return true;
}

void HttpServer::Loop::refuse(const std::string& address, const std::string& why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  report(address, why);
}

void HttpServer::Loop::report(const std::string& address, const std::string& why) {
  const std::int64_t now = now_ms();
  if (!callbacks_.on_refused || now - reported_ms_ < kReportMs || reports_.exchange(true)) return;
  reported_ms_ = now;
  const std::uint64_t refused = refused_.load(std::memory_order_relaxed);
  const std::uint64_t made_room = made_room_.load(std::memory_order_relaxed);
  asio::post(maker_, [this, address, why, newly_refused = refused - std::exchange(told_refused_, refused),
                      newly_made_room = made_room - std::exchange(told_made_room_, made_room)] {
    callbacks_.on_refused(newly_refused, newly_made_room, address, why);
    reports_.store(false);
  });
}

void HttpServer::Loop::forget_quiet_addresses(std::int64_t now_ms) {
  for (AddressRate* rate : {&opens_, &asks_}) {
    if (rate->addresses() > kAddressesKept) rate->forget_quiet_ones(now_ms);
  }
}

void HttpServer::Loop::renew_context() {
  if (!callbacks_.new_context) return;
  if (tls::ServerContext context = callbacks_.new_context()) {
    context_ = std::make_shared<asio::ssl::context>(context.release());  // owns it
  }
}

void HttpServer::Loop::ask(const std::shared_ptr<HttpConnection>& connection, PageRequest request) {
  if (!asks_.take(connection->address(), 1, now_ms())) {
    return give(connection.get(), try_again(429, "this address asks more than " + std::to_string(limits_.opens_max) +
                                                     " times in a second (--connection-opens-max)\n"));
  }
  std::optional<Page> page = callbacks_.page_at_once ? callbacks_.page_at_once(request) : std::nullopt;
  if (page) return give(connection.get(), std::move(*page));
  if (in_making_ < kInMakingMax) return make(connection, std::move(request));
  give(connection.get(), try_again(503, "too many pages are asked for at the same time\n"));
}

// What waits for the maker holds the request alone. So a connection that is dropped meanwhile is gone at once.
void HttpServer::Loop::make(const std::shared_ptr<HttpConnection>& connection, PageRequest request) {
  ++in_making_;
  if (callbacks_.page_later && !std::exchange(looks_for_gone_, true)) look_for_gone();
  const auto done = [this, asker = std::weak_ptr<HttpConnection>(connection)](Page page) {
    asio::post(io_, [this, asker, page = std::move(page)]() mutable {
      --in_making_;
      if (const std::shared_ptr<HttpConnection> waiting = asker.lock()) give(waiting.get(), std::move(page));
    });
  };
  asio::post(maker_, [this, done, request = std::move(request)] {
    if (!callbacks_.page_later || !callbacks_.page_later(request, done)) done(callbacks_.page(request));
  });
}

// A connection whose page is being made reads nothing. So it would not notice that its client has gone.
void HttpServer::Loop::look_for_gone() {
  gone_timer_.expires_after(kGoneInterval);
  gone_timer_.async_wait([this](const Error& error) {
    if (error) return;
    for (HttpConnection* connection : connections_) {
      if (connection->phase() == HttpConnection::Phase::page) connection->look_if_gone();
    }
    looks_for_gone_ = in_making_ > 0;
    if (looks_for_gone_) look_for_gone();
  });
}

void HttpServer::Loop::give(HttpConnection* connection, Page page) {
  while (unsent_bytes_ + page.body.size() > limits_.page_bytes_max && drop_slowest_answer()) {
  }
  if (unsent_bytes_ + page.body.size() > limits_.page_bytes_max) {
    page = try_again(503, "clients have not taken too many pages\n");
  }
  const std::uint64_t bytes = page.body.size();
  unsent_bytes_ += bytes;
  count();
  connection->take_page(std::move(page), bytes);
}

// False: all clients have had their answers for a moment only.
bool HttpServer::Loop::drop_slowest_answer() {
  HttpConnection* slowest = nullptr;
  for (HttpConnection* connection : connections_) {
    if (connection->phase() != HttpConnection::Phase::answer || !has_lost_patience(*connection)) continue;
    if (slowest == nullptr || connection->since() < slowest->since()) slowest = connection;
  }
  if (slowest == nullptr) return false;
  made_room_.fetch_add(1, std::memory_order_relaxed);
  report(slowest->address(), "clients did not take their pages, and others asked for some");
  slowest->drop();
  return true;
}

void HttpServer::Loop::answers(unsigned code) {
  const auto found = std::find(kPageCodes.begin(), kPageCodes.end(), code);
  KILOKV_CHECK(found != kPageCodes.end());
  answered_[static_cast<std::size_t>(found - kPageCodes.begin())].fetch_add(1, std::memory_order_relaxed);
}

HttpCounts HttpServer::Loop::counts() const {
  HttpCounts counts{.open = open_.load(std::memory_order_relaxed),
                    .accepted = accepted_.load(std::memory_order_relaxed),
                    .refused = refused_.load(std::memory_order_relaxed),
                    .made_room = made_room_.load(std::memory_order_relaxed),
                    .memory_bytes = memory_.load(std::memory_order_relaxed)};
  for (std::size_t i = 0; i < kPageCodes.size(); ++i) counts.answered[i] = answered_[i].load(std::memory_order_relaxed);
  return counts;
}

void HttpServer::Loop::left(HttpConnection* connection) {
  if (connections_.erase(connection) == 0) return;
  const auto of_address = by_address_.find(connection->address());
  if (--of_address->second == 0) by_address_.erase(of_address);
  count();
}

void HttpServer::Loop::count() {
  const std::uint64_t open = connections_.size();
  const std::uint64_t bytes =
      unsent_bytes_ +
      HttpOptions::connection_bytes(open, static_cast<bool>(callbacks_.new_context), callbacks_.asks_for_certificates);
  open_.store(static_cast<std::uint32_t>(open), std::memory_order_relaxed);
  if (memory_.exchange(bytes, std::memory_order_relaxed) != bytes && callbacks_.on_memory) callbacks_.on_memory(bytes);
}

HttpServer::HttpServer(Listener listener, const HttpLimits& limits, Callbacks callbacks)
    : endpoint_(listener.endpoint),
      port_(listener.port),
      is_public_(!listener.loopback_only),
      loop_(std::make_unique<Loop>(std::move(listener.sockets), limits, std::move(callbacks))) {}

HttpServer::~HttpServer() = default;

void HttpServer::start() { loop_->start(); }

HttpCounts HttpServer::counts() const { return loop_->counts(); }

}  // namespace kilokv::server
