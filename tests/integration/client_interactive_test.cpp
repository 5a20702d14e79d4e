// Interactive transactions against the real kilokvd, with others that write meanwhile.
#include "kilokv/interactive.hpp"

#include <atomic>

#include "tests/integration/client_fixture.hpp"

namespace kilokv::client {
namespace {

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

// Everybody adds a seat while there are fewer than kSeats: without the guard of the range two would take the last one.
// Some leave again. The server is killed in between.
TEST_F(ClientIntegration, NoPhantomTakesAPlaceTwice) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 12;
  constexpr std::size_t kSeats = 5;
  std::atomic<int> rounds = 0;
  std::atomic<std::int64_t> taken = 0;
  const auto work = [&](int place) {
    auto session = open_session();
    for (int round = 0; round < kRounds; ++round, ++rounds) {
      const std::string mine = "seat/" + std::to_string(place) + "-" + std::to_string(round);
      std::int64_t change = 0;
      const auto body = [&](InteractiveTransaction& t) -> Error {
        change = 0;
        const auto seats = t.scan("seat/", "seat0");
        if (!seats) return seats.error();
        EXPECT_LE(seats->size(), kSeats);
        if (seats->size() < kSeats) {
          t.put(mine, std::int64_t{1});
          change = 1;
        } else if (round % 2 == 0) {
          t.del(seats->front().key);
          change = -1;
        }
        return {};
      };
      const Error error = InteractiveTransaction::run(client_.get(), session.get(), body, 10'000);
      EXPECT_FALSE(error) << to_string(error.code) << ": " << error.message;
      taken += change;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  while (rounds < kThreads * kRounds / 2) std::this_thread::yield();
  server_.kill();
  server_.start();
  for (std::thread& thread : threads) thread.join();
  InteractiveTransaction last(client_.get(), session_.get());
  const auto seats = last.scan("seat/", "seat0");
  ASSERT_TRUE(seats) << seats.error().message;
  EXPECT_LE(seats->size(), kSeats);
  EXPECT_EQ(static_cast<std::int64_t>(seats->size()), taken) << "what was committed, and nothing else, is there";
  EXPECT_EQ(last.commit().value(), CommitResult::committed);
}

}  // namespace
}  // namespace kilokv::client
