// Many requests over a server that loses streams, forgets answers and splits them: each is applied once, each
// transaction is reported once.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <random>

#include "tests/unit/client/fake_server.hpp"
#include "tests/unit/client/test_batch.hpp"

namespace kilokv::client {
namespace {

std::uint64_t choose_seed() {
  const char* fixed = std::getenv("KILOKV_TEST_SEED");
  return fixed != nullptr ? std::strtoull(fixed, nullptr, 10) : std::random_device{}();
}

// Answers in two halves, or loses the stream before, between or after them.
class Flaky {
 public:
  Flaky(FakeServer* server, std::uint64_t seed) : server_(server), random_(seed) {}

  std::optional<grpc::Status> operator()(const v1::SessionRequest& request, const FakeServer::Write& write) {
    const std::uint32_t dice = roll();
    const grpc::Status lost(grpc::StatusCode::UNAVAILABLE, "lost");
    if (dice == 0) return lost;
    const v1::SessionResponse whole = server_->apply(request);
    if (dice == 1) return lost;
    const int n = static_cast<int>(whole.columns().outcome().size());
    write(part(whole, 0, n / 2, false));
    if (dice == 2) return lost;
    write(part(whole, n / 2, n, true));
    if (dice == 3) return lost;
    return std::nullopt;
  }

 private:
  std::uint32_t roll() {
    std::lock_guard lock(mutex_);
    return std::uniform_int_distribution<std::uint32_t>(0, 39)(random_);
  }
  static v1::SessionResponse part(const v1::SessionResponse& whole, int begin, int end, bool last) {
    v1::SessionResponse response;
    response.set_number(whole.number());
    response.set_last(last);
    *response.mutable_columns() = FakeServer::committed(end - begin);
    for (int i = begin; i < end; ++i) response.mutable_columns()->add_index(static_cast<std::uint32_t>(i));
    return response;
  }

  FakeServer* server_;
  std::mutex mutex_;
  std::mt19937_64 random_;
};

TEST(SessionFlaky, EveryRequestIsAppliedOnceAndReportedOnce) {
  constexpr int kRequests = 400;
  constexpr int kTransactions = 6;
  const std::uint64_t seed = choose_seed();
  SCOPED_TRACE("replay with KILOKV_TEST_SEED=" + std::to_string(seed));
  FakeServer server;
  Flaky flaky(&server, seed);
  server.on_request = std::ref(flaky);
  auto client = Client::connect(server.client_options());
  ASSERT_TRUE(client);
  SessionOptions options;
  options.requests_in_flight_max = 16;
  auto session = (*client)->open_session(options);
  ASSERT_TRUE(session);

  std::mutex mutex;
  std::condition_variable changed;
  int ended = 0;
  std::vector<std::vector<int>> reports(kRequests, std::vector<int>(kTransactions));
  for (int i = 0; i < kRequests; ++i) {
    (*session)->execute_async(adds(kTransactions), [&, i](const Progress& progress) {
      std::lock_guard lock(mutex);
      for (const std::uint32_t index : progress.indices) ++reports[static_cast<std::size_t>(i)][index];
      if (!progress.done) return;
      EXPECT_FALSE(progress.error) << progress.error.message;
      ++ended;
      changed.notify_all();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return ended == kRequests; });
  for (int i = 0; i < kRequests; ++i) {
    EXPECT_EQ(server.times_applied(static_cast<std::uint64_t>(i) + 1), 1u) << "request " << i + 1;
    EXPECT_EQ(reports[static_cast<std::size_t>(i)], std::vector<int>(kTransactions, 1)) << "request " << i + 1;
  }
  lock.unlock();
  session->reset();
}

}  // namespace
}  // namespace kilokv::client
