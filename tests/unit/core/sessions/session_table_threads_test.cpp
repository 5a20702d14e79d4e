// SessionTable under many threads.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "server/core/sessions/session_table.hpp"
#include "tests/unit/core/sessions/session_fixtures.hpp"

namespace kilokv::server {
namespace {

using Kind = SessionAdmission::Kind;
using Indices = std::vector<std::uint32_t>;

// Requests that wait for the answer worker.
class WorkQueue {
 public:
  struct Item {
    SessionId session;
    std::uint64_t number;
  };
  void push(const Item& item) {
    const std::scoped_lock lock(mutex_);
    items_.push_back(item);
  }
  std::optional<Item> pop() {
    const std::scoped_lock lock(mutex_);
    if (items_.empty()) {
      return std::nullopt;
    }
    const Item item = items_.front();
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mutex_;
  std::deque<Item> items_;
};

constexpr std::uint32_t kTransactions = 3;

// Sends each number of a session, as all the other client threads do too.
void send_all(SessionTable* table, WorkQueue* queue, const std::vector<SessionId>& ids, std::uint64_t numbers,
              std::vector<std::atomic<int>>* runs, std::vector<std::shared_ptr<CheckingSink>>* sinks) {
  for (std::uint64_t number = 1; number <= numbers; ++number) {
    for (std::size_t s = 0; s < ids.size(); ++s) {
      auto sink = std::make_shared<CheckingSink>();
      sinks->push_back(sink);
      const SessionAdmission admission =
          table->begin({{ids[s], number, 0, digest_of_number(number)}, kTransactions, std::move(sink)}, 0);
      EXPECT_NE(admission.kind, Kind::refused);
      if (admission.kind == Kind::run) {
        EXPECT_TRUE(admission.all_remaining);
        ++(*runs)[s * (numbers + 1) + number];
        queue->push({ids[s], number});
      }
    }
  }
}

TEST(SessionTableThreadsTest, EachRequestRunsOnceHoweverManyThreadsSendIt) {
  constexpr int kClients = 4;
  constexpr std::uint64_t kNumbers = 300;
  SessionTable table({.sessions_max = 100,
                      .session_lease_us_min = 1,
                      .session_lease_us_max = kLeaseUs,
                      .session_requests_max = 100'000,
                      .session_bytes_max = 1'000'000'000,
                      .session_bytes_total_max = 1'000'000'000});
  const std::vector<SessionId> ids{session_id(1), session_id(2)};
  for (const SessionId& id : ids) {
    ASSERT_TRUE(table.open(id, kLeaseUs, 0).ok());
  }
  WorkQueue queue;
  std::vector<std::atomic<int>> runs(ids.size() * (kNumbers + 1));
  std::vector<std::vector<std::shared_ptr<CheckingSink>>> sinks(kClients);
  std::atomic<std::size_t> delivered{0};
  const std::size_t wanted = ids.size() * kNumbers;

  std::vector<std::thread> threads;
  threads.emplace_back([&] {  // the answer worker
    while (delivered < wanted) {
      const std::optional<WorkQueue::Item> item = queue.pop();
      if (!item) {
        std::this_thread::yield();
        continue;
      }
      for (const Indices& indices : {Indices{1}, Indices{0, 2}}) {
        const RecordedSlice slice = slice_of(indices);
        table.deliver(item->session, item->number, slice, encoded(slice));
      }
      ++delivered;
    }
  });
  threads.emplace_back([&] {  // the checkpointer, and the executor's look at the leases
    while (delivered < wanted) {
      EXPECT_EQ(snapshot_of(table).size(), ids.size());
      EXPECT_TRUE(table.expire(kLeaseUs - 1).empty());
      EXPECT_TRUE(table.touch(ids[0], 1).ok());
    }
  });
  for (int client = 0; client < kClients; ++client) {
    threads.emplace_back([&, client] { send_all(&table, &queue, ids, kNumbers, &runs, &sinks[client]); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t s = 0; s < ids.size(); ++s) {
    for (std::uint64_t number = 1; number <= kNumbers; ++number) {
      EXPECT_EQ(runs[s * (kNumbers + 1) + number], 1);
    }
  }
  for (const auto& of_client : sinks) {
    for (const auto& sink : of_client) {
      EXPECT_TRUE(sink->last());
      EXPECT_EQ(sink->indices(), (Indices{1, 0, 2}));
    }
  }
}

// Sessions close and requests are acknowledged while others deliver: every sink still hears its end.
TEST(SessionTableThreadsTest, EverySinkHearsItsEndWhileSessionsCloseAndAcknowledge) {
  constexpr unsigned char kSessions = 100;
  SessionTable table(kTestLimits);
  WorkQueue queue;
  std::atomic<bool> sent{false};
  std::vector<std::shared_ptr<CheckingSink>> sinks;
  std::thread answer_worker([&] {
    for (;;) {
      const bool last_round = sent;
      while (const std::optional<WorkQueue::Item> item = queue.pop()) {
        if (item->number % 7 == 0) {
          table.abandon(item->session, item->number,
                        Status(StatusCode::unavailable, ErrorReason::draining, "draining"));
          continue;
        }
        const RecordedSlice slice = slice_of({0});
        table.deliver(item->session, item->number, slice, encoded(slice));
      }
      if (last_round) {
        return;
      }
      std::this_thread::yield();
    }
  });
  std::thread executor([&] {
    while (!sent) table.free_ended(3);
  });
  for (unsigned char n = 1; n <= kSessions; ++n) {
    ASSERT_TRUE(table.open(session_id(n), kLeaseUs, 0).ok());
    for (std::uint64_t number = 1; number <= 50; ++number) {
      sinks.push_back(std::make_shared<CheckingSink>());
      const SessionAdmission admission =
          table.begin({{session_id(n), number, number / 2, digest_of_number(number)}, 1, sinks.back()}, 0);
      ASSERT_EQ(admission.kind, Kind::run);
      queue.push({session_id(n), number});
    }
    ASSERT_TRUE(table.close(session_id(n)).ok());
  }
  sent = true;
  answer_worker.join();
  executor.join();
  for (const auto& sink : sinks) {
    EXPECT_TRUE(sink->ended());
  }
  EXPECT_EQ(table.count(), 0u);
  while (table.has_ended()) table.free_ended(10);
  EXPECT_EQ(table.stored_bytes() + table.reserved_bytes(), 0u);
}

// One request, of which a part is answered now and then, while many threads send it again. It sometimes fails, and then
// the next sending runs the rest.
class RetriedRequest {
 public:
  static constexpr std::uint32_t kSize = 60;

  RetriedRequest(SessionTable* table, std::uint64_t number, std::uint64_t seed)
      : table_(table), number_(number), random_(seed) {}

  // Sends it until it is complete, or clearly never will be.
  void send(std::uint64_t seed, std::vector<std::shared_ptr<CheckingSink>>* sinks) {
    std::mt19937_64 random(seed);
    for (int sending = 0; sending < 100000 && !complete_; ++sending) {
      auto sink = std::make_shared<CheckingSink>();
      const SessionAdmission admission =
          table_->begin({{session_id(1), number_, 0, digest_of_number(number_)}, kSize, sink}, 0);
      if (admission.kind == Kind::refused) {
        EXPECT_EQ(admission.status.reason(), ErrorReason::calls_full);
        std::this_thread::yield();
        continue;
      }
      if (random() % 4 == 0) sink->go();
      sinks->push_back(std::move(sink));
      if (admission.kind != Kind::run) continue;
      const std::scoped_lock lock(mutex_);
      left_ = admission.remaining;
      for (std::uint32_t i = 0; admission.all_remaining && i < kSize; ++i) left_.push_back(i);
    }
  }

  // The answer worker: answers a part, or ends the request without its rest.
  void answer() {
    const std::scoped_lock lock(mutex_);
    if (left_.empty()) return;
    if (random_() % 16 == 0) {
      left_.clear();
      return table_->abandon(session_id(1), number_,
                             Status(StatusCode::unavailable, ErrorReason::draining, "draining"));
    }
    const auto part = static_cast<std::ptrdiff_t>(1 + random_() % std::min<std::size_t>(3, left_.size()));
    const RecordedSlice slice = slice_of(Indices(left_.begin(), left_.begin() + part), ++batch_);
    left_.erase(left_.begin(), left_.begin() + part);
    answered_ += static_cast<std::uint32_t>(part);
    table_->deliver(session_id(1), number_, slice, encoded(slice));
    complete_ = answered_ == kSize;
  }
  bool complete() const { return complete_; }

 private:
  SessionTable* const table_;
  const std::uint64_t number_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  Indices left_;
  BatchNumber batch_ = 0;
  std::uint32_t answered_ = 0;
  std::atomic<bool> complete_{false};
};

// Every call that waits to the end gets everything once, in the order in which it was answered.
TEST(SessionTableThreadsTest, RetriesThatComeWhileResultsComeGetEverythingInOrder) {
  constexpr int kClients = 4;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SessionTable table(kTestLimits);
    ASSERT_TRUE(table.open(session_id(1), kLeaseUs, 0).ok());
    RetriedRequest request(&table, 1, seed);
    std::vector<std::vector<std::shared_ptr<CheckingSink>>> sinks(kClients);
    std::atomic<int> sending{kClients};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {  // the answer worker
      while (sending > 0) request.answer();
    });
    for (int client = 0; client < kClients; ++client) {
      threads.emplace_back([&, client] {
        request.send(seed * 100 + client, &sinks[client]);
        --sending;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(request.complete());
    const auto all = std::make_shared<CheckingSink>();
    EXPECT_EQ(table.begin({{session_id(1), 1, 0, digest_of_number(1)}, RetriedRequest::kSize, all}, 0).kind,
              Kind::answered);
    ASSERT_EQ(all->indices().size(), RetriedRequest::kSize);
    for (const auto& of_client : sinks) {
      for (const auto& sink : of_client) {
        ASSERT_TRUE(sink->ended());
        ASSERT_EQ(sink.use_count(), 1);
        if (sink->gone()) continue;
        ASSERT_TRUE(std::equal(sink->indices().begin(), sink->indices().end(), all->indices().begin()));
        ASSERT_EQ(sink->last(), sink->indices().size() == RetriedRequest::kSize);
      }
    }
  }
}

}  // namespace
}  // namespace kilokv::server
