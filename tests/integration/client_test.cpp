// The client library against the real kilokvd: both encodings, waiting, sessions over kills of the server, scans at one
// boundary.
#include "kilokv/client.hpp"

#include <condition_variable>
#include <future>
#include <mutex>

#include "tests/integration/client_fixture.hpp"

namespace kilokv::client {
namespace {

using namespace std::string_view_literals;

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
  EXPECT_EQ(parked->at(0).session, session_->id().substr(0, 8));
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

TEST_F(ClientIntegration, AReverseScanStaysAtItsBoundaryToo) {
  for (int i = 0; i < 10; ++i) put("v/" + std::to_string(i), std::int64_t{i});
  ScanOptions options;
  options.page_pairs = 3;
  options.reverse = true;
  std::int64_t left = 10;
  const auto position = client_->scan(
      "v/", "v0",
      [&](const Pair& pair) {
        if (left == 10) put("v/0", std::int64_t{99});  // after the first page was read
        EXPECT_EQ(std::get<std::int64_t>(pair.value), --left);
        return true;
      },
      options);
  ASSERT_TRUE(position) << position.error().message;
  EXPECT_EQ(left, 0);
  EXPECT_EQ(integer("v/0"), 99);
}

TEST_F(ClientIntegration, TheLastPairsOfARange) {
  for (int i = 0; i < 10; ++i) put("w/" + std::to_string(i), std::int64_t{i});
  for (const Encoding encoding : {Encoding::columns, Encoding::rows}) {
    Batch batch;
    batch.begin();
    batch.put(batch.key("w/85"), std::int64_t{85});
    batch.del(batch.key("w/9"));
    batch.range_get_reverse("w/1", "w0", 3);
    batch.put(batch.key("w/9"), std::int64_t{9});
    batch.del(batch.key("w/85"));
    batch.end();
    CallOptions options;
    options.encoding = encoding;
    const auto results = client_->execute(batch, options);
    ASSERT_TRUE(results) << results.error().message;
    std::string keys;
    for (std::size_t i = 0; i < results->read_count(0); ++i) keys += std::string(results->read(0, i).key) + " ";
    EXPECT_EQ(keys, "w/85 w/8 w/7 ");
    EXPECT_EQ(results->read(0, 0).version, std::nullopt) << "an own write";
  }
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
  EXPECT_EQ(error.setting, "--key-bytes-max") << error.message;
}

class LittleRoomForAnswers : public ClientIntegration {
 protected:
  LittleRoomForAnswers() : ClientIntegration({"--answers-bytes-max", "1MiB"}) {}
};

// The stream ends with RESOURCE_EXHAUSTED and a retry delay, after its transactions have run.
TEST_F(LittleRoomForAnswers, ABatchWhoseAnswersAreTooMuchIsAppliedOnce) {
  put("big", std::string_view(std::string(600 << 10, 'x')));
  Batch batch;
  batch.begin();
  batch.add(batch.key("applied"), 1);
  batch.end();
  for (int i = 0; i < 4; ++i) {
    batch.begin();
    batch.get(batch.key("big"));
    batch.end();
  }
  CallOptions options;
  options.timeout_us = 5'000'000;
  const Error error = client_->execute(batch, options).error();
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted) << error.message;
  EXPECT_FALSE(never_ran(error)) << error.message;
  EXPECT_EQ(integer("applied"), 1);
}

}  // namespace
}  // namespace kilokv::client
