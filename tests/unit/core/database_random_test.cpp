// Random clients over a core that crashes at random steps: whatever the interleaving, every request is applied once,
// nothing answered is lost, no cent disappears. A failure prints the seed; KILOKV_SEED=<seed> replays it alone.

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Outcome;

constexpr int kAccounts = 5;
constexpr std::int64_t kOpening = 100;
constexpr int kTransactions = 4;  // of a request

std::string account(int i) { return "account" + std::to_string(i); }

class RandomCore : public CoreFixture {
 public:
  explicit RandomCore(std::uint64_t seed) : CoreFixture(seed), random_(seed * 7919 + 1) {
    options.batch_max_transactions = 1 + pick(12);
    options.batch_in_flight_max = 1 + pick(3);
    options.checkpoint_interval_us = 50000;
    options.session_lease_us_default = 3600000000;
    options.shadow_rate = 0.25;
    options.tombstone_retention_us = options.snapshot_age_us_max;
  }
  void TestBody() override {}

  void play() {
    open();
    for (int i = 0; i < kAccounts; ++i) run(add(account(i), kOpening));
    for (int i = 0; i < 3; ++i) clients_.push_back({open_session(), "counter" + std::to_string(i), 1, 0, {}, 0});
    for (int step = 0; step < 120; ++step) act();
    finish();
  }

 private:
  struct Pending {
    Build build;
    std::shared_ptr<RecordingSink> sink;
    std::map<std::uint32_t, RecordingSink::Answer> answered;  // by any attempt
  };
  struct Client {
    SessionId session;
    std::string counter;
    std::uint64_t next = 1, acknowledged = 0;
    std::map<std::uint64_t, Pending> pending;
    std::int64_t requests = 0;
  };

  std::uint32_t pick(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }

  // Counts itself, moves money (refused when short, or waiting for it), and touches a key that comes and goes.
  Build request(const Client& client) {
    const int from = static_cast<int>(pick(kAccounts)), to = static_cast<int>(pick(kAccounts));
    const std::int64_t amount = 1 + pick(150);
    const bool wait = pick(2) == 0;
    const std::int64_t timeout = wait ? pick(3) * 40000 : 0;
    const std::string counter = client.counter;
    const std::string fleeting = "fleeting" + std::to_string(pick(3));
    return [=](engine::ColumnsBuilder& b) {
      add(counter, 1)(b);
      b.begin(0, timeout);
      const std::uint32_t source = b.key(account(from));
      b.guard(engine::GuardKind::greater_equal, wait ? engine::OnFalse::wait : engine::OnFalse::fail, source, amount);
      b.op(engine::OpKind::add, source, engine::Operand::integer, -amount);
      b.op(engine::OpKind::add, b.key(account(to)), engine::Operand::integer, amount);
      b.end();
      b.begin();
      b.op(engine::OpKind::put, b.key(fleeting), engine::Operand::bytes, b.value("value"));
      b.end();
      b.begin();
      b.op(engine::OpKind::del, b.key(fleeting));
      b.end();
    };
  }

  void send(Client* client, std::uint64_t number) {
    Pending& pending = client->pending.at(number);
    pending.sink = submit(pending.build, client->session, number, client->acknowledged);
  }

  void act() {
    Client& client = clients_[pick(static_cast<std::uint32_t>(clients_.size()))];
    switch (pick(10)) {
      case 0: return crash();
      case 1: return sim.scheduler.run_for(pick(60000));
      case 2:  // sent twice, as an impatient client does
        if (!client.pending.empty()) {
          collect();
          if (!client.pending.empty()) send(&client, client.pending.begin()->first);
        }
        return;
      case 3:
      case 4:
      case 5: {
        const std::uint64_t number = client.next++;
        client.pending[number].build = request(client);
        ++client.requests;
        return send(&client, number);
      }
      default:
        for (std::uint32_t steps = pick(8); steps > 0 && sim.scheduler.run_one(); --steps) {
        }
        return collect();
    }
  }

  void crash() {
    collect();
    for (Client& client : clients_) {
      for (auto& [number, pending] : client.pending) pending.sink.reset();
    }
    reopen();
    for (Client& client : clients_) {
      for (auto& [number, pending] : client.pending) send(&client, number);
    }
  }

  // A later attempt must tell the same of what an earlier one told.
  void collect() {
    for (Client& client : clients_) {
      for (auto it = client.pending.begin(); it != client.pending.end();) {
        Pending& pending = it->second;
        if (pending.sink == nullptr) {
          ++it;
          continue;
        }
        ASSERT_FALSE(pending.sink->failure) << pending.sink->failure->message();
        for (const auto& [index, answer] : pending.sink->answers) {
          const auto [known, first] = pending.answered.emplace(index, answer);
          if (first) continue;
          EXPECT_EQ(known->second.result.outcome, answer.result.outcome);
          EXPECT_EQ(known->second.result.version, answer.result.version);
          EXPECT_EQ(known->second.result.batch, answer.result.batch);
          EXPECT_EQ(known->second.result.rank, answer.result.rank);
        }
        if (pending.sink->done) {
          EXPECT_EQ(pending.answered.size(), static_cast<std::size_t>(kTransactions));
          EXPECT_EQ(pending.answered.at(0).result.outcome, Outcome::committed);
          it = client.pending.erase(it);
        } else {
          ++it;
        }
      }
      client.acknowledged = client.pending.empty() ? client.next - 1 : client.pending.begin()->first - 1;
    }
  }

  void finish() {
    for (int i = 0; i < 100; ++i) {
      sim.scheduler.run_for(20000);
      collect();
    }
    if (pick(2) == 0) crash();
    std::int64_t total = 0;
    for (int i = 0; i < kAccounts; ++i) {
      const std::int64_t balance = integer(account(i));
      EXPECT_GE(balance, 0);
      total += balance;
    }
    EXPECT_EQ(total, kAccounts * kOpening);
    for (const Client& client : clients_) {
      EXPECT_TRUE(client.pending.empty());
      EXPECT_EQ(integer(client.counter), client.requests);
    }
    EXPECT_EQ(database->status().parked, 0u);
    EXPECT_EQ(log.reserved(), 0u);
    reopen();  // verifies the state hash
    EXPECT_FALSE(fatal);
  }

  std::mt19937_64 random_;
  std::vector<Client> clients_;
};

TEST(DatabaseRandomTest, EveryRequestIsAppliedOnceWhateverCrashes) {
  const char* fixed = std::getenv("KILOKV_SEED");
  const std::uint64_t first = fixed != nullptr ? std::strtoull(fixed, nullptr, 10) : 1;
  const std::uint64_t last = fixed != nullptr ? first : 300;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE("replay with KILOKV_SEED=" + std::to_string(seed));
    RandomCore(seed).play();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace kilokv::server
