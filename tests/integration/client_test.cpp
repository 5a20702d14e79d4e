// The client library against the real kilokvd: both encodings, waiting, sessions over kills of the server, interactive
// transactions, scans at one boundary.
#include "kilokv/client.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "kilokv/interactive.hpp"

namespace kilokv::client {
namespace {

using namespace std::string_view_literals;

// A kilokvd on a folder of its own, which can be killed and started again at the same port.
class Server {
 public:
  Server() {
    std::string pattern = testing::TempDir() + "kilokv-client-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    start();
  }
  Server(const Server&) = delete;
  ~Server() {
    kill();
    std::filesystem::remove_all(folder_);
  }

  void start() {
    std::filesystem::remove(folder_ + "/port");
    const char* bin = std::getenv("KILOKV_BIN_DIR");
    std::vector<std::string> words = {std::string(bin != nullptr ? bin : ".") + "/kilokvd",
                                      "--data-dir",
                                      folder_ + "/data",
                                      "--listen",
                                      "127.0.0.1:" + std::to_string(port_),
                                      "--port-file",
                                      folder_ + "/port",
                                      "--log-file",
                                      folder_ + "/log"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
  }
  void kill() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  // Waits for the port, which only the first start has to find out.
  std::string endpoint() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (port_ == 0 && std::chrono::steady_clock::now() < deadline) {
      std::ifstream(folder_ + "/port") >> port_;
      if (port_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));  // polls a file
    }
    return "127.0.0.1:" + std::to_string(port_);
  }

 private:
  std::string folder_;
  int port_ = 0;
  pid_t process_ = 0;
};

class ClientIntegration : public ::testing::Test {
 protected:
  void SetUp() override {
    ClientOptions options;
    options.endpoint = server_.endpoint();
    options.connect_timeout_us = options.request_timeout_us = 60'000'000;
    auto client = Client::connect(options);
    ASSERT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
    session_ = open_session();
  }
  std::unique_ptr<Session> open_session() {
    auto session = client_->open_session();
    EXPECT_TRUE(session) << session.error().message;
    return std::move(*session);
  }
  std::int64_t integer(const std::string& key) {
    const auto results = client_->get({key});
    EXPECT_TRUE(results) << results.error().message;
    const ValueView value = results->read(0, 0).value;
    const auto* found = std::get_if<std::int64_t>(&value);
    return found == nullptr ? 0 : *found;
  }
  void put(const std::string& key, const Operand& value) {
    Batch batch;
    batch.begin();
    batch.put(batch.key(key), value);
    batch.end();
    const auto result = session_->execute(batch);
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->results.outcome(0), Outcome::committed);
  }

  Server server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
};

Batch withdrawal(std::string_view key, std::int64_t amount, std::uint64_t wait_timeout_us) {
  Batch batch;
  batch.begin({.precedence = 1, .wait_timeout_us = wait_timeout_us});
  const Key account = batch.key(key);
  batch.guard(account, Compare::greater_equal, amount, OnFalse::wait);
  batch.add(account, -amount);
  batch.end();
  return batch;
}

void check_answers(const Results& results, const std::string& prefix) {
  const ResultView first = results.at(0);
  EXPECT_EQ(first.outcome, Outcome::committed);
  ASSERT_TRUE(first.version);
  ASSERT_EQ(results.read_count(0), 2u);
  EXPECT_EQ(results.read(0, 0).key, prefix + "n");
  EXPECT_EQ(results.read(0, 0).value, ValueView{});
  EXPECT_EQ(results.read(0, 0).version, 0u);
  EXPECT_EQ(results.read(0, 1).value, ValueView{std::int64_t{5}});
  EXPECT_EQ(results.read(0, 1).version, std::nullopt);
  EXPECT_EQ(results.read(0, 1).operation, 2u);
  const ResultView second = results.at(1);
  EXPECT_EQ(second.outcome, Outcome::guard_failed);
  EXPECT_EQ(second.failed_in, FailedIn::guards);
  EXPECT_EQ(second.failed_index, 0u);
  ASSERT_TRUE(second.guard_value);
  EXPECT_EQ(second.guard_value->key, prefix + "none");
  EXPECT_TRUE(second.version) << "its else list wrote";
  EXPECT_EQ(results.at(2).outcome, Outcome::overflow);
  EXPECT_EQ(results.at(2).failed_in, FailedIn::then_operations);
  EXPECT_EQ(results.at(2).failed_index, 1u);
}

TEST_F(ClientIntegration, RowsAndColumnsSayTheSame) {
  for (const bool columns : {false, true}) {
    const std::string prefix = columns ? "c/" : "r/";
    Batch batch;
    batch.begin();
    const Key n = batch.key(prefix + "n");
    batch.get(n);
    batch.add(n, 5);
    batch.get(n);
    batch.end();
    batch.begin();
    batch.guard_exists(batch.key(prefix + "none"));
    batch.del(n);
    batch.otherwise();
    batch.put(batch.key(prefix + "else"), "text"sv);
    batch.end();
    batch.begin();
    const Key o = batch.key(prefix + "o");
    batch.put(o, std::numeric_limits<std::int64_t>::max());
    batch.add(o, 1);
    batch.end();
    CallOptions options;
    options.encoding = columns ? Encoding::columns : Encoding::rows;
    const auto in_session = session_->execute(batch, options);
    ASSERT_TRUE(in_session) << in_session.error().message;
    check_answers(in_session->results, prefix);
  }
  const auto results = client_->get({"r/else", "c/n", "c/o"});
  ASSERT_TRUE(results);
  EXPECT_EQ(results->read(0, 0).value, ValueView{"text"sv});
  EXPECT_EQ(results->read(0, 1).value, ValueView{std::int64_t{5}});
  EXPECT_EQ(results->read(0, 2).value, ValueView{});
}

TEST_F(ClientIntegration, OneWaitDoesNotHoldTheOthers) {
  Batch batch = withdrawal("late", 7, 60'000'000);
  batch.begin();
  batch.add(batch.key("other"), 1);
  batch.end();
  std::promise<void> first, last;
  session_->execute_async(batch, [&](const Progress& progress) {
    EXPECT_FALSE(progress.error) << progress.error.message;
    if (progress.done) {
      EXPECT_EQ(progress.results.outcome(0), Outcome::committed);
      EXPECT_GT(progress.results.at(0).batch, progress.results.at(0).admitted_batch);
      last.set_value();
    } else {
      EXPECT_EQ(progress.indices, std::vector<std::uint32_t>{1});
      first.set_value();
    }
  });
  first.get_future().wait();
  const auto parked = client_->list_parked();
  ASSERT_TRUE(parked);
  ASSERT_EQ(parked->size(), 1u);
  EXPECT_EQ(parked->at(0).guard_key, "late");
  EXPECT_EQ(parked->at(0).session, session_->id());
  put("late", std::int64_t{10});
  last.get_future().wait();
  EXPECT_EQ(integer("late"), 3);
}

TEST_F(ClientIntegration, AParkedTransactionCanBeCancelled) {
  std::promise<Outcome> ended;
  const std::uint64_t request = session_->execute_async(withdrawal("never", 7, 600'000'000), [&](const Progress& p) {
    if (p.done) ended.set_value(p.results.outcome(0));
  });
  const auto cancelled = session_->cancel(request);
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  // It may not have arrived yet when the first Cancel did.
  while (*cancelled == 0 && session_->cancel(request).value() == 0) std::this_thread::yield();
  EXPECT_EQ(ended.get_future().get(), Outcome::cancelled);
}

TEST_F(ClientIntegration, ARequestGivenUpCanBeResumed) {
  const Batch batch = withdrawal("later", 7, 600'000'000);
  CallOptions soon;
  soon.timeout_us = 100'000;
  EXPECT_EQ(session_->execute(batch, soon).error().code, ErrorCode::deadline_exceeded);
  put("later", std::int64_t{9});
  const auto resumed = session_->resume(1, batch);
  ASSERT_TRUE(resumed) << resumed.error().message;
  EXPECT_EQ(resumed->results.outcome(0), Outcome::committed);
  EXPECT_EQ(integer("later"), 2);
}

TEST_F(ClientIntegration, KillsOfTheServerLoseAndRepeatNothing) {
  constexpr int kRequests = 300;
  constexpr int kTransactions = 20;
  std::mutex mutex;
  std::condition_variable changed;
  int ended = 0;
  std::uint32_t sent = 0;
  const auto wait_for = [&](int count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ended >= count; });
  };
  SessionOptions options;
  options.requests_in_flight_max = 8;
  auto session = client_->open_session(options);
  ASSERT_TRUE(session);
  std::thread sender([&] {
    for (int i = 0; i < kRequests; ++i) {
      Batch batch;
      for (int t = 0; t < kTransactions; ++t) {
        batch.begin();
        batch.add(batch.key("counter" + std::to_string(t)), 1);
        batch.end();
      }
      (*session)->execute_async(batch, [&](const Progress& progress) {
        if (!progress.done) return;
        EXPECT_FALSE(progress.error) << progress.error.message;
        std::lock_guard lock(mutex);
        sent += progress.attempts;
        ++ended;
        changed.notify_all();
      });
    }
  });
  for (const int count : {40, 120, 200}) {
    wait_for(count);
    server_.kill();
    server_.start();
  }
  sender.join();
  wait_for(kRequests);
  EXPECT_GT(sent, static_cast<std::uint32_t>(kRequests)) << "at least one was sent again";
  for (int t = 0; t < kTransactions; ++t) EXPECT_EQ(integer("counter" + std::to_string(t)), kRequests);
}

TEST_F(ClientIntegration, InteractiveTransactionsLoseNoUpdate) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 10;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        const Error error = InteractiveTransaction::run(client_.get(), session_.get(), [](auto& t) -> Error {
          const auto value = t.get("shared");
          if (!value) return value.error();
          const auto* number = std::get_if<std::int64_t>(&*value);
          t.put("shared", number == nullptr ? 1 : *number + 1);
          return {};
        });
        EXPECT_FALSE(error) << error.message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(integer("shared"), kThreads * kRounds);
}

TEST_F(ClientIntegration, AnInteractiveScanNoticesANewAndADeletedKey) {
  put("room/1", std::int64_t{1});
  for (const bool deleted : {false, true}) {
    InteractiveTransaction t(client_.get(), session_.get());
    ASSERT_TRUE(t.scan("room/", "room0"));
    t.put("total", std::int64_t{1});
    if (deleted) {
      Batch batch;
      batch.begin();
      batch.del(batch.key("room/1"));
      batch.end();
      ASSERT_TRUE(session_->execute(batch));
    } else {
      put("room/2", std::int64_t{1});
    }
    const auto committed = t.commit();
    ASSERT_TRUE(committed) << committed.error().message;
    EXPECT_EQ(*committed, CommitResult::conflict);
    EXPECT_EQ(t.conflicting_key(), "room/");
  }
  InteractiveTransaction t(client_.get(), session_.get());
  const auto pairs = t.scan("room/", "room0");
  ASSERT_TRUE(pairs);
  EXPECT_EQ(pairs->size(), 1u);
  EXPECT_EQ(t.get("room/1").value(), Value{}) << "its version is that of the delete";
  t.put("total", std::int64_t{1});
  EXPECT_EQ(t.commit().value(), CommitResult::committed);
}

TEST_F(ClientIntegration, AScanStaysAtItsBoundary) {
  for (int i = 0; i < 10; ++i) put("s/" + std::to_string(i), std::int64_t{i});
  ScanOptions options;
  options.page_pairs = 3;
  std::int64_t seen = 0;
  const auto position = client_->scan(
      "s/", "s0",
      [&](const Pair& pair) {
        if (seen == 0) put("s/9", std::int64_t{99});  // after the first page was read
        EXPECT_EQ(std::get<std::int64_t>(pair.value), seen++);
        return true;
      },
      options);
  ASSERT_TRUE(position) << position.error().message;
  EXPECT_EQ(seen, 10);
  EXPECT_EQ(integer("s/9"), 99);
}

TEST_F(ClientIntegration, WithoutASession) {
  Batch batch;
  for (const char* key : {"u1", "u2"}) {
    batch.begin();
    batch.add(batch.key(key), 4);
    batch.end();
  }
  for (const Encoding encoding : {Encoding::columns, Encoding::rows}) {
    CallOptions options;
    options.encoding = encoding;
    const auto many = client_->execute(batch, options);
    ASSERT_TRUE(many) << many.error().message;
    EXPECT_EQ(many->outcome(1), Outcome::committed);
  }
  EXPECT_EQ(integer("u2"), 8);
  Batch one;
  one.begin();
  one.get(one.key(std::string(2000, 'k')));
  one.end();
  const Error error = client_->execute(one).error();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.knob, "--key-bytes-max") << error.message;
}

}  // namespace
}  // namespace kilokv::client
