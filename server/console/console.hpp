// The console: a page in the browser for the people who operate the server, below /console/.
//
// The page is plain files (page/), and asks for JSON:
//
//   GET  /console/api/session        whether a login is needed, and who has logged in
//   POST /console/api/login          {"token": ...}: opens a session, whose secret is a cookie
//   POST /console/api/logout         ends it
//   GET  /console/api/metrics        the metrics
//   POST /console/api/call/METHOD    a call of the service (server/service/local_calls.hpp)
//   POST /console/api/demo/kill      kills the server, if --console-kill is on
//
// Everything has the rights of the login. On a server without logins, everybody who reaches the port may do everything,
// as on the port of gRPC. So a page of another origin must not use the browser of such a person. A POST needs the
// header Origin of the console itself, and JSON. Without logins, the header Host must be an address, `localhost` or the
// host of
// --http-listen. Otherwise a name of somebody else could lead to this server (DNS rebinding). With logins, the browser
// sends the cookie to this host alone, and never for a page of another site.
//
// Thread safety: any thread may call page_at_once() and refuse_body(); one thread at a time the rest. What a call does
// when it ends runs on a thread of gRPC.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.hpp"
#include "server/console/sessions.hpp"
#include "server/http/page.hpp"
#include "server/monitoring/pages.hpp"
#include "server/service/local_calls.hpp"
#include "server/service/rare_line.hpp"

namespace kilokv::server {

struct ConsoleOptions {
  std::string version = {};
  std::string listen_host = {};  // of --http-listen
  int port = 0;                  // of the pages. Cookies do not know ports, so the name of the cookie has it
  bool has_tls = false;
  bool has_kill = false;
};

class Console {
 public:
  // Requires: `pages`, `service` and `calls` outlive the console.
  Console(ConsoleOptions options, Pages* pages, KiloKvService* service, LocalCalls* calls);

  // Whether the console has the page of this request, perhaps as an error.
  static bool has(const PageRequest& request);
  // A file of the page. Nothing: page() or page_later() makes the page.
  std::optional<Page> page_at_once(const PageRequest& request) const;
  Page page(const PageRequest& request);
  // A call of the service; false: page() makes the page.
  bool page_later(const PageRequest& request, std::function<void(Page)> done);
  // What a request gets that must not have a body; nothing: it may have one.
  std::optional<Page> refuse_body(const PageRequest& request);

 private:
  // Who asks; the user is empty on a server without logins.
  struct Asker {
    ConsoleSessions::Login session;
    std::shared_ptr<const Login> login = {};  // null: no logins
  };

  Page file(std::string_view name) const;
  Status check_origin(const PageRequest& request) const;
  Result<Asker> asker_of(const PageRequest& request);
  // The secrets of all cookies with the name of this console. Another server of the host can set such cookies, too.
  std::vector<std::string> cookies_of(const PageRequest& request) const;
  // The session that the request has; nothing: none.
  std::optional<ConsoleSessions::Login> session_of(const PageRequest& request);
  void close_sessions(const PageRequest& request);
  // An empty secret removes the cookie.
  std::string cookie_header(const PageRequest& request, const std::string& secret) const;

  Page session(const PageRequest& request);
  Page login(const PageRequest& request);
  Page logout(const PageRequest& request);
  Page metrics(const PageRequest& request);
  Page kill(const PageRequest& request);
  Status may_kill(const Asker& asker) const;
  // Whether the asker has this right; the kill button and the metrics need one each.
  Status check_right(const Asker& asker, bool Rights::*right, const char* name, const std::string& what) const;
  void audit(const Asker& asker, const std::string& peer, const std::string& what, StatusCode result);

  const ConsoleOptions options_;
  const std::string cookie_name_;
  Pages* const pages_;
  KiloKvService* const service_;
  LocalCalls* const calls_;
  ConsoleSessions sessions_;
  FewLines lines_{100};
};

}  // namespace kilokv::server
