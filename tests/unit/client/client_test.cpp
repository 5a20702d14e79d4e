#include "kilokv/client.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

#include "tests/unit/client/fake_server.hpp"
#include "tests/unit/client/test_batch.hpp"

namespace kilokv::client {
namespace {

CallOptions within(std::uint64_t timeout_us) {
  CallOptions options;
  options.timeout_us = timeout_us;
  return options;
}

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto client = Client::connect(server_.client_options());
    ASSERT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
  }

  FakeServer server_;
  std::unique_ptr<Client> client_;
};

// A name that begins like an address of this machine may be the name of any machine.
TEST(ClientTokenTest, WithoutTlsATokenGoesToThisMachineOnly) {
  ClientOptions options;
  options.token = "kilokv_" + std::string(16, '0') + "_" + std::string(64, '0');
  for (const char* host : {"127.example.com", "127.0.0.1.example.com", "10.0.0.1", "[::2]", "localhost.example.com"}) {
    options.endpoint = std::string(host) + ":1";
    const auto client = Client::connect(options);
    ASSERT_FALSE(client) << host;
    EXPECT_EQ(client.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(client.error().message.find("without TLS"), std::string::npos) << client.error().message;
  }
  for (const char* host : {"127.0.0.1", "127.9.9.9", "[::1]", "localhost"}) {
    options.endpoint = std::string(host) + ":1";
    const auto client = Client::connect(options);
    EXPECT_TRUE(client || client.error().message.find("without TLS") == std::string::npos) << host;
  }
}

TEST_F(ClientTest, ExecutesOneAndMany) {
  const auto one = client_->execute(adds(1));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->at(0).version, 7u);
  const auto many = client_->execute(adds(4));
  ASSERT_TRUE(many) << many.error().message;
  ASSERT_EQ(many->size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(many->at(i).batch, i + 1);
  EXPECT_EQ(client_->execute(Batch()).error().code, ErrorCode::invalid_argument);
}

TEST_F(ClientTest, WithoutASessionOnlyARefusalIsSentAgain) {
  std::atomic<int> calls = 0;
  server_.on_execute = [&](const auto&, auto*, grpc::ServerContext* context) {
    v1::ErrorDetail detail;
    detail.set_retry_after_us(1000);
    detail.set_not_run(true);
    if (++calls < 3) return FakeServer::with_detail(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", detail, context);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "lost");
  };
  const Error error = client_->execute(adds(1)).error();
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_EQ(calls, 3) << "two refusals, and a loss that must not be repeated";
}

TEST_F(ClientTest, WithoutASessionAFullServerThatMayHaveRunItIsNotAskedAgain) {
  std::atomic<int> calls = 0;
  server_.on_execute = [&](const auto&, auto*, grpc::ServerContext* context) {
    ++calls;
    v1::ErrorDetail detail;
    detail.set_retry_after_us(1000);
    return FakeServer::with_detail(grpc::StatusCode::RESOURCE_EXHAUSTED, "the answers are too much", detail, context);
  };
  const Error error = client_->execute(adds(1)).error();
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted);
  EXPECT_FALSE(never_ran(error));
  EXPECT_EQ(calls, 1);
}

TEST_F(ClientTest, ARefusalWithoutADelayIsNotSentAgain) {
  std::atomic<int> calls = 0;
  v1::ErrorDetail detail;
  detail.set_not_run(true);
  server_.on_execute = [&](const auto&, auto*, grpc::ServerContext* context) {
    ++calls;
    return FakeServer::with_detail(grpc::StatusCode::RESOURCE_EXHAUSTED, "the table is full", detail, context);
  };
  server_.on_get = [&](const auto&, auto*) {
    ++calls;
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "of gRPC itself, without a detail");
  };
  const Error full = client_->execute(adds(1), within(60'000'000)).error();
  EXPECT_EQ(full.code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(never_ran(full));
  EXPECT_EQ(client_->get({"a"}, within(60'000'000)).error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(calls, 2);
}

// The server ends a call that runs when its client loses its login, its rights or its certificate. gRPC itself refuses
// a call before it runs, without a detail.
TEST_F(ClientTest, ACallThatLostItsLoginMayHaveRun) {
  for (const auto code : {grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::UNAUTHENTICATED}) {
    std::optional<bool> not_run;
    server_.on_execute = [&](const auto&, auto*, grpc::ServerContext* context) {
      if (!not_run) return grpc::Status(code, "of gRPC itself");
      v1::ErrorDetail detail;
      detail.set_not_run(*not_run);
      return FakeServer::with_detail(code, "of the server", detail, context);
    };
    EXPECT_TRUE(never_ran(client_->execute(adds(1)).error()));
    not_run = true;
    EXPECT_TRUE(never_ran(client_->execute(adds(1)).error()));
    not_run = false;
    const Error ended = client_->execute(adds(1)).error();
    EXPECT_TRUE(ended.may_have_run);
    EXPECT_FALSE(never_ran(ended));
  }
}

TEST_F(ClientTest, ErrorsCarryTheDetailOfTheServer) {
  server_.on_execute = [](const auto&, auto*, grpc::ServerContext* context) {
    v1::ErrorDetail detail;
    detail.set_field("transaction.then[0].key");
    detail.set_limit("1024 bytes");
    detail.set_actual("2048 bytes");
    detail.set_setting("--key-bytes-max");
    detail.set_reason(v1::ERROR_REASON_OUT_OF_RANGE);
    return FakeServer::with_detail(grpc::StatusCode::INVALID_ARGUMENT, "too long", detail, context);
  };
  const Error error = client_->execute(adds(1)).error();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.field, "transaction.then[0].key");
  EXPECT_EQ(error.limit, "1024 bytes");
  EXPECT_EQ(error.actual, "2048 bytes");
  EXPECT_EQ(error.setting, "--key-bytes-max");
  EXPECT_EQ(error.reason, "OUT_OF_RANGE");
  EXPECT_NE(error.message.find("Execute at 127.0.0.1:"), std::string::npos) << error.message;
}

TEST_F(ClientTest, AMessageTooLargeForGrpcIsTheCallersMistake) {
  Batch large;
  large.begin();
  large.put(large.key("k"), std::string_view(std::string(5 << 20, 'x')));
  large.end();
  const Error error = client_->execute(large).error();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument) << error.message;
  EXPECT_EQ(error.setting, "--message-bytes-max");
  EXPECT_NE(error.message.find("send less at once, or raise --message-bytes-max"), std::string::npos) << error.message;
}

TEST_F(ClientTest, GetReturnsReadsAndRetries) {
  std::atomic<int> calls = 0;
  server_.on_get = [&](const v1::GetRequest& request, v1::GetResponse* response) -> grpc::Status {
    if (++calls < 3) return {grpc::StatusCode::UNAVAILABLE, "starting"};
    for (const std::string& key : request.keys()) {
      v1::Read* read = response->add_reads();
      read->set_key(key);
      read->mutable_value()->set_integer(5);
      read->set_version(6);
    }
    response->set_batch(9);
    return {};
  };
  const auto results = client_->get({"a", "b"});
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->read_count(0), 2u);
  EXPECT_EQ(results->read(0, 1).key, "b");
  EXPECT_EQ(results->read(0, 1).value, ValueView{std::int64_t{5}});
  EXPECT_EQ(results->at(0).batch, 9u);
  EXPECT_EQ(calls, 3);
}

TEST_F(ClientTest, ScanVisitsPagesAtOneBoundary) {
  std::vector<std::uint64_t> boundaries;
  server_.on_scan = [&](const v1::ScanRequest& request, v1::ScanResponse* response) -> grpc::Status {
    boundaries.push_back(request.boundary());
    EXPECT_TRUE(request.keep_boundary());
    EXPECT_EQ(request.limit(), 1u);
    EXPECT_EQ(request.range().to(), "z");
    const std::string key = request.range().from().empty() ? "a" : request.range().from();
    v1::Read* read = response->add_pairs();
    read->set_key(key);
    read->mutable_value()->set_bytes("v" + key);
    response->set_boundary(17);
    response->set_boundary_version(170);
    response->set_more(key != "c");
    response->set_next_from(std::string(1, static_cast<char>(key[0] + 1)));
    return {};
  };
  ScanOptions options;
  options.page_pairs = 1;
  std::string keys;
  const auto position = client_->scan(
      "", "z",
      [&](const Pair& pair) {
        keys += pair.key;
        return true;
      },
      options);
  ASSERT_TRUE(position) << position.error().message;
  EXPECT_EQ(keys, "abc");
  EXPECT_EQ(position->boundary, 17u);
  EXPECT_EQ(position->boundary_version, 170u);
  EXPECT_EQ(boundaries, (std::vector<std::uint64_t>{0, 17, 17}));
  keys.clear();
  ASSERT_TRUE(client_->scan(
      "", "z",
      [&](const Pair& pair) {
        keys += pair.key;
        return false;
      },
      options));
  EXPECT_EQ(keys, "a");
}

TEST_F(ClientTest, AReverseScanEndsEachPageWhereTheOneBeforeStopped) {
  server_.on_scan = [&](const v1::ScanRequest& request, v1::ScanResponse* response) -> grpc::Status {
    EXPECT_TRUE(request.reverse());
    EXPECT_EQ(request.range().from(), "a");
    const char key = static_cast<char>(request.range().to()[0] - 1);
    response->add_pairs()->set_key(std::string(1, key));
    response->set_boundary(17);
    response->set_more(key != 'a');
    response->set_next_to(std::string(1, key));
    response->set_reverse(true);
    return {};
  };
  ScanOptions options;
  options.reverse = true;
  std::string keys;
  const auto all = [&](const Pair& pair) {
    keys += pair.key;
    return true;
  };
  ASSERT_TRUE(client_->scan("a", "e", all, options));
  EXPECT_EQ(keys, "dcba");
  std::string last_to;
  server_.on_scan = [&](const v1::ScanRequest& request, v1::ScanResponse* response) -> grpc::Status {
    last_to = request.range().to();
    response->add_pairs()->set_key("d");
    response->set_boundary(17);
    response->set_more(true);
    response->set_next_to("d");
    response->set_reverse(true);
    if (request.keep_boundary()) response->set_reader("8 random");
    return {};
  };
  ASSERT_TRUE(client_->scan(
      "a", "e", [](const Pair&) { return false; }, options));
  EXPECT_EQ(last_to, "d") << "the call that gives the boundary up";
  server_.on_scan = [](const v1::ScanRequest&, v1::ScanResponse* response) -> grpc::Status {
    response->add_pairs()->set_key("a");
    return {};
  };
  EXPECT_EQ(client_->scan("a", "e", all, options).error().code, ErrorCode::unimplemented) << "an older server";
}

TEST_F(ClientTest, AScanThatEndsEarlyGivesItsBoundaryUp) {
  std::vector<v1::ScanRequest> requests;
  bool more = true;
  server_.on_scan = [&](const v1::ScanRequest& request, v1::ScanResponse* response) -> grpc::Status {
    requests.push_back(request);
    response->add_pairs()->set_key("a");
    response->set_boundary(17);
    response->set_more(more);
    response->set_next_from("b");
    if (more && request.keep_boundary()) response->set_reader("8 random");
    return {};
  };
  const auto position = client_->scan("", "z", [](const Pair&) { return false; });
  ASSERT_TRUE(position);
  EXPECT_EQ(position->boundary, 17u);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_FALSE(requests[1].keep_boundary());
  EXPECT_EQ(requests[1].limit(), 1u);
  EXPECT_EQ(requests[1].boundary(), 17u);
  EXPECT_EQ(requests[1].reader(), "8 random");
  more = false;  // nothing is kept for the last page
  ASSERT_TRUE(client_->scan("", "z", [](const Pair&) { return false; }));
  EXPECT_EQ(requests.size(), 3u);
}

TEST_F(ClientTest, ListsCancelsAndTellsStatus) {
  const auto parked = client_->list_parked();
  ASSERT_TRUE(parked);
  ASSERT_EQ(parked->size(), 3u);
  EXPECT_EQ((*parked)[2].guard_key, "k3");
  EXPECT_EQ(client_->cancel_parked(2).value(), 1u);
  EXPECT_EQ(client_->cancel("00ff", 1, {}).value(), 1u);
  EXPECT_EQ(client_->cancel("xyz", 1, {}).error().code, ErrorCode::invalid_argument);
  const auto status = client_->status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->state, "ready");
  EXPECT_EQ(status->counters.at("committed"), 42u);
}

TEST_F(ClientTest, EveryCallHasADeadline) {
  std::promise<void> release;
  server_.on_get = [released = release.get_future().share()](const auto&, auto*) -> grpc::Status {
    released.wait();
    return {};
  };
  EXPECT_EQ(client_->get({"a"}, within(50'000)).error().code, ErrorCode::deadline_exceeded);
  release.set_value();
}

// A socket on 127.0.0.1: bound, listening or neither.
class Socket {
 public:
  Socket() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address_), length), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &length), 0);
  }
  ~Socket() { ::close(fd_); }
  int fd() const { return fd_; }
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

 private:
  int fd_;
  sockaddr_in address_{};
};

struct Refusal {
  Error error;
  std::int64_t took_us;
};

Refusal refused(const std::string& endpoint, std::uint64_t connect_timeout_us, std::uint64_t wait_for_server_us = 0) {
  ClientOptions options;
  options.endpoint = endpoint;
  options.connect_timeout_us = connect_timeout_us;
  options.wait_for_server_us = wait_for_server_us;
  const std::int64_t begin_us = monotonic_us();
  auto client = Client::connect(options);
  EXPECT_FALSE(client.ok());
  return {client.error(), monotonic_us() - begin_us};
}

Error connect_error(const std::string& endpoint) { return refused(endpoint, 700'000).error; }

TEST(Connect, RefusesWhatIsNotHostAndPort) {
  for (const char* endpoint :
       {"", "127.0.0.1", ":7070", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "localhost:x"}) {
    ClientOptions options;
    options.endpoint = endpoint;
    const auto client = Client::connect(options);
    ASSERT_FALSE(client) << endpoint;
    EXPECT_EQ(client.error().code, ErrorCode::invalid_argument) << endpoint;
    EXPECT_NE(client.error().message.find("HOST:PORT"), std::string::npos) << endpoint;
  }
}

TEST(Connect, FailsAtOnceWhereNothingListens) {
  const Socket bound;
  const Refusal refusal = refused(bound.endpoint(), 60'000'000);
  EXPECT_EQ(refusal.error.code, ErrorCode::unavailable);
  EXPECT_EQ(refusal.error.message, "nothing listens at " + bound.endpoint() + ": the connection is refused");
  EXPECT_LT(refusal.took_us, 30'000'000) << "it waited for a server";
}

TEST(Connect, WaitsWhereNothingListensIfTold) {
  const Socket bound;
  const Refusal refusal = refused(bound.endpoint(), 1'000, 1'500'000);
  EXPECT_EQ(refusal.error.message, "nothing listens at " + bound.endpoint() + ": the connection is refused");
  EXPECT_GT(refusal.took_us, 500'000) << "it did not wait";
}

TEST(Connect, FindsAServerThatItWaitsFor) {
  FakeServer server;
  ClientOptions options = server.client_options();
  server.stop();
  options.wait_for_server_us = 30'000'000;
  auto client = std::async(std::launch::async, [&] { return Client::connect(options); });
  EXPECT_EQ(client.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);  // refused a few times
  server.start();
  const auto connected = client.get();
  EXPECT_TRUE(connected) << connected.error().message;
}

TEST(Connect, AServerThatIsWaitedForHasToBeReady) {
  FakeServer server;
  std::atomic<int> asked = 0;
  server.on_status = [&](v1::StatusResponse* response) {
    response->mutable_server()->set_state(++asked < 4 ? v1::ServerSection::STATE_RECOVERING
                                                      : v1::ServerSection::STATE_READY);
    return grpc::Status();
  };
  ClientOptions options = server.client_options();
  ASSERT_TRUE(Client::connect(options)) << "without the option any answer will do";
  EXPECT_EQ(asked, 1);
  options.wait_for_server_us = 30'000'000;
  ASSERT_TRUE(Client::connect(options));
  EXPECT_EQ(asked, 4);
}

void expect_recovering_after(std::uint64_t wait_us, FakeServer* server) {
  ClientOptions options = server->client_options();
  options.wait_for_server_us = wait_us;
  const auto late = Client::connect(options);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::unavailable);
  EXPECT_EQ(late.error().message, "the server at " + server->endpoint() + " is not ready: recovering");
}

TEST(Connect, SaysThatTheServerIsNotReadyInTime) {
  FakeServer server;
  server.on_status = [](v1::StatusResponse* response) {
    response->mutable_server()->set_state(v1::ServerSection::STATE_RECOVERING);
    return grpc::Status();
  };
  expect_recovering_after(3'000'000, &server);
}

TEST(Connect, TheTimeMayEndWhileAServerThatIsNotReadyIsAsked) {
  std::atomic<int> asked = 0;
  std::promise<void> release;
  FakeServer server;
  server.on_status = [&asked, released = release.get_future().share()](v1::StatusResponse* response) {
    if (++asked > 1) released.wait();
    response->mutable_server()->set_state(v1::ServerSection::STATE_RECOVERING);
    return grpc::Status();
  };
  expect_recovering_after(3'000'000, &server);
  EXPECT_EQ(asked, 2);
  release.set_value();
}

// A port where something accepts connections and does `serve` with each.
template <class Serve>
Error error_of_peer(const Serve& serve) {
  const Socket listener;
  EXPECT_EQ(::listen(listener.fd(), 16), 0);
  std::thread peer([&] {
    int connection;
    while ((connection = ::accept(listener.fd(), nullptr, nullptr)) >= 0) serve(connection);
  });
  Error error = connect_error(listener.endpoint());
  ::shutdown(listener.fd(), SHUT_RDWR);
  peer.join();
  return error;
}

TEST(Connect, NoWordsOfGrpcAreInItsErrors) {
  FakeServer other;
  other.on_status = [](auto*) { return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""); };
  FakeServer slow;
  std::promise<void> release;
  slow.on_status = [released = release.get_future().share()](auto*) {
    released.wait();
    return grpc::Status();
  };
  const Socket bound;
  const std::vector<Error> errors = {connect_error(bound.endpoint()),
                                     connect_error("no-such-host.invalid:7070"),
                                     connect_error(other.endpoint()),
                                     connect_error(slow.endpoint()),
                                     error_of_peer([](int connection) { ::close(connection); }),
                                     error_of_peer([](int connection) {
                                       EXPECT_GT(::write(connection, "HTTP/1.1 400 Bad\r\n\r\n", 20), 0);
                                       ::close(connection);
                                     })};
  release.set_value();
  for (const Error& error : errors) {
    for (const char* word : {"last error", "ipv4:", "UNKNOWN", "addresses", "Deadline", "ARES", "C-ares", "recvmsg",
                             "Status at", "DNS resolution", "subchannel", "http1"}) {
      EXPECT_EQ(error.message.find(word), std::string::npos) << error.message;
    }
    EXPECT_GT(error.message.size(), 20u);
  }
}

TEST(Connect, SaysThatSomethingElseListens) {
  const Socket listener;
  ASSERT_EQ(::listen(listener.fd(), 16), 0);
  std::thread web([&] {
    const std::string_view answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    int peer;
    while ((peer = ::accept(listener.fd(), nullptr, nullptr)) >= 0) {
      EXPECT_GT(::write(peer, answer.data(), answer.size()), 0);
      ::close(peer);
    }
  });
  const Error error = connect_error(listener.endpoint());
  ::shutdown(listener.fd(), SHUT_RDWR);
  web.join();
  EXPECT_NE(error.message.find("TLS"), std::string::npos) << error.message;
}

TEST(Connect, SaysThatTheHostIsUnknown) {
  const Error error = connect_error("no-such-host.invalid:7070");
  EXPECT_NE(error.message.find("cannot be resolved"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace kilokv::client
