// Serves pages over HTTP/1.1, with or without TLS, to few clients at a time: a monitoring system, and probes.
//
// One thread talks to all clients, and never waits for one of them. So a client that is slow, or silent, holds its own
// place only. The places are few, and so is the memory (options.hpp). The headers of a request are short. A request has
// a body only where the callbacks say so, and a body is short, too. A second thread makes the
// pages that may take a while. Others, such as the answer to a probe, never wait for these. A page that waits for
// something else is given later, and the second thread goes on.
//
// When all places are taken, or those of an address, a new connection takes the place of one that waits for its
// client's request: the address that has most of them loses the one that has waited longest. If all have a request, the
// one that has had it longest goes, also if its client has not taken the answer. So neither connections without a
// request nor slow ones keep others out. A new connection is refused only if all places have just got a request, or if
// its address opens too many in a second.
//
// Thread safety: any thread may call counts(). Callbacks says which thread makes which call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/status.hpp"
#include "server/edge/listener.hpp"
#include "server/http/options.hpp"
#include "server/http/page.hpp"
#include "tls/server_context.hpp"

namespace kilokv::server {

struct HttpCounts {
  std::uint32_t open = 0;
  std::uint64_t accepted = 0, refused = 0;                  // since the start
  std::uint64_t made_room = 0;                              // likewise: closed because another one took the place
  std::uint64_t memory_bytes = 0;                           // of the connections, and of unsent pages
  std::array<std::uint64_t, kPageCodes.size()> answered{};  // requests, by the code of their answer
};

class HttpServer {
 public:
  struct Callbacks {
    // Makes a page. The second thread calls it: other pages of this kind wait meanwhile.
    std::function<Page(const PageRequest& request)> page;
    // Makes a page without waiting for anything, because all clients wait meanwhile. Nothing: `page` makes it.
    std::function<std::optional<Page>(const PageRequest& request)> page_at_once = {};
    // Begins to make a page that waits for something else, and returns true; false: `page` makes it. Any thread may
    // call `done` once, also before this returns. The second thread calls it. Requires: no `done` is called when the
    // server has ended.
    std::function<bool(const PageRequest& request, std::function<void(Page)> done)> page_later = {};
    // What a request gets instead of its page, because it must not have a body. The body is not there yet. Nothing: it
    // may have one. Empty: no request may. The first thread calls it.
    std::function<std::optional<Page>(const PageRequest& request)> refuse_body = {};
    // A new context for the next connections; null: the last one goes on. Empty: no TLS. The first thread calls it.
    std::function<tls::ServerContext()> new_context = {};
    bool asks_for_certificates = false;
    // Connections were refused, or gave up their places: so many since the last call. At most every ten seconds. The
    // second thread calls it.
    std::function<void(std::uint64_t refused, std::uint64_t made_room, const std::string& address,
                       const std::string& why)>
        on_refused = {};
    std::function<void(std::uint64_t bytes)> on_memory = {};  // has changed; the first thread calls it
  };

  // Requires: what the callbacks use outlives the server.
  HttpServer(Listener listener, const HttpLimits& limits, Callbacks callbacks);
  ~HttpServer();  // closes all connections
  // Begins to accept connections. They wait until then. Requires: called once.
  void start();

  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  HttpCounts counts() const;
  int port() const { return port_; }
  const std::string& endpoint() const { return endpoint_; }
  bool is_public() const { return is_public_; }  // other machines can connect

 private:
  class Loop;
  std::string endpoint_;
  int port_;
  bool is_public_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace kilokv::server
