// One connection of the server of pages: reads a request, writes the page, and begins again.
//
// States: handshake (TLS only) -> head -> body (if there is one) -> page -> answer -> idle -> head -> ... -> ending.
// Each has a deadline, except `page`, in which the server makes the page.
//
// Life: the operation that is under way holds the connection, and in the state `page` the connection holds itself. When
// nothing holds it, it is gone. Thread safety: the thread of the server that talks to clients.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "server/edge/peer_name.hpp"
#include "server/http/options.hpp"
#include "server/http/page.hpp"

namespace kilokv::server {

class HttpConnection {
 public:
  // What a connection needs of its server, which outlives it.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual const HttpLimits& limits() const = 0;
    // The connection gets the page by take_page(), at once or later.
    virtual void ask(const std::shared_ptr<HttpConnection>& connection, PageRequest request) = 0;
    // What the request gets because it must not have a body; nothing: it may have one.
    virtual std::optional<Page> refuse_body(const PageRequest& request) = 0;
    virtual void answers(unsigned code) = 0;     // with a page of take_page(), or an error of its own
    virtual void sent(std::uint64_t bytes) = 0;  // of what take_page() has charged
    virtual void left(HttpConnection* connection) = 0;
  };

  // Whom the connection waits for: its client, with a request or with the end of the connection; the page; its client,
  // who has to take the answer.
  enum class Phase : std::uint8_t { request, page, answer };

  virtual ~HttpConnection() = default;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Begins. Called once.
  virtual void start() = 0;
  // `charged_bytes`: what the owner counts for the page until sent().
  virtual void take_page(Page page, std::uint64_t charged_bytes) = 0;
  // Tells the maker of the page if the client has closed its side meanwhile.
  virtual void look_if_gone() = 0;
  // Closes it at once. The owner hears of it before this returns.
  virtual void drop() = 0;

  const std::string& address() const { return peer_.address; }
  Phase phase() const { return phase_; }
  std::chrono::steady_clock::time_point since() const { return since_; }  // the phase has begun

 protected:
  HttpConnection(Owner* owner, PeerName peer) : owner_(owner), peer_(std::move(peer)) {}
  void begin(Phase phase) {
    phase_ = phase;
    since_ = std::chrono::steady_clock::now();
  }

  Owner* const owner_;
  const PeerName peer_;

 private:
  Phase phase_ = Phase::request;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

// A connection on this socket. `context`: null: no TLS. `asks_for_certificate`: the client may show one.
std::shared_ptr<HttpConnection> make_http_connection(HttpConnection::Owner* owner, PeerName peer,
                                                     boost::asio::ip::tcp::socket socket,
                                                     const std::shared_ptr<boost::asio::ssl::context>& context,
                                                     bool asks_for_certificate);

}  // namespace kilokv::server
