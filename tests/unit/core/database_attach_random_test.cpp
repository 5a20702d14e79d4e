// Clients that crash, and whose requests arrive late, over a core that crashes, too, at random steps. Each client that
// attaches is told what became of the requests before. Nothing that it is told is contradicted later: what was decided
// stays so, and what was not known never runs. A failure prints the seed; KILOKV_SEED=<seed> replays it alone.
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/attach_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

constexpr DurationUs kHour = DurationUs{3600} * 1000000;
constexpr std::uint32_t kTransactions = 2;  // of a request: one that always commits, and one that waits for the pool

class RandomAttach : public AttachFixture {
 public:
  explicit RandomAttach(std::uint64_t seed) : AttachFixture(seed), random_(seed * 6271 + 5) {
    options.batch_max_transactions = 1 + pick(6);
    options.batch_in_flight_max = 1 + pick(3);
    options.checkpoint_interval_us = 50000;
    options.session_lease_us_default = kHour;
  }
  void TestBody() override {}

  // How often the rare cases came up, over all runs.
  struct Seen {
    int not_known = 0, queued = 0, parked = 0, partly = 0, decided = 0, resting = 0, fenced = 0;
  };

  void play(Seen* seen) {
    seen_ = seen;
    open();
    for (int i = 0; i < 2; ++i) {
      session_.emplace_back();
      session_.back().id = open_session();
      session_.back().name = std::to_string(i);
    }
    for (int step = 0; step < 150 && !HasFailure(); ++step) act();
    if (!HasFailure()) finish();
  }

 private:
  struct Told {
    Outcome outcome;
    std::optional<Version> version;
    BatchNumber batch;
    std::uint32_t rank;
    friend bool operator==(const Told&, const Told&) = default;
  };
  struct Late {
    std::uint64_t number, holder, acknowledged;
  };
  struct Session {
    SessionId id;
    std::string name;
    std::uint64_t holder = 0, used = 0, acknowledged = 0;
    std::vector<Late> late;                                              // on their way
    std::vector<std::pair<std::uint64_t, Sink>> sent;                    // number and answer, in this run of the server
    std::shared_ptr<Attach> attach;                                      // under way
    std::map<std::uint64_t, std::map<std::uint32_t, Told>> told;         // by number and index
    std::map<std::uint64_t, std::map<std::uint32_t, Told>> told_before;  // when the attach began
    std::set<std::uint64_t> not_known;                                   // as a client was told
  };

  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  static std::string key(const char* kind, const Session& session, std::uint64_t number) {
    return kind + session.name + "/" + std::to_string(number);
  }
  static Build request(const Session& session, std::uint64_t number) {
    return [first = key("n", session, number), second = key("w", session, number)](engine::ColumnsBuilder& b) {
      add(first, 1)(b);
      b.begin(0, kHour);
      const std::uint32_t pool = b.key("pool");
      b.guard(engine::GuardKind::greater_equal, engine::OnFalse::wait, pool, 1);
      b.op(engine::OpKind::add, pool, engine::Operand::integer, -1);
      b.op(engine::OpKind::add, b.key(second), engine::Operand::integer, 1);
      b.end();
    };
  }

  void arrive(Session* session, const Late& late) {
    session->sent.emplace_back(
        late.number, send(request(*session, late.number), session->id, late.number, late.holder, late.acknowledged));
  }

  void act() {
    Session& session = session_[pick(2)];
    switch (pick(14)) {
      case 0: return crash();
      case 1: {  // the client has crashed, and another one comes
        if (session.attach == nullptr) begin(&session);
        return;
      }
      case 2:
      case 3: {  // something arrives late, or once more
        if (session.late.empty()) return;
        const std::size_t i = pick(static_cast<std::uint32_t>(session.late.size()));
        const Late late = session.late[i];
        if (pick(2) == 0) session.late.erase(session.late.begin() + static_cast<std::ptrdiff_t>(i));
        return arrive(&session, late);
      }
      case 4: {
        submit(add("pool", 1 + pick(3)));
        return;
      }
      case 5:
      case 6:
      case 7: {  // the client that holds the session sends its next request
        const Late next{++session.used, session.holder, session.acknowledged};
        if (pick(3) > 0) arrive(&session, next);
        if (pick(2) == 0) session.late.push_back(next);
        return;
      }
      case 8: return sim.scheduler.run_for(pick(60000));
      default:
        for (std::uint32_t steps = pick(6); steps > 0 && sim.scheduler.run_one(); --steps) {
        }
        return collect();
    }
  }

  void begin(Session* session) {
    collect();
    session->told_before = session->told;
    session->attach = begin_attach(target_of(session->id));
  }

  void crash() {
    collect();
    for (Session& session : session_) {
      session.sent.clear();
      session.attach.reset();  // nobody was answered
    }
    reopen();
  }

  void collect() {
    for (Session& session : session_) {
      std::erase_if(session.sent, [&](const auto& sent) {
        for (const auto& [index, answer] : sent.second->answers) note(&session, sent.first, answer.result);
        if (sent.second->failure && sent.second->failure->reason() == ErrorReason::session_fenced) ++seen_->fenced;
        return sent.second->ended();
      });
      if (session.attach == nullptr || !session.attach->answer) continue;
      ASSERT_TRUE(session.attach->answer->ok()) << session.attach->answer->status().message();
      take_over(&session, **session.attach->answer);
      session.attach.reset();
    }
  }

  // What anybody was told stays so.
  void note(Session* session, std::uint64_t number, const TransactionResult& result) {
    const Told told{result.outcome, result.version, result.batch, result.rank};
    const auto [known, is_new] = session->told[number].emplace(result.index, told);
    EXPECT_TRUE(is_new || known->second == told) << "session " << session->name << " number " << number;
    EXPECT_FALSE(session->not_known.contains(number))
        << "session " << session->name << " number " << number << " was not known";
  }

  void take_over(Session* session, const SessionList& list) {
    ASSERT_GT(list.holder, session->holder);
    ASSERT_FALSE(list.more);
    session->holder = list.holder;
    session->acknowledged = list.acknowledged_through;
    check_list(session, list);
    for (std::uint64_t number = list.acknowledged_through + 1; number <= session->used; ++number) {
      if (find(list, number) != nullptr) continue;
      ++seen_->not_known;
      EXPECT_FALSE(session->told.contains(number)) << "number " << number << " has an answer, and is not known";
      session->not_known.insert(number);
    }
    // It needs nothing of what is decided at the begin of its list.
    while (session->acknowledged < session->used && pick(2) == 0) {
      const ListedRequest* const next = find(list, session->acknowledged + 1);
      if (next != nullptr && next->decided < next->transactions) break;
      ++session->acknowledged;
    }
  }

  void check_list(Session* session, const SessionList& list) {
    for (const ListedRequest& listed : list.requests) {
      EXPECT_EQ(listed.transactions, kTransactions);
      EXPECT_LE(listed.number, session->used);
      for (const auto& slice : listed.results) {
        struct Look : ResultVisitor {
          void transaction(const TransactionResult& result) override { each(result); }
          void guard_value(const ReadValue&) override {}
          void read(std::uint32_t, const ReadValue&) override {}
          std::function<void(const TransactionResult&)> each;
        } look;
        look.each = [&](const TransactionResult& result) { note(session, listed.number, result); };
        slice->visit(&look);
      }
      EXPECT_EQ(outcomes(listed).size(), listed.decided);
      // An answer that somebody has got is in every later list.
      for (const auto& [index, told] : session->told_before[listed.number]) {
        EXPECT_TRUE(outcomes(listed).contains(index)) << "number " << listed.number;
      }
      seen_->queued += listed.queued > 0 ? 1 : 0;
      seen_->parked += listed.parked > 0 ? 1 : 0;
      seen_->partly += listed.decided == 1 ? 1 : 0;
      seen_->decided += listed.decided == 2 ? 1 : 0;
      seen_->resting += listed.decided == 1 && !listed.in_flight ? 1 : 0;
    }
  }

  // Everything that is late arrives now, more than once.
  void finish() {
    settle();
    collect();
    for (int round = 0; round < 2; ++round) {
      for (Session& session : session_) {
        if (session.attach != nullptr) continue;
        begin(&session);
      }
      settle();
      collect();
      for (Session& session : session_) {
        for (const Late& late : session.late) arrive(&session, late);
      }
      run(add("pool", 1000));
      settle();
      collect();
      if (round == 0) crash();
    }
    for (Session& session : session_) {
      check_list(&session, list(session.id, session.holder));
      for (std::uint64_t number = 1; number <= session.used; ++number) expect_state(session, number);
    }
  }

  void expect_state(const Session& session, std::uint64_t number) {
    const std::int64_t first = integer(key("n", session, number)), second = integer(key("w", session, number));
    const auto told = session.told.find(number);
    const auto committed = [&](std::uint32_t index) {
      return told != session.told.end() && told->second.contains(index) &&
             told->second.at(index).outcome == Outcome::committed;
    };
    const std::string where = "session " + session.name + " number " + std::to_string(number);
    EXPECT_LE(first, 1) << where;
    EXPECT_LE(second, 1) << where;
    if (session.not_known.contains(number)) {
      EXPECT_EQ(first, 0) << where << " was not known";
      EXPECT_EQ(second, 0) << where << " was not known";
    }
    if (committed(0)) {
      EXPECT_EQ(first, 1) << where;
    }
    if (committed(1)) {
      EXPECT_EQ(second, 1) << where;
    }
    if (number > session.acknowledged && told == session.told.end()) {
      EXPECT_EQ(first + second, 0) << where << ": nobody was told of it, and it ran";
    }
  }

  std::mt19937_64 random_;
  std::vector<Session> session_;
  Seen* seen_ = nullptr;
};

TEST(DatabaseAttachRandomTest, WhatAHolderIsToldIsNeverContradicted) {
  const char* fixed = std::getenv("KILOKV_SEED");
  const std::uint64_t first = fixed != nullptr ? std::strtoull(fixed, nullptr, 10) : 1;
  const std::uint64_t last = fixed != nullptr ? first : 300;
  RandomAttach::Seen seen;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("replay with KILOKV_SEED=" + std::to_string(seed));
    RandomAttach(seed).play(&seen);
    if (::testing::Test::HasFailure()) return;
  }
  if (fixed != nullptr) return;
  for (const int count :
       {seen.not_known, seen.queued, seen.parked, seen.partly, seen.decided, seen.resting, seen.fenced}) {
    EXPECT_GT(count, 10) << "a case that the runs hardly meet";
  }
}

}  // namespace
}  // namespace kilokv::server
