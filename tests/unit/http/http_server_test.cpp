// The server of pages, over real sockets of this machine.
#include "server/http/http_server.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/http/http_client.hpp"

namespace kilokv::server {
namespace {

using test::HttpClient;

constexpr char kGet[] = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";

class HttpServerTest : public testing::Test {
 protected:
  void TearDown() override {
    let_go();
    server_.reset();
  }
  void let_go() {
    if (!std::exchange(has_let_go_, true)) hang_.set_value();
  }

  void start() {
    Result<Listener> listener = listen_on("127.0.0.1:0", "--http-listen");
    ASSERT_TRUE(listener.ok());
    make(std::move(*listener));
    server_->start();
  }
  void make(Listener listener) {
    HttpServer::Callbacks callbacks;
    callbacks.page = [this](const PageRequest& request) {
      if (request.path == "/hang") hung_.wait();
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      return page_;
    };
    callbacks.page_at_once = [](const PageRequest& request) {
      return request.path == "/probe" ? std::optional<Page>({.code = 200, .body = "alive"}) : std::nullopt;
    };
    callbacks.refuse_body = [](const PageRequest& request) {
      return request.path == "/form" ? std::nullopt : std::optional<Page>(refusal_page(413, "no body here"));
    };
    callbacks.page_later = [this](const PageRequest& request, std::function<void(Page)> done) {
      if (request.path != "/later") return false;
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      later_.push_back(std::move(done));
      return true;
    };
    callbacks.on_memory = [this](std::uint64_t bytes) { memory_ = bytes; };
    callbacks.on_refused = [this](std::uint64_t, std::uint64_t, const std::string&, const std::string& why) {
      const std::lock_guard lock(mutex_);
      refusals_.push_back(why);
    };
    server_ = std::make_unique<HttpServer>(std::move(listener), limits_, std::move(callbacks));
  }
  int port() const { return server_->port(); }
  std::vector<PageRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Gives the first page that is to be given later.
  void give(Page page) {
    ASSERT_TRUE(becomes([this] {
      const std::lock_guard lock(mutex_);
      return !later_.empty();
    }));
    const std::lock_guard lock(mutex_);
    later_.front()(std::move(page));
    later_.erase(later_.begin());
  }
  static std::string post(const std::string& path, const std::string& body) {
    return "POST " + path + " HTTP/1.1\r\nHost: h:1\r\nOrigin: http://h:1\r\nCookie: a=b\r\nContent-Type: text/x\r\n" +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  std::vector<std::string> refusals() {
    const std::lock_guard lock(mutex_);
    return refusals_;
  }
  static bool becomes(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  std::uint64_t answered(unsigned code) const {
    const auto at = std::find(kPageCodes.begin(), kPageCodes.end(), code) - kPageCodes.begin();
    return server_->counts().answered[static_cast<std::size_t>(at)];
  }

  HttpLimits limits_{.page_bytes_max = std::uint64_t{1} << 20};
  Page page_{.code = 200, .content_type = "text/x", .body = "the page", .headers = {{"X-More", "1"}}};
  std::atomic<std::uint64_t> memory_{0};
  std::promise<void> hang_;  // of the page /hang, until let_go()
  std::shared_future<void> hung_ = hang_.get_future().share();
  bool has_let_go_ = false;
  std::mutex mutex_;  // of these:
  std::vector<PageRequest> requests_;
  std::vector<std::string> refusals_;
  std::vector<std::function<void(Page)>> later_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ARequestGetsItsPage) {
  start();
  HttpClient client(port());
  EXPECT_TRUE(client.send("GET /page?a=b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n\r\n"));
  const std::string answer = client.read_answer();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nthe page")) << answer;
  for (const char* header : {"Content-Type: text/x\r\n", "X-More: 1\r\n", "Cache-Control: no-store\r\n"}) {
    EXPECT_NE(answer.find(header), std::string::npos) << answer;
  }
  const PageRequest request = requests().at(0);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/page");
  EXPECT_EQ(request.authorization, "Bearer t");
  EXPECT_TRUE(request.peer.starts_with("ipv4:127.0.0.1:")) << request.peer;
  EXPECT_EQ(request.certificate, nullptr);
  EXPECT_EQ(answered(200), 1u);
}

TEST_F(HttpServerTest, AConnectionGoesOnAlsoIfTheClientDoesNotWait) {
  start();
  HttpClient client(port());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(client.send(kGet));
    EXPECT_NE(client.read_answer(), "");
  }
  EXPECT_TRUE(client.send(std::string(kGet) + kGet + kGet));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client.read_answer().ends_with("the page"));
  EXPECT_EQ(requests().size(), 5u);
  EXPECT_TRUE(client.send("GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_NE(client.read_answer(), "");
  EXPECT_TRUE(client.is_closed_within(5000));
  HttpClient old(port());
  EXPECT_TRUE(old.send("GET /page HTTP/1.0\r\n\r\n"));
  EXPECT_NE(old.read_answer(), "");
  EXPECT_TRUE(old.is_closed_within(5000));
  EXPECT_EQ(server_->counts().accepted, 2u);
}

TEST_F(HttpServerTest, AHeadHasTheHeadersOfThePageAndNoBody) {
  start();
  HttpClient client(port());
  EXPECT_TRUE(client.send("HEAD /page HTTP/1.1\r\nHost: x\r\n\r\n"));
  const std::string answer = client.read_answer(false);
  EXPECT_NE(answer.find("Content-Length: 8\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(client.send(kGet));
  EXPECT_TRUE(client.read_answer().starts_with("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, WhatIsNoShortRequestIsRefusedByName) {
  start();
  const std::string get = "GET /page HTTP/1.1\r\nHost: x\r\n";
  const std::pair<std::string, std::string> cases[] = {
      {get + "X: " + std::string(9000, 'x') + "\r\n\r\n", "431 "},
      {get + std::string(200000, 'x'), "431 "},
      {"GET /" + std::string(9000, 'x') + " HTTP/1.1\r\n\r\n", "431 "},
      {get + "Content-Length: 5\r\n\r\nhello", "413 "},
      {get + "Content-Length: 99999999999\r\n\r\n", "413 "},
      {get + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "413 "},
      {get + "Transfer-Encoding: gzip\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "413 "},
      {get + "Transfer-Encoding: chunked, gzip\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "413 "},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 "},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + "\r\n\r\n", "400 "},
      {"hello\r\n\r\n", "400 "},
      {"GET /page HTTP/1.1\r\nno colon\r\n\r\n", "400 "}};
  for (const auto& [text, code] : cases) {
    SCOPED_TRACE(text.substr(0, 60));
    HttpClient client(port());
    client.send(text);
    const std::string answer = client.read_answer();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + code)) << answer;
    EXPECT_TRUE(client.is_closed_within(5000));
  }
  EXPECT_TRUE(requests().empty());
  EXPECT_EQ(answered(431), 3u);
  EXPECT_EQ(answered(413), 5u);
  EXPECT_EQ(answered(400), 4u);
}

TEST_F(HttpServerTest, ASlowRequestEndsAtItsDeadlineHoweverOftenAByteComes) {
  limits_.head_us_max = 300000;
  start();
  HttpClient silent(port()), slow(port());
  std::atomic<bool> over{false};
  std::thread drops([&] {
    for (const char c : std::string(kGet)) {
      if (over || !slow.send({&c, 1})) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  EXPECT_TRUE(silent.is_closed_within(3000));
  EXPECT_TRUE(slow.is_closed_within(3000));
  over = true;
  drops.join();
  EXPECT_TRUE(requests().empty());
  EXPECT_TRUE(becomes([&] { return server_->counts().open == 0; }));
}

TEST_F(HttpServerTest, AConnectionWithoutAFurtherRequestEnds) {
  limits_.idle_us_max = 200000;
  start();
  HttpClient client(port());
  EXPECT_TRUE(client.send(kGet));
  EXPECT_NE(client.read_answer(), "");
  EXPECT_TRUE(client.is_closed_within(3000));
}

TEST_F(HttpServerTest, ANewConnectionTakesThePlaceOfTheOneThatHasWaitedLongest) {
  limits_.connections_max = 4;
  limits_.connections_per_address_max = 2;
  start();
  HttpClient first(port()), second(port());
  EXPECT_TRUE(becomes([&] { return server_->counts().open == 2; }));
  EXPECT_TRUE(second.send(kGet));
  EXPECT_NE(second.read_answer(), "");
  HttpClient third(port());
  EXPECT_TRUE(first.is_closed_within(5000)) << "it has waited longest of its address";
  EXPECT_FALSE(second.is_closed_within(100));
  EXPECT_EQ(server_->counts().made_room, 1u);
  // Those of another address are not touched while there is room for them.
  HttpClient other(port(), "127.0.0.2");
  EXPECT_TRUE(other.send(kGet));
  EXPECT_NE(other.read_answer(), "");
  EXPECT_EQ(server_->counts().made_room, 1u);
  EXPECT_EQ(server_->counts().open, 3u);
}

TEST_F(HttpServerTest, ManySilentConnectionsKeepNobodyOut) {
  limits_.connections_max = 8;
  limits_.connections_per_address_max = 6;
  start();
  std::list<HttpClient> silent;
  for (int i = 0; i < 60; ++i) silent.emplace_back(port(), i % 2 == 0 ? "127.0.0.1" : "127.0.0.2");
  for (int i = 0; i < 10; ++i) {
    HttpClient client(port(), "127.0.0.3");
    EXPECT_TRUE(client.send(kGet));
    EXPECT_NE(client.read_answer(), "");
    silent.emplace_back(port());
  }
  EXPECT_LE(server_->counts().open, 8u);
  EXPECT_GT(server_->counts().made_room, 50u);
  EXPECT_EQ(server_->counts().refused, 0u);
  EXPECT_EQ(refusals().size(), 1u) << "a line in ten seconds";
}

TEST_F(HttpServerTest, AnAddressOpensSoManyInASecond) {
  limits_.connections_max = limits_.connections_per_address_max = limits_.opens_max = 10;
  start();
  std::list<HttpClient> many;
  for (int i = 0; i < 40; ++i) many.emplace_back(port());
  EXPECT_TRUE(becomes([&] { return server_->counts().accepted + server_->counts().refused == 40; }));
  EXPECT_GE(server_->counts().refused, 20u);
  HttpClient other(port(), "127.0.0.2");
  EXPECT_TRUE(other.send(kGet));
  EXPECT_NE(other.read_answer(), "");
}

TEST_F(HttpServerTest, AnAddressAsksSoOftenInASecond) {
  limits_.opens_max = 10;
  start();
  HttpClient client(port());
  std::string last;
  for (int i = 0; i < 15 && !last.starts_with("HTTP/1.1 429"); ++i) {
    EXPECT_TRUE(client.send(kGet));
    last = client.read_answer();
  }
  EXPECT_TRUE(last.starts_with("HTTP/1.1 429")) << last;
  EXPECT_NE(last.find("--connection-opens-max"), std::string::npos) << last;
  EXPECT_TRUE(client.is_closed_within(5000));
  HttpClient other(port(), "127.0.0.2");
  EXPECT_TRUE(other.send(kGet));
  EXPECT_TRUE(other.read_answer().starts_with("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, PagesThatNobodyTakesAreBounded) {
  page_.body.assign(900 << 10, 'x');
  start();
  std::list<HttpClient> lazy;
  for (int i = 0; i < 6; ++i) {
    lazy.emplace_back(port(), "127.0.0.1", 4096);
    EXPECT_TRUE(lazy.back().send(kGet));
  }
  EXPECT_TRUE(becomes([&] { return answered(200) + answered(503) == 6; }));
  EXPECT_GE(answered(503), 4u);
  EXPECT_LE(memory_, HttpOptions::connection_bytes(6, false, false) + limits_.page_bytes_max);
  lazy.clear();
  EXPECT_TRUE(becomes([&] { return server_->counts().open == 0; }));
  EXPECT_EQ(memory_, 0u) << "everything is given back";
}

TEST_F(HttpServerTest, AnAnswerThatNobodyTakesEnds) {
  limits_.answer_us_max = 300000;
  page_.body.assign(1000 << 10, 'x');
  start();
  HttpClient lazy(port(), "127.0.0.1", 4096);
  EXPECT_TRUE(lazy.send(kGet));
  EXPECT_TRUE(becomes([&] { return server_->counts().accepted == 1; }));
  EXPECT_TRUE(becomes([&] { return server_->counts().open == 0; }));
  EXPECT_EQ(memory_, 0u);
}

TEST_F(HttpServerTest, AProbeDoesNotWaitForAPageThatHangs) {
  start();
  HttpClient hung(port()), waiting(port());
  EXPECT_TRUE(hung.send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_TRUE(waiting.send(kGet));
  HttpClient probe(port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(probe.send("GET /probe HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(probe.read_answer().ends_with("alive"));
  }
  EXPECT_TRUE(requests().empty());
  let_go();
  EXPECT_TRUE(hung.read_answer().ends_with("the page"));
  EXPECT_TRUE(waiting.read_answer().ends_with("the page"));
  EXPECT_TRUE(waiting.send(kGet));
  EXPECT_TRUE(waiting.read_answer().ends_with("the page")) << "the connection goes on";
}

TEST_F(HttpServerTest, PagesThatHangKeepNobodyOut) {
  limits_.connections_max = limits_.connections_per_address_max = 4;
  limits_.patience_us = 100000;
  start();
  std::list<HttpClient> many;
  for (int i = 0; i < 4; ++i) {
    many.emplace_back(port());
    EXPECT_TRUE(many.back().send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  EXPECT_TRUE(becomes([&] { return server_->counts().accepted == 4; }));
  EXPECT_TRUE(becomes([&] {
    HttpClient probe(port(), "127.0.0.2");
    return probe.send("GET /probe HTTP/1.1\r\nHost: x\r\n\r\n") && probe.read_answer().ends_with("alive");
  }));
  EXPECT_GE(server_->counts().made_room, 1u);
  const auto closed =
      std::count_if(many.begin(), many.end(), [](HttpClient& client) { return client.is_closed_within(50); });
  EXPECT_GE(closed, 1);
}

TEST_F(HttpServerTest, PagesThatWaitToBeMadeAreBounded) {
  limits_.connections_max = limits_.connections_per_address_max = 100;
  start();
  std::list<HttpClient> many;
  for (int i = 0; i < 80; ++i) {
    many.emplace_back(port());
    EXPECT_TRUE(many.back().send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  EXPECT_TRUE(becomes([&] { return answered(503) == 80 - 64; }));
  let_go();
  server_.reset();  // while pages wait
  EXPECT_EQ(memory_, 0u);
}

TEST_F(HttpServerTest, AClientThatDoesNotTakeItsAnswerLosesItsPlaceToAnother) {
  limits_.connections_max = limits_.connections_per_address_max = 2;
  limits_.patience_us = 200000;
  page_.body.assign(500 << 10, 'x');
  start();
  HttpClient lazy(port(), "127.0.0.1", 4096), second(port(), "127.0.0.1", 4096);
  for (const HttpClient* client : {&lazy, &second}) EXPECT_TRUE(client->send(std::string(kGet) + kGet + kGet + kGet));
  EXPECT_TRUE(becomes([&] { return answered(200) >= 2; }));
  EXPECT_TRUE(becomes([&] {
    HttpClient other(port(), "127.0.0.2");
    return other.send("GET /probe HTTP/1.1\r\nHost: x\r\n\r\n") && other.read_answer().ends_with("alive");
  }));
  EXPECT_GE(server_->counts().made_room, 1u);
}

TEST_F(HttpServerTest, PagesThatNobodyTakesGiveWayToOthers) {
  limits_.patience_us = 200000;
  page_.body.assign(900 << 10, 'x');
  start();
  HttpClient lazy(port(), "127.0.0.1", 4096);
  EXPECT_TRUE(lazy.send(kGet + std::string(kGet) + kGet));
  EXPECT_TRUE(becomes([&] { return answered(200) >= 1; }));
  EXPECT_TRUE(becomes([&] {
    HttpClient other(port(), "127.0.0.2");
    return other.send(kGet) && other.read_answer().starts_with("HTTP/1.1 200");
  }));
  EXPECT_LE(memory_, HttpOptions::connection_bytes(limits_.connections_max, false, false) + limits_.page_bytes_max);
}

// Where a host has two addresses, there are two listeners.
TEST_F(HttpServerTest, EachListenerGoesOnWhenThereAreDescriptorsAgain) {
  Result<Listener> listener = listen_on("127.0.0.1:0", "--http-listen"),
                   other = listen_on("127.0.0.1:0", "--http-listen");
  ASSERT_TRUE(listener.ok() && other.ok());
  listener->sockets.push_back(std::move(other->sockets.front()));
  make(std::move(*listener));
  HttpClient first(port()), second(other->port);  // nobody accepts them yet
  rlimit before{}, none{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  server_->start();
  const bool both_refused = becomes([&] { return server_->counts().refused >= 4; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(both_refused);
  for (HttpClient* client : {&first, &second}) {
    EXPECT_TRUE(client->send(kGet));
    EXPECT_TRUE(client->read_answer().ends_with("the page"));
  }
}

TEST_F(HttpServerTest, ABodyComesWithItsRequestWhereverItIsCut) {
  start();
  HttpClient client(port());
  const std::string body(HttpOptions::kBodyBytesMax, 'b');
  const std::string text = post("/form", body);
  for (std::size_t i = 0; i < text.size(); i += 3000) ASSERT_TRUE(client.send(std::string_view(text).substr(i, 3000)));
  EXPECT_NE(client.read_answer().find("the page"), std::string::npos);
  const PageRequest request = requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.body, body);
  EXPECT_EQ(request.host, "h:1");
  EXPECT_EQ(request.origin, "http://h:1");
  EXPECT_EQ(request.cookie, "a=b");
  EXPECT_EQ(request.content_type, "text/x");
  ASSERT_TRUE(client.send(kGet));  // the connection goes on
  EXPECT_NE(client.read_answer().find("the page"), std::string::npos);
}

TEST_F(HttpServerTest, ABodyIsRefusedWhereThereIsNoneAndIfItIsTooLong) {
  start();
  HttpClient other(port()), longer(port());
  ASSERT_TRUE(other.send(post("/page", "x")));
  EXPECT_NE(other.read_answer().find("no body here"), std::string::npos);
  ASSERT_TRUE(longer.send(post("/form", std::string(HttpOptions::kBodyBytesMax + 1, 'x'))));
  const std::string answer = longer.read_answer();
  EXPECT_NE(answer.find("413"), std::string::npos);
  EXPECT_NE(answer.find("8192 bytes"), std::string::npos);
  EXPECT_TRUE(requests().empty());
}

TEST_F(HttpServerTest, SlowBodiesKeepNobodyOut) {
  start();
  std::list<HttpClient> slow;
  for (int i = 0; i < 10; ++i) {
    const std::string text = post("/form", "whole");
    ASSERT_TRUE(slow.emplace_back(port()).send(std::string_view(text).substr(0, text.size() - 1)));
  }
  HttpClient other(port());
  ASSERT_TRUE(other.send(post("/form", "body")));
  EXPECT_NE(other.read_answer().find("the page"), std::string::npos);
}

TEST_F(HttpServerTest, APageThatIsGivenLaterKeepsNoOtherWaiting) {
  start();
  HttpClient waits(port()), other(port());
  ASSERT_TRUE(waits.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
  ASSERT_TRUE(becomes([this] { return !requests().empty(); }));
  ASSERT_TRUE(other.send(kGet));
  EXPECT_NE(other.read_answer().find("the page"), std::string::npos);
  give({.body = "late"});
  EXPECT_NE(waits.read_answer().find("late"), std::string::npos);
}

TEST_F(HttpServerTest, TheMakerOfALatePageHearsThatItsClientHasGone) {
  start();
  {
    HttpClient leaves(port());
    ASSERT_TRUE(leaves.send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
    ASSERT_TRUE(becomes([this] { return !requests().empty(); }));
    EXPECT_FALSE(requests().at(0).gone.stop_requested());
  }
  EXPECT_TRUE(becomes([this] { return requests().at(0).gone.stop_requested(); }));
  give(page_);
}

TEST_F(HttpServerTest, TheEndClosesAllConnections) {
  start();
  HttpClient silent(port()), idle(port()), half(port());
  EXPECT_TRUE(idle.send(kGet));
  EXPECT_NE(idle.read_answer(), "");
  EXPECT_TRUE(half.send("GET /"));
  EXPECT_TRUE(becomes([&] { return server_->counts().open == 3; }));
  server_.reset();
  for (HttpClient* client : {&silent, &idle, &half}) EXPECT_TRUE(client->is_closed_within(5000));
  EXPECT_EQ(memory_, 0u);
}

}  // namespace
}  // namespace kilokv::server
