// What the console gives to whom: its files, calls with the rights of the login, and nothing to other pages.
#include "server/console/console.hpp"

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/service/audit_lines.hpp"
#include "tests/unit/service/service_fixture.hpp"
#include "tls/token.hpp"

namespace kilokv::server {
namespace {

using Json = nlohmann::json;
using Kind = AccessChange::Kind;

class ConsoleTest : public ServiceTest {
 protected:
  explicit ConsoleTest(const ServiceOptions& options = {}, const ConsoleOptions& console = {})
      : ServiceTest(options), console_(completed(console), &pages_, &service_, &calls_) {}
  ~ConsoleTest() override { calls_.close(); }

  static ConsoleOptions completed(ConsoleOptions options) {
    options.version = "1.2.3";
    options.listen_host = "console.example";
    options.port = 7071;
    return options;
  }
  static PageRequest get(const std::string& path) {
    PageRequest request{.method = "GET", .path = path};
    request.peer = "ipv4:10.0.0.9:5";
    request.host = "127.0.0.1:7071";
    return request;
  }
  PageRequest post(const std::string& path, const std::string& body) const {
    PageRequest request = get(path);
    request.method = "POST";
    request.origin = "http://127.0.0.1:7071";
    request.content_type = "application/json";
    request.cookie = cookie_;
    request.body = body;
    return request;
  }
  // The page, however the console makes it.
  Page ask(const PageRequest& request) {
    if (std::optional<Page> page = console_.page_at_once(request)) return std::move(*page);
    std::mutex mutex;
    std::condition_variable given;
    std::optional<Page> page;
    const bool is_later = console_.page_later(request, [&](Page made) {
      const std::lock_guard lock(mutex);
      page = std::move(made);
      given.notify_one();
    });
    if (!is_later) return console_.page(request);
    std::unique_lock lock(mutex);
    EXPECT_TRUE(given.wait_for(lock, kDeadline, [&] { return page.has_value(); }));
    return page.value_or(Page());
  }
  Page call(const std::string& method, const std::string& body) {
    return ask(post("/console/api/call/" + method, body));
  }
  static std::string reason_of(const Page& page) {
    const Json json = Json::parse(page.body, nullptr, false);
    return json.is_object() && json.contains("error") ? json["error"]["reason"].get<std::string>() : "no error";
  }
  static std::string header_of(const Page& page, const std::string& name) {
    for (const auto& [key, value] : page.headers) {
      if (key == name) return value;
    }
    return {};
  }

  Pages pages_{&service_};
  LocalCalls calls_{server_->server(), &service_.logins()};
  Console console_;
  std::string cookie_;
};

TEST_F(ConsoleTest, ItsFilesNeedNoLoginAndNothingElseRunsInThem) {
  const Page page = ask(get("/console/"));
  EXPECT_EQ(page.code, 200u);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_NE(header_of(page, "Content-Security-Policy").find("default-src 'none'; script-src 'self'"),
            std::string::npos);
  EXPECT_EQ(ask(get("/console/uplot.js")).content_type, "text/javascript; charset=utf-8");
  EXPECT_NE(ask(get("/console/uplot-license.txt")).body.find("Leon Sorokin"), std::string::npos);
  EXPECT_EQ(ask(get("/console/nothing.js")).code, 404u);
  EXPECT_EQ(ask(get("/console/../console/")).code, 404u);
  for (const char* path : {"/", "/console"}) {
    EXPECT_TRUE(Console::has(get(path)));
    EXPECT_EQ(ask(get(path)).code, 302u);
    EXPECT_EQ(header_of(ask(get(path)), "Location"), "/console/");
  }
  EXPECT_FALSE(Console::has(get("/metrics")));
  EXPECT_EQ(ask(post("/console/", "")).code, 405u);
}

TEST_F(ConsoleTest, WithoutLoginsEverybodyMayDoEverything) {
  service_.serve(&database_);
  const Json session = Json::parse(ask(get("/console/api/session")).body);
  EXPECT_EQ(session["login"], "none");
  EXPECT_EQ(session["version"], "1.2.3");
  const Page status = call("Status", "{}");
  EXPECT_EQ(status.code, 200u);
  EXPECT_EQ(Json::parse(status.body)["server"]["server_version"], "1.2.3");
  EXPECT_EQ(Json::parse(status.body)["server"]["read_only"], false) << "a default is shown, too";
  EXPECT_FALSE(Json::parse(ask(get("/console/api/metrics")).body)["time_us"].get<std::string>().empty());
  EXPECT_EQ(reason_of(ask(post("/console/api/login", R"({"token": "x"})"))), "NOT_ALLOWED");
}

TEST_F(ConsoleTest, ACallThatItDoesNotMakeIsRefused) {
  service_.serve(&database_);
  for (const char* method : {"ChangeAccess", "Backup", "Session", "OpenSession", "Nothing", "", "Get/"}) {
    EXPECT_EQ(reason_of(call(method, "{}")), "UNKNOWN_METHOD") << method;
  }
  EXPECT_EQ(reason_of(ask(get("/console/api/call/Status"))), "UNKNOWN_METHOD");
  EXPECT_EQ(reason_of(ask(get("/console/api/login"))), "UNKNOWN_METHOD");
}

TEST_F(ConsoleTest, WhatIsNoRequestIsRefusedByName) {
  service_.serve(&database_);
  const Page page = call("Get", "{nothing}");
  EXPECT_EQ(page.code, 400u);
  EXPECT_EQ(reason_of(page), "MALFORMED_MESSAGE");
  EXPECT_EQ(reason_of(call("Scan", R"({"limits": 1})")), "MALFORMED_MESSAGE");
}

TEST_F(ConsoleTest, AServerThatIsNotReadySaysSo) {
  const Page page = call("Scan", "{}");
  EXPECT_EQ(page.code, 503u);
  EXPECT_EQ(reason_of(page), "RECOVERING");
}

TEST_F(ConsoleTest, AnotherPageCannotUseIt) {
  service_.serve(&database_);
  PageRequest request = post("/console/api/call/Status", "{}");
  for (const char* origin :
       {"", "null", "http://evil.example", "https://evil.example", "http://127.0.0.1:7072", "http://127.0.0.1:70710"}) {
    request.origin = origin;
    EXPECT_EQ(reason_of(ask(request)), "NOT_ALLOWED") << origin;
  }
  request.origin = "https://127.0.0.1:7071";  // a proxy that ends TLS
  EXPECT_EQ(ask(request).code, 200u);
  request = post("/console/api/call/Status", "{}");
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded"}) {
    request.content_type = type;
    EXPECT_EQ(ask(request).code, 400u) << type;
  }
  request.content_type = "application/json; charset=utf-8";
  EXPECT_EQ(ask(request).code, 200u);
}

// Otherwise a name of somebody else could lead to a server without logins.
TEST_F(ConsoleTest, WithoutLoginsOnlyItsOwnHostsShowIt) {
  service_.serve(&database_);
  PageRequest request = get("/console/api/session");
  for (const char* host :
       {"127.0.0.1:7071", "localhost:7071", "localhost", "[::1]:7071", "10.1.2.3", "console.example:7071"}) {
    request.host = host;
    EXPECT_EQ(ask(request).code, 200u) << host;
  }
  for (const char* host : {"evil.example:7071", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                           "[::1].evil.example", "127.0.0.1:80@evil.example", "[127.0.0.1]evil.example", "[::1", "]"}) {
    request.host = host;
    EXPECT_EQ(reason_of(ask(request)), "NOT_ALLOWED") << host;
    PageRequest same = post("/console/api/call/Status", "{}");
    same.host = host;
    same.origin = std::string("http://") + host;
    EXPECT_EQ(reason_of(ask(same)), "NOT_ALLOWED") << host;
  }
  request.host = "";
  EXPECT_EQ(ask(request).code, 400u);
}

class ConsoleTlsTest : public ConsoleTest {
 protected:
  ConsoleTlsTest() : ConsoleTest({}, {.has_tls = true}) {}
};

TEST_F(ConsoleTlsTest, WithTlsNoPageWithoutTlsUsesIt) {
  service_.serve(&database_);
  PageRequest request = post("/console/api/call/Status", "{}");
  EXPECT_EQ(reason_of(ask(request)), "NOT_ALLOWED");
  request.origin = "https://127.0.0.1:7071";
  EXPECT_EQ(ask(request).code, 200u);
  EXPECT_TRUE(header_of(ask(post("/console/api/logout", "{}")), "Set-Cookie").empty());  // it is refused
  request.path = "/console/api/logout";
  EXPECT_TRUE(header_of(ask(request), "Set-Cookie").ends_with("; Secure"));
}

TEST_F(ConsoleTest, TheKillButtonIsOffUnlessASettingSaysSo) {
  service_.serve(&database_);
  EXPECT_EQ(Json::parse(ask(get("/console/api/session")).body)["demo"], false);
  EXPECT_EQ(reason_of(ask(post("/console/api/demo/kill", "{}"))), "NOT_ALLOWED");  // and the test goes on
}

TEST_F(ConsoleTest, ACallEndsWhenItsBrowserHasGone) {
  service_.serve(&database_);
  std::stop_source gone;
  gone.request_stop();
  PageRequest request = post("/console/api/call/Scan", "{}");
  request.gone = gone.get_token();
  EXPECT_EQ(ask(request).code, 400u);  // CANCELLED, which nobody takes
}

// A transaction may wait for long. So those of one user leave places to others, and to other calls.
TEST_F(ConsoleTest, TransactionsOfOneUserLeavePlaces) {
  service_.serve(&database_);
  std::mutex mutex;
  std::vector<std::string> refused;
  const auto begin = [&](const std::string& owner) {
    calls_.begin({.method = "Execute",
                  .json = R"({"transaction": {"then": [{"kind": "OPERATION_KIND_GET", "key": "YQ=="}]}})",
                  .peer = "ipv4:10.0.0.9:5",
                  .owner = owner,
                  .may_wait = true,
                  .timeout_us = 60000000},
                 [&](const LocalCalls::Answer& answer) {
                   const std::lock_guard lock(mutex);
                   refused.push_back(Json::parse(answer.json)["error"]["reason"]);
                 });
  };
  for (std::size_t i = 0; i < LocalCalls::kWaitsOfOwnerMax; ++i) begin("ada");
  EXPECT_TRUE(refused.empty());
  begin("ada");
  EXPECT_EQ(refused, std::vector<std::string>{"CALLS_FULL"});
  for (std::size_t i = LocalCalls::kWaitsOfOwnerMax; i < LocalCalls::kWaitsMax; ++i) begin(std::to_string(i));
  EXPECT_EQ(refused.size(), 1u);
  begin("bob");
  EXPECT_EQ(refused.size(), 2u);
  EXPECT_EQ(call("Scan", "{}").code, 200u);
  calls_.close();
}

TEST_F(ConsoleTest, AfterTheEndEveryCallIsRefused) {
  service_.serve(&database_);
  calls_.close();
  EXPECT_EQ(reason_of(call("Status", "{}")), "DRAINING");
}

class ConsoleLoginTest : public ConsoleTest {
 protected:
  ConsoleLoginTest() : ConsoleTest(with_logins(), {.has_tls = false, .has_kill = true}) {
    AccessChange role = change(Kind::put_role);
    role.role = {.name = "all", .read = {KeyRange{}}, .write = {}, .admin = false, .metrics = false};
    make(role);
    AccessChange user = change(Kind::put_user);
    user.user = {.name = "ada", .roles = {"all"}, .certificates = {}};
    make(user);
    AccessChange token = change(Kind::put_token);
    token.token.id = token_.parts.id;
    token.token.user = "ada";
    token.token.secret_hash = token_.parts.secret_hash;
    make(token);
    service_.serve(&database_);
  }
  static ServiceOptions with_logins() {
    ServiceOptions options;
    options.login = true;
    return options;
  }
  static AccessChange change(Kind kind) { return {.kind = kind, .role = {}, .user = {}, .token = {}}; }
  void make(const AccessChange& wanted) {
    database_.change_access(
        nullptr, [&](const AccessTable&) -> Result<AccessChange> { return wanted; },
        [](const Result<BatchNumber>& batch) { EXPECT_TRUE(batch.ok()); });
  }
  Page log_in(const std::string& token) {
    Page page = ask(post("/console/api/login", Json{{"token", token}}.dump()));
    const std::string cookie = header_of(page, "Set-Cookie");
    if (!cookie.empty()) cookie_ = "theme=dark; " + cookie.substr(0, cookie.find(';'));
    return page;
  }

  const tls::NewToken token_ = *tls::make_token();
};

TEST_F(ConsoleLoginTest, ALoginIsACookieThatNoScriptAndNoOtherSiteHas) {
  EXPECT_EQ(Json::parse(ask(get("/console/api/session")).body)["login"], "needed");
  EXPECT_EQ(reason_of(call("Scan", "{}")), "LOGIN_MISSING");
  const Page page = log_in(token_.text);
  ASSERT_EQ(page.code, 200u);
  EXPECT_EQ(Json::parse(page.body)["user"], "ada");
  const std::string cookie = header_of(page, "Set-Cookie");
  EXPECT_TRUE(cookie.starts_with("kilokv_console_7071="));
  EXPECT_TRUE(cookie.ends_with("; Path=/console/; HttpOnly; SameSite=Strict")) << cookie;
  EXPECT_EQ(cookie.find(token_.text), std::string::npos);
  PageRequest session = get("/console/api/session");
  session.cookie = cookie_;
  EXPECT_EQ(Json::parse(ask(session).body)["user"], "ada");
  EXPECT_EQ(call("Scan", "{}").code, 200u);
}

TEST_F(ConsoleLoginTest, AWrongTokenIsRefused) {
  for (const std::string& token : {tls::make_token()->text, std::string("nonsense"), std::string()}) {
    const Page page = log_in(token);
    EXPECT_EQ(page.code, 401u);
    EXPECT_EQ(reason_of(page), "LOGIN_WRONG");
    EXPECT_TRUE(header_of(page, "Set-Cookie").empty());
  }
  EXPECT_EQ(ask(post("/console/api/login", "{}")).code, 400u);
}

TEST_F(ConsoleLoginTest, ItHasTheRightsOfItsLogin) {
  log_in(token_.text);
  EXPECT_EQ(reason_of(call("ListHotKeys", "{}")), "RIGHT_MISSING");
  PageRequest metrics = get("/console/api/metrics");
  EXPECT_EQ(ask(metrics).code, 401u);
  metrics.cookie = cookie_;
  EXPECT_EQ(ask(metrics).code, 403u);
  EXPECT_EQ(reason_of(ask(post("/console/api/demo/kill", "{}"))), "RIGHT_MISSING");
}

TEST_F(ConsoleLoginTest, ALoginEndsWithItsTokenAndAtTheLogout) {
  log_in(token_.text);
  EXPECT_EQ(call("Scan", "{}").code, 200u);
  const Page out = ask(post("/console/api/logout", "{}"));
  EXPECT_NE(header_of(out, "Set-Cookie").find("Max-Age=0"), std::string::npos);
  EXPECT_EQ(reason_of(call("Scan", "{}")), "LOGIN_MISSING");
  log_in(token_.text);
  EXPECT_EQ(call("Scan", "{}").code, 200u);
  AccessChange removed = change(Kind::remove_token);
  removed.token.id = token_.parts.id;
  make(removed);
  EXPECT_EQ(call("Scan", "{}").code, 401u);
  EXPECT_EQ(reason_of(call("Scan", "{}")), "LOGIN_MISSING");
}

TEST_F(ConsoleLoginTest, OnlySomebodyWithALoginSendsABody) {
  const auto refusal = [this](const PageRequest& request) { return console_.refuse_body(request); };
  ASSERT_TRUE(refusal(post("/console/api/call/Scan", "")));
  EXPECT_EQ(refusal(post("/console/api/call/Scan", ""))->code, 401u);
  EXPECT_EQ(reason_of(*refusal(post("/console/api/call/Scan", ""))), "LOGIN_MISSING");
  EXPECT_FALSE(refusal(post("/console/api/login", "")));
  EXPECT_EQ(refusal(post("/metrics", ""))->code, 413u);
  EXPECT_EQ(refusal(get("/console/api/login"))->code, 413u);
  log_in(token_.text);
  EXPECT_FALSE(refusal(post("/console/api/call/Scan", "")));
}

// Another server of the host can set such a cookie.
TEST_F(ConsoleLoginTest, ACookieOfAnotherServerKeepsNobodyOut) {
  log_in(token_.text);
  cookie_ = "kilokv_console_7071=other; kilokv_console_7071; " + cookie_;
  EXPECT_EQ(call("Scan", "{}").code, 200u);
  EXPECT_FALSE(console_.refuse_body(post("/console/api/call/Scan", "")));
}

TEST_F(ConsoleLoginTest, TheKillButtonIsForAdministrators) {
  log_in(token_.text);
  PageRequest session = get("/console/api/session");
  session.cookie = cookie_;
  EXPECT_EQ(Json::parse(ask(session).body)["demo"], false);
}

TEST_F(ConsoleLoginTest, AProxyThatEndsTlsGetsASecureCookie) {
  PageRequest request = post("/console/api/login", Json{{"token", token_.text}}.dump());
  request.host = "db.example";
  request.origin = "https://db.example";
  EXPECT_TRUE(header_of(ask(request), "Set-Cookie").ends_with("; Secure"));
}

// The metadata of calls from within the process mean nothing from outside.
TEST_F(ConsoleLoginTest, NobodyElseNamesAPeer) {
  for (const std::string& secret : {std::string(64, '0'), std::string()}) {
    const auto context = ServiceTest::context();
    context->AddMetadata(kLocalSecretKey, secret);
    context->AddMetadata(kLocalPeerKey, "ipv4:10.0.0.1:1");
    context->AddMetadata("authorization", "Bearer " + token_.text);
    v1::ScanResponse response;
    EXPECT_TRUE(stub_->Scan(context.get(), {}, &response).ok());
  }
  // The login was noted for the connection from which it came.
  std::vector<std::string> users;
  for (const ConnectionInfo& open : service_.environment()->connections()) {
    users.push_back(service_.logins().user_of(open.peer));
  }
  EXPECT_EQ(users, std::vector<std::string>{"ada"});
}

TEST_F(ConsoleLoginTest, WhatSomebodyDoesIsAudited) {
  test::AuditLines lines;
  log_in(token_.text);
  call("Execute", "{}");
  ask(post("/console/api/logout", "{}"));
  const std::string text = lines.take();
  const std::string begin = "kilokvd audit user=ada token=" + token_.parts.id + " peer=ipv4:10.0.0.9:5 console=";
  for (const char* what : {"login result=OK", "Execute result=", "logout result=OK"}) {
    EXPECT_NE(text.find(begin + what), std::string::npos) << what << "\n" << text;
  }
}

}  // namespace
}  // namespace kilokv::server
