// Role: see console.hpp.
#include "server/console/console.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "server/console/files.hpp"
#include "server/core/access/access_check.hpp"
#include "server/service/audit_log.hpp"

namespace kilokv::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRoot = "/console/", kApi = "/console/api/", kCall = "/console/api/call/";
constexpr char kJsonType[] = "application/json";
// Nothing but the files of the console runs in its page, and nobody else shows the page in a frame.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
// The calls that the console makes. All of them are unary.
constexpr std::array<std::string_view, 10> kMethods = {
    "Execute", "Get",         "Scan",     "ListParked",   "Cancel",
    "Status",  "ListHotKeys", "ListSlow", "ListSessions", "ListConnections"};
constexpr DurationUs kCallUsMax = 30000000;
constexpr DurationUs kExecuteUsMax = 600000000;  // its guards may wait

TimeUs monotonic_us() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

unsigned http_code_of(StatusCode code) {
  switch (code) {
    case StatusCode::ok: return 200;
    case StatusCode::cancelled:
    case StatusCode::invalid_argument:
    case StatusCode::not_found:
    case StatusCode::failed_precondition:
    case StatusCode::aborted:
    case StatusCode::unimplemented: return 400;
    case StatusCode::unauthenticated: return 401;
    case StatusCode::permission_denied: return 403;
    case StatusCode::resource_exhausted: return 429;
    case StatusCode::deadline_exceeded:
    case StatusCode::internal:
    case StatusCode::unavailable:
    case StatusCode::data_loss: return 503;
  }
  return 503;  // not a value of the enum
}

Page json_page(std::string json, StatusCode code = StatusCode::ok) {
  Page page;
  page.code = http_code_of(code);
  page.content_type = kJsonType;
  page.body = std::move(json);
  return page;
}

Page error_page(const Status& status) { return json_page(error_json(status), status.code()); }

Status refused(ErrorReason reason, const std::string& why) {
  return Status(StatusCode::invalid_argument, reason, why).as_not_run();
}

Status needs_login() {
  return Status(StatusCode::unauthenticated, ErrorReason::login_missing, "the console needs a login").as_not_run();
}

Page with_policy(Page page) {
  page.headers.emplace_back("Content-Security-Policy", kPolicy);
  page.headers.emplace_back("Referrer-Policy", "no-referrer");
  page.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  page.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  return page;
}

std::string type_of(std::string_view name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".txt")) return "text/plain; charset=utf-8";
  return "image/svg+xml";
}

// The host of the header Host, without the port and without the brackets of IPv6; empty: it is malformed.
std::string_view host_name(std::string_view host) {
  const bool has_brackets = host.starts_with('[');
  const std::size_t end = has_brackets ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == std::string_view::npos) return {};
  const std::string_view rest = host.substr(end + (has_brackets ? 1 : 0));
  const bool is_port = rest.starts_with(':') && rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
  if (!rest.empty() && !is_port) return {};
  return has_brackets ? host.substr(1, end - 1) : host.substr(0, end);
}

bool is_address(const std::string& name) {
  in6_addr address = {};
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 || ::inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

}  // namespace

Console::Console(ConsoleOptions options, Pages* pages, KiloKvService* service, LocalCalls* calls)
    : options_(std::move(options)),
      cookie_name_("kilokv_console_" + std::to_string(options_.port)),
      pages_(pages),
      service_(service),
      calls_(calls),
      sessions_(monotonic_us) {}

bool Console::has(const PageRequest& request) {
  return request.path == "/" || request.path == "/console" || request.path.starts_with(kRoot);
}

std::optional<Page> Console::page_at_once(const PageRequest& request) const {
  if (request.path.starts_with(kApi)) return std::nullopt;
  if (request.method != "GET" && request.method != "HEAD") {
    Page page = refusal_page(405, "this page takes GET and HEAD");
    page.headers = {{"Allow", "GET, HEAD"}};
    return page;
  }
  if (!request.path.starts_with(kRoot)) {
    Page page = refusal_page(302, "the console is at /console/");
    page.headers = {{"Location", std::string(kRoot)}};
    return page;
  }
  return with_policy(file(std::string_view(request.path).substr(kRoot.size())));
}

Page Console::file(std::string_view name) const {
  if (name.empty()) name = "index.html";
  const auto files = console_files();
  const auto found = std::find_if(files.begin(), files.end(), [name](const ConsoleFile& f) { return f.name == name; });
  if (found == files.end()) return refusal_page(404, "the console has no such file; it begins at /console/");
  Page page;
  page.content_type = type_of(name);
  page.body = std::string(found->content);
  return page;
}

Page Console::page(const PageRequest& request) {
  struct Endpoint {
    std::string_view path, method;
    Page (Console::*make)(const PageRequest& request);
  };
  static constexpr std::array<Endpoint, 5> kEndpoints = {{{"session", "GET", &Console::session},
                                                          {"metrics", "GET", &Console::metrics},
                                                          {"login", "POST", &Console::login},
                                                          {"logout", "POST", &Console::logout},
                                                          {"demo/kill", "POST", &Console::kill}}};
  const std::string_view path = std::string_view(request.path).substr(kApi.size());
  for (const Endpoint& endpoint : kEndpoints) {
    if (endpoint.path != path || endpoint.method != request.method) continue;
    if (Status status = check_origin(request); !status.ok()) return with_policy(error_page(status));
    return with_policy((this->*endpoint.make)(request));
  }
  return with_policy(error_page(refused(ErrorReason::unknown_method, "the console has no such call")));
}

bool Console::page_later(const PageRequest& request, std::function<void(Page)> done) {
  if (!request.path.starts_with(kCall) || request.method != "POST") return false;
  const std::string method = request.path.substr(kCall.size());
  if (std::find(kMethods.begin(), kMethods.end(), method) == kMethods.end()) return false;
  Status status = check_origin(request);
  Result<Asker> asker = status.ok() ? asker_of(request) : Result<Asker>(status);
  if (!asker.ok()) {
    done(with_policy(error_page(asker.status())));
    return true;
  }
  const bool is_execute = method == "Execute";
  const bool is_audited = is_execute || method == "Cancel";
  // The calls of a user share places, and without logins those of an address.
  const std::string owner =
      asker->login != nullptr ? asker->session.user : request.peer.substr(0, request.peer.rfind(':'));
  LocalCalls::Call call{.method = method,
                        .json = request.body,
                        .token = asker->session.token,
                        .peer = request.peer,
                        .owner = owner,
                        .may_wait = is_execute,
                        .timeout_us = is_execute ? kExecuteUsMax : kCallUsMax,
                        .cancelled = request.gone};
  calls_->begin(call, [this, done = std::move(done), asker = std::move(*asker), peer = request.peer, method,
                       is_audited](LocalCalls::Answer answer) {
    if (is_audited) audit(asker, peer, method, answer.code);
    done(with_policy(json_page(std::move(answer.json), answer.code)));
  });
  return true;
}

std::optional<Page> Console::refuse_body(const PageRequest& request) {
  if (!request.path.starts_with(kApi) || request.method != "POST") {
    return refusal_page(413, "a request for this page has no body");
  }
  const bool needs_session = service_->logins().required() && request.path != "/console/api/login";
  if (!needs_session || session_of(request)) return std::nullopt;
  return with_policy(error_page(needs_login()));
}

Status Console::check_origin(const PageRequest& request) const {
  if (request.host.empty()) return refused(ErrorReason::missing_field, "the request has no header Host");
  const std::string name(host_name(request.host));
  const bool is_own = name == "localhost" || name == options_.listen_host || is_address(name);
  if (!service_->logins().required() && !is_own) {
    return refused(
        ErrorReason::not_allowed,
        "this server has no logins. So the console is shown only at an address, at localhost, or at the host "
        "of --http-listen, and not at another name");
  }
  if (request.method != "POST") return {};
  // A proxy that ends TLS may be before a server without TLS.
  const bool is_https = request.origin == "https://" + request.host;
  const bool is_http = !options_.has_tls && request.origin == "http://" + request.host;
  if (!is_https && !is_http) {
    return refused(ErrorReason::not_allowed,
                   "the header Origin is not that of the console: another page must not use it");
  }
  const std::string_view type = std::string_view(request.content_type).substr(0, request.content_type.find(';'));
  if (type != kJsonType) {
    return refused(ErrorReason::malformed_message, "the header Content-Type is not application/json");
  }
  return {};
}

// The browser sends all cookies of the host as `name=value; name=value`.
std::vector<std::string> Console::cookies_of(const PageRequest& request) const {
  std::vector<std::string> secrets;
  std::string_view rest = request.cookie;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const std::string_view cookie = one.substr(std::min(one.find_first_not_of(' '), one.size()));
    const std::size_t equals = cookie.find('=');
    if (cookie.substr(0, equals) == cookie_name_ && equals != std::string_view::npos) {
      secrets.emplace_back(cookie.substr(equals + 1));
    }
  }
  return secrets;
}

std::optional<ConsoleSessions::Login> Console::session_of(const PageRequest& request) {
  for (const std::string& secret : cookies_of(request)) {
    if (std::optional<ConsoleSessions::Login> found = sessions_.find(secret)) return found;
  }
  return std::nullopt;
}

void Console::close_sessions(const PageRequest& request) {
  for (const std::string& secret : cookies_of(request)) sessions_.close(secret);
}

std::string Console::cookie_header(const PageRequest& request, const std::string& secret) const {
  const bool is_https = options_.has_tls || request.origin.starts_with("https://");
  const std::string life = secret.empty() ? "; Max-Age=0" : "";
  return cookie_name_ + "=" + secret + "; Path=/console/; HttpOnly; SameSite=Strict" + life +
         (is_https ? "; Secure" : "");
}

Result<Console::Asker> Console::asker_of(const PageRequest& request) {
  Asker asker;
  if (service_->logins().required()) {
    std::optional<ConsoleSessions::Login> session = session_of(request);
    if (!session) return needs_login();
    asker.session = std::move(*session);
  }
  PageCaller caller = Pages::caller_of(request);
  const std::string header = "Bearer " + asker.session.token;
  caller.authorization = header;
  Result<std::shared_ptr<const Login>> login = service_->logins().login_of_page(caller);
  if (!login.ok()) {
    if (login.status().code() == StatusCode::unauthenticated) close_sessions(request);
    return login.status();
  }
  asker.login = std::move(*login);
  return asker;
}

Status Console::check_right(const Asker& asker, bool Rights::*right, const char* name, const std::string& what) const {
  if (asker.login == nullptr) return {};
  const Result<std::shared_ptr<const Rights>> rights = service_->logins().rights_of(*asker.login);
  if (!rights.ok()) return rights.status();
  return (**rights).*right ? Status() : right_missing(asker.session.user, name, what);
}

Page Console::session(const PageRequest& request) {
  const bool needs_login = service_->logins().required();
  const Result<Asker> asker = asker_of(request);
  if (!asker.ok() && asker.status().reason() != ErrorReason::login_missing) return error_page(asker.status());
  return json_page(Json{{"login", needs_login ? "needed" : "none"},
                        {"user", asker.ok() ? asker->session.user : ""},
                        {"version", options_.version},
                        {"demo", asker.ok() && may_kill(*asker).ok()}}
                       .dump());
}

Page Console::login(const PageRequest& request) {
  const Json body = Json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.contains("token") || !body["token"].is_string()) {
    return error_page(refused(ErrorReason::malformed_message, "the body is not {\"token\": \"...\"}"));
  }
  if (!service_->logins().required()) {
    return error_page(refused(ErrorReason::not_allowed, "this server has no logins (--login)"));
  }
  const auto token = body["token"].get<std::string>();
  PageCaller caller = Pages::caller_of(request);
  const std::string header = "Bearer " + token;
  caller.authorization = header;
  const Result<std::shared_ptr<const Login>> login = service_->logins().login_of_page(caller);
  if (!login.ok()) return error_page(login.status());
  close_sessions(request);
  const Asker asker{{(*login)->user, token}, *login};
  const std::optional<std::string> secret = sessions_.open(asker.session);
  if (!secret) return error_page(Status(StatusCode::internal, "there is no randomness for a cookie"));
  audit(asker, request.peer, "login", StatusCode::ok);
  Page page = json_page(Json{{"user", asker.session.user}}.dump());
  page.headers.emplace_back("Set-Cookie", cookie_header(request, *secret));
  return page;
}

Page Console::logout(const PageRequest& request) {
  if (const Result<Asker> asker = asker_of(request); asker.ok()) audit(*asker, request.peer, "logout", StatusCode::ok);
  close_sessions(request);
  Page page = json_page("{}");
  page.headers.emplace_back("Set-Cookie", cookie_header(request, ""));
  return page;
}

Page Console::metrics(const PageRequest& request) {
  const Result<Asker> asker = asker_of(request);
  if (!asker.ok()) return error_page(asker.status());
  const Status right = check_right(*asker, &Rights::metrics, "metrics", "the metrics");
  return right.ok() ? json_page(pages_->metrics_json()) : error_page(right);
}

Status Console::may_kill(const Asker& asker) const {
  if (!options_.has_kill) return refused(ErrorReason::not_allowed, "the server has no kill button (--console-kill)");
  return check_right(asker, &Rights::admin, "admin", "the kill button");
}

Page Console::kill(const PageRequest& request) {
  const Result<Asker> asker = asker_of(request);
  if (!asker.ok()) return error_page(asker.status());
  const Status allowed = may_kill(*asker);
  audit(*asker, request.peer, "kill", allowed.code());
  if (!allowed.ok()) return error_page(allowed);
  ::kill(::getpid(), SIGKILL);
  return json_page("{}");
}

// Execute and Cancel may come as often as somebody clicks.
void Console::audit(const Asker& asker, const std::string& peer, const std::string& what, StatusCode result) {
  if (const auto left_out = lines_.next()) log_console(asker.login.get(), peer, what, result, *left_out);
}

}  // namespace kilokv::server
