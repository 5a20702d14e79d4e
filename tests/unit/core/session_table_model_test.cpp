// SessionTable against a naive model under seeded random operations, crashes included; and under many threads.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "server/core/session_table.hpp"
#include "tests/unit/core/session_fixtures.hpp"

namespace kilokv::server {
namespace {

using Kind = Admission::Kind;
using Indices = std::vector<std::uint32_t>;

constexpr DurationUs kLeaseUs = 10'000'000;

struct ModelRequest {
  std::uint32_t transactions = 0;
  std::set<std::uint32_t> done;
  bool in_flight = false;
  std::vector<std::shared_ptr<CheckingSink>> sinks;
};

struct ModelSession {
  std::uint64_t acknowledged = 0;
  std::map<std::uint64_t, ModelRequest> requests;
};

// An entry of the log, with the bytes that it points to.
struct LoggedEntry {
  SessionEntry entry;
  std::string results;
};

Hash128 digest_of_number(std::uint64_t number) { return {number * 31, number}; }

class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed) : random_(seed), table_(std::make_unique<SessionTable>(kTestLimits)) {}

  void step() {
    switch (random_() % 16) {
      case 0: return open();
      case 1: return random_() % 4 == 0 ? close() : crash();
      case 2:
        checkpoint_ = table_->snapshot();
        checkpoint_end_ = log_.size();
        return;
      case 3: return abandon();
      case 4:
      case 5:
      case 6:
      case 7:
      case 8: return begin();
      default: return deliver();
    }
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  ModelSession* any_session(SessionId* id) {
    if (model_.empty()) {
      return nullptr;
    }
    auto it = std::next(model_.begin(), static_cast<std::ptrdiff_t>(below(model_.size())));
    *id = it->first;
    return &it->second;
  }

  // A request in flight of any session.
  ModelRequest* any_in_flight(SessionId* id, std::uint64_t* number) {
    ModelSession* session = any_session(id);
    if (session == nullptr) {
      return nullptr;
    }
    for (auto& [candidate, request] : session->requests) {
      if (request.in_flight && (*number == 0 || below(2) == 0)) {
        *number = candidate;
      }
    }
    return *number == 0 ? nullptr : &session->requests[*number];
  }

  void log(SessionEntry entry, std::string results) { log_.push_back({entry, std::move(results)}); }

  void open() {
    if (model_.size() >= 3) {
      return;
    }
    const SessionId id = session_id(static_cast<unsigned char>(++opened_));
    ASSERT_TRUE(table_->open(id, kLeaseUs, 0).ok());
    model_[id];
    log({SessionEntry::Kind::opened, id, kLeaseUs, 0, 0, {}, 0, {}}, "");
  }

  void close() {
    SessionId id;
    ModelSession* session = any_session(&id);
    if (session == nullptr) {
      return;
    }
    ASSERT_TRUE(table_->close(id).ok());
    log({SessionEntry::Kind::closed, id, 0, 0, 0, {}, 0, {}}, "");
    // What is in flight still answers.
    for (auto& [number, request] : session->requests) {
      if (request.in_flight) {
        Indices rest;
        for (std::uint32_t i = 0; i < request.transactions; ++i) {
          if (!request.done.contains(i)) {
            rest.push_back(i);
          }
        }
        const RecordedSlice slice = slice_of(rest);
        table_->deliver(id, number, slice, encoded(slice));
        expect_ended(request, rest);
      }
    }
    ASSERT_FALSE(table_->contains(id));
    model_.erase(id);
  }

  void begin() {
    SessionId id;
    ModelSession* session = any_session(&id);
    if (session == nullptr) {
      return;
    }
    const std::uint64_t number = session->acknowledged + below(6);
    const std::uint64_t acknowledged = below(4) == 0 ? session->acknowledged + below(3) : 0;
    const auto known = session->requests.find(number);
    const std::uint32_t transactions =
        known != session->requests.end() ? known->second.transactions : 1 + static_cast<std::uint32_t>(below(5));
    const auto sink = std::make_shared<CheckingSink>();
    const Admission admission =
        table_->begin({id, number, acknowledged, digest_of_number(number), transactions, sink}, 0);
    if (number <= std::max(session->acknowledged, acknowledged)) {
      ASSERT_EQ(admission.kind, Kind::refused);
      ASSERT_EQ(admission.status.code(), StatusCode::failed_precondition);
      return;
    }
    acknowledge(session, acknowledged);
    expect_admission(&session->requests[number], transactions, sink, admission);
  }

  void acknowledge(ModelSession* session, std::uint64_t through) {
    session->acknowledged = std::max(session->acknowledged, through);
    for (auto it = session->requests.begin(); it != session->requests.upper_bound(session->acknowledged);) {
      it = it->second.in_flight ? std::next(it) : session->requests.erase(it);
    }
  }

  void expect_admission(ModelRequest* request, std::uint32_t transactions, const std::shared_ptr<CheckingSink>& sink,
                        const Admission& admission) {
    const std::set<std::uint32_t> shown(sink->indices().begin(), sink->indices().end());
    ASSERT_EQ(shown, request->done);
    request->transactions = transactions;
    if (request->in_flight) {
      ASSERT_EQ(admission.kind, Kind::joined);
    } else if (request->done.size() == transactions) {
      ASSERT_EQ(admission.kind, Kind::answered);
      ASSERT_TRUE(sink->last());
      return;
    } else {
      ASSERT_EQ(admission.kind, Kind::run);
      ASSERT_EQ(admission.all_remaining, request->done.empty());
      std::set<std::uint32_t> all = request->done;
      all.insert(admission.remaining.begin(), admission.remaining.end());
      ASSERT_EQ(admission.remaining.size(), request->done.empty() ? 0 : transactions - request->done.size());
      ASSERT_EQ(all.size(), request->done.empty() ? 0 : transactions);
    }
    ASSERT_FALSE(sink->ended());
    request->in_flight = true;
    request->sinks.push_back(sink);
  }

  void deliver() {
    SessionId id;
    std::uint64_t number = 0;
    ModelRequest* request = any_in_flight(&id, &number);
    if (request == nullptr) {
      return;
    }
    Indices finished;
    for (std::uint32_t i = 0; i < request->transactions; ++i) {
      if (!request->done.contains(i) && below(2) == 0) {
        finished.push_back(i);
      }
    }
    if (finished.empty()) {
      return;
    }
    const RecordedSlice slice = slice_of(finished, 1 + log_.size() / 4);  // several entries of one batch, too
    ModelSession& session = model_[id];
    log({SessionEntry::Kind::results,
         id,
         0,
         number,
         session.acknowledged,
         digest_of_number(number),
         request->transactions,
         {}},
        encoded(slice));
    table_->deliver(id, number, slice, encoded(slice));
    request->done.insert(finished.begin(), finished.end());
    if (request->done.size() == request->transactions) {
      expect_ended(*request, finished);
      land(&session, number);
    }
  }

  void abandon() {
    SessionId id;
    std::uint64_t number = 0;
    ModelRequest* request = any_in_flight(&id, &number);
    if (request == nullptr) {
      return;
    }
    table_->abandon(id, number, Status(StatusCode::unavailable, "draining"));
    for (const auto& sink : request->sinks) {
      ASSERT_EQ(sink->failure().code(), StatusCode::unavailable);
      ASSERT_EQ(std::set<std::uint32_t>(sink->indices().begin(), sink->indices().end()), request->done);
    }
    land(&model_[id], number);
  }

  void land(ModelSession* session, std::uint64_t number) {
    ModelRequest& request = session->requests[number];
    request.in_flight = false;
    request.sinks.clear();
    if (number <= session->acknowledged || request.done.empty()) {
      session->requests.erase(number);
    }
  }

  static void expect_ended(const ModelRequest& request, const Indices& latest) {
    for (const auto& sink : request.sinks) {
      ASSERT_TRUE(sink->last());
      ASSERT_EQ(sink->indices().size(), request.transactions);
      ASSERT_TRUE(std::equal(latest.rbegin(), latest.rend(), sink->indices().rbegin()));
    }
  }

  // Starts again from the checkpoint and the log, from anywhere before the checkpoint's end.
  void crash() {
    table_ = std::make_unique<SessionTable>(kTestLimits);
    for (const StoredSession& session : checkpoint_) {
      ASSERT_TRUE(table_->restore(session, 0).ok());
    }
    for (std::size_t i = checkpoint_end_ - below(checkpoint_end_ + 1); i < log_.size(); ++i) {
      SessionEntry entry = log_[i].entry;
      entry.results = log_[i].results;
      const Status status = table_->restore(entry, 0);
      ASSERT_TRUE(status.ok()) << status.message();
    }
    ASSERT_EQ(table_->count(), model_.size());
    for (auto& [id, session] : model_) {
      // Acknowledgements that no logged result carried are forgotten, and what they dropped may be back.
      session.acknowledged = stored_of(id).acknowledged_through;
      session.requests.clear();
    }
    for (const StoredSession& stored : table_->snapshot()) {
      for (const StoredSession::Request& request : stored.requests) {
        ModelRequest& known = model_[stored.session].requests[request.number];
        known.transactions = request.transactions;
        known.done = logged_done(stored.session, request.number);
      }
    }
    expect_nothing_lost();
  }

  StoredSession stored_of(const SessionId& id) const {
    for (const StoredSession& session : table_->snapshot()) {
      if (session.session == id) {
        return session;
      }
    }
    ADD_FAILURE() << "a session is lost";
    return {};
  }

  std::set<std::uint32_t> logged_done(const SessionId& id, std::uint64_t number) const {
    std::set<std::uint32_t> done;
    for (const LoggedEntry& logged : log_) {
      if (logged.entry.session == id && logged.entry.request == number && !logged.results.empty()) {
        CheckingSink sink;
        sink.results(*StoredSlice::parse(logged.results), false);
        done.insert(sink.indices().begin(), sink.indices().end());
      }
    }
    return done;
  }

  // Every logged result that was not acknowledged is there.
  void expect_nothing_lost() {
    for (const LoggedEntry& logged : log_) {
      const auto session = model_.find(logged.entry.session);
      if (logged.results.empty() || session == model_.end() || logged.entry.request <= session->second.acknowledged) {
        continue;
      }
      ASSERT_TRUE(session->second.requests.contains(logged.entry.request));
    }
  }

  std::mt19937_64 random_;
  std::unique_ptr<SessionTable> table_;
  std::map<SessionId, ModelSession> model_;
  std::vector<LoggedEntry> log_;
  std::vector<StoredSession> checkpoint_;
  std::size_t checkpoint_end_ = 0;
  std::uint64_t opened_ = 0;
};

TEST(SessionTableModelTest, AgreesWithTheModel) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun run(seed);
    for (int i = 0; i < 300; ++i) {
      run.step();
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
}

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
      const Admission admission =
          table->begin({ids[s], number, 0, digest_of_number(number), kTransactions, std::move(sink)}, 0);
      EXPECT_NE(admission.kind, Kind::refused);
      if (admission.kind == Kind::run) {
        EXPECT_TRUE(admission.all_remaining);
        ++(*runs)[s * (numbers + 1) + number];
        queue->push({ids[s], number});
      }
    }
  }
}

TEST(SessionTableModelTest, EachRequestRunsOnceHoweverManyThreadsSendIt) {
  constexpr int kClients = 4;
  constexpr std::uint64_t kNumbers = 300;
  SessionTable table({.sessions_max = 100,
                      .session_lease_us_min = 1,
                      .session_lease_us_max = kLeaseUs,
                      .session_requests_max = 100'000,
                      .session_bytes_max = 1'000'000'000});
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
      EXPECT_EQ(table.snapshot().size(), ids.size());
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
TEST(SessionTableModelTest, EverySinkHearsItsEndWhileSessionsCloseAndAcknowledge) {
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
          table.abandon(item->session, item->number, Status(StatusCode::unavailable, "draining"));
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
  for (unsigned char n = 1; n <= kSessions; ++n) {
    ASSERT_TRUE(table.open(session_id(n), kLeaseUs, 0).ok());
    for (std::uint64_t number = 1; number <= 50; ++number) {
      sinks.push_back(std::make_shared<CheckingSink>());
      const Admission admission =
          table.begin({session_id(n), number, number / 2, digest_of_number(number), 1, sinks.back()}, 0);
      ASSERT_EQ(admission.kind, Kind::run);
      queue.push({session_id(n), number});
    }
    ASSERT_TRUE(table.close(session_id(n)).ok());
  }
  sent = true;
  answer_worker.join();
  for (const auto& sink : sinks) {
    EXPECT_TRUE(sink->ended());
  }
  EXPECT_EQ(table.count(), 0u);
}

}  // namespace
}  // namespace kilokv::server
