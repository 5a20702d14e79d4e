// SessionTable against a naive model under seeded random operations, crashes included.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "server/core/sessions/session_state.hpp"
#include "server/core/sessions/session_table.hpp"
#include "tests/unit/core/sessions/session_fixtures.hpp"

namespace kilokv::server {
namespace {

using Kind = SessionAdmission::Kind;
using Indices = std::vector<std::uint32_t>;

struct ModelRequest {
  std::uint32_t transactions = 0;
  std::set<std::uint32_t> done;
  bool in_flight = false;
  std::vector<std::shared_ptr<CheckingSink>> sinks;
};

struct ModelSession {
  std::uint64_t acknowledged = 0;
  std::uint64_t holder = 0;
  std::map<std::uint64_t, ModelRequest> requests;
};

// An entry of the log, with the bytes that it points to.
struct LoggedEntry {
  SessionEntry entry;
  std::string results;
};

class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed) : random_(seed), table_(std::make_unique<SessionTable>(kTestLimits)) {}

  void step() {
    switch (random_() % 17) {
      case 0: return open();
      case 1: return random_() % 4 == 0 ? close() : crash();
      case 2: return checkpoint();
      case 3: return abandon();
      case 4:
      case 5:
      case 6:
      case 7:
      case 8: return begin();
      case 9: return attach();
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

  // Things go on while the sessions are walked; what of it is not in the checkpoint is in the log after its begin.
  void checkpoint() {
    checkpoint_.clear();
    checkpoint_end_ = log_.size();
    ASSERT_TRUE(table_
                    ->walk([this](const StoredSession& session) {
                      checkpoint_.push_back(session);
                      switch (below(8)) {
                        case 0: open(); break;
                        case 1: close(); break;
                        case 2: begin(); break;
                        case 3:
                        case 4: deliver(); break;
                        case 5: attach(); break;
                        default: break;
                      }
                      return Status();
                    })
                    .ok());
  }

  void log(SessionEntry entry, std::string results) { log_.push_back({entry, std::move(results)}); }

  void open() {
    if (model_.size() >= 3) {
      return;
    }
    const SessionId id = session_id(static_cast<unsigned char>(++opened_));
    ASSERT_TRUE(table_->open(id, kLeaseUs, 0).ok());
    model_[id];
    log({SessionEntry::Kind::opened, {id, 0, 0, {}}, kLeaseUs, 0, {}}, "");
  }

  void close() {
    SessionId id;
    ModelSession* session = any_session(&id);
    if (session == nullptr) {
      return;
    }
    ASSERT_TRUE(table_->close(id).ok());
    log({SessionEntry::Kind::closed, {id, 0, 0, {}}, 0, 0, {}}, "");
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

  // The entry is durable before the next step.
  void attach() {
    SessionId id;
    ModelSession* session = any_session(&id);
    if (session == nullptr) {
      return;
    }
    const Result<SessionEntry> entry = table_->attach(id, nullptr, 0, 0);
    ASSERT_TRUE(entry.ok());
    ASSERT_EQ(entry->identity.holder, ++session->holder);
    ASSERT_EQ(entry->identity.acknowledged_through, session->acknowledged);
    log(*entry, "");
    table_->attached(id, session->holder);
    expect_list(id, *session);
  }

  void expect_list(const SessionId& id, const ModelSession& session) {
    Result<SessionList> list = table_->list({id, session.holder}, nullptr, 0);
    ASSERT_TRUE(list.ok());
    ASSERT_TRUE(table_->add_results(id, ~BatchNumber{0}, {}, ~std::uint64_t{0}, &*list).ok());
    ASSERT_FALSE(list->more);
    std::size_t open = 0;
    for (const auto& [number, request] : session.requests) open += number > session.acknowledged ? 1 : 0;
    ASSERT_EQ(list->requests.size(), open);
    for (const ListedRequest& listed : list->requests) {
      const ModelRequest& request = session.requests.at(listed.number);
      ASSERT_EQ(listed.transactions, request.transactions);
      ASSERT_EQ(listed.in_flight, request.in_flight);
      ASSERT_EQ(listed.decided, request.done.size());
      ASSERT_EQ(listed.queued, request.in_flight ? request.transactions - request.done.size() : 0);
      CheckingSink seen;
      for (const auto& slice : listed.results) seen.results(*slice, false);
      ASSERT_EQ(std::set<std::uint32_t>(seen.indices().begin(), seen.indices().end()), request.done);
    }
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
    const std::uint64_t holder = below(4) == 0 ? below(session->holder + 2) : session->holder;
    const SessionAdmission admission =
        table_->begin({{id, number, acknowledged, digest_of_number(number), holder}, transactions, sink}, 0);
    if (holder != session->holder) {
      ASSERT_EQ(admission.kind, Kind::refused);
      ASSERT_EQ(admission.status.reason(), ErrorReason::session_fenced);
      ASSERT_FALSE(sink->ended());
      return;
    }
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
                        const SessionAdmission& admission) {
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
         {id, number, session.acknowledged, digest_of_number(number)},
         0,
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
    table_->abandon(id, number, Status(StatusCode::unavailable, ErrorReason::draining, "draining"));
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
      ASSERT_EQ(stored_of(id).holder, session.holder);
      session.requests.clear();
    }
    std::uint64_t stored_bytes = 0;
    for (const StoredSession& stored : snapshot_of(*table_)) {
      for (const StoredSession::Request& request : stored.requests) {
        stored_bytes += kRequestBytes;
        for (const std::string& slice : request.results) {
          stored_bytes += kSliceBytes + slice.size();
        }
        ModelRequest& known = model_[stored.session].requests[request.number];
        known.transactions = request.transactions;
        known.done = logged_done(stored.session, request.number);
      }
    }
    table_->free_ended(SIZE_MAX);  // what ended sessions hold counts until then
    ASSERT_EQ(table_->stored_bytes(), stored_bytes);
    expect_nothing_lost();
  }

  StoredSession stored_of(const SessionId& id) const {
    for (const StoredSession& session : snapshot_of(*table_)) {
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
      if (logged.entry.identity.session == id && logged.entry.identity.number == number && !logged.results.empty()) {
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
      const auto session = model_.find(*logged.entry.identity.session);
      if (logged.results.empty() || session == model_.end() ||
          logged.entry.identity.number <= session->second.acknowledged) {
        continue;
      }
      ASSERT_TRUE(session->second.requests.contains(logged.entry.identity.number));
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

}  // namespace
}  // namespace kilokv::server
