// Very many keys that expire, beside clients: how long clients wait, and how long the keys stay. Batches and syncs take
// time on the virtual clock.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "server/core/pipeline/expiry_pace.hpp"
#include "tests/support/forwarding_engine.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

constexpr DurationUs kSecond = 1000000;
constexpr DurationUs kTransactionUs = 2;  // so long takes the execution of each

class TakesTime : public ForwardingEngine {
 public:
  TakesTime(std::unique_ptr<engine::Engine> engine, SimClock* clock)
      : ForwardingEngine(std::move(engine)), clock_(clock) {}
  Status execute(const engine::BatchHeader& header, const engine::TransactionColumns& columns,
                 const engine::Column<std::uint8_t>& expires, engine::BatchResults* results,
                 engine::WriteColumns* writes) override {
    clock_->advance(static_cast<DurationUs>(columns.size()) * kTransactionUs);
    return ForwardingEngine::execute(header, columns, expires, results, writes);
  }

 private:
  SimClock* const clock_;
};

class SyncsTakeTime : public MemoryLog {
 public:
  explicit SyncsTakeTime(SimClock* clock) : clock_(clock) {}
  Status append(std::span<const LogRecord> records) override {
    clock_->advance(sync_us);
    return MemoryLog::append(records);
  }

  DurationUs sync_us = 0;

 private:
  SimClock* const clock_;
};

class DatabaseExpiriesTest : public CoreFixture {
 protected:
  DatabaseExpiriesTest() {
    wrap_engine = [this](std::unique_ptr<engine::Engine> engine) {
      return std::make_unique<TakesTime>(std::move(engine), &sim.clock);
    };
  }
  void SetUp() override { open(&slow_log, sim.environment()); }
  void TearDown() override { database.reset(); }  // it uses the log

  static Build put(const std::string& prefix, int count, DurationUs ttl_us) {
    return [=](engine::ColumnsBuilder& b) {
      for (int i = 0; i < count; ++i) {
        b.begin();
        b.op(engine::OpKind::put, b.key(prefix + std::to_string(i)), engine::Operand::integer, 7);
        b.expire(engine::Expiry::after, ttl_us);
        b.end();
      }
    };
  }
  // Writes keys that all expire at one moment, and waits until a moment before.
  void write_due(int count) {
    const TimeUs due_us = sim.clock.wall_us() + 10 * kSecond;
    for (int i = 0; i < count; i += 5000) {
      run([=](engine::ColumnsBuilder& b) {
        for (int k = i; k < i + 5000; ++k) {
          b.begin();
          b.op(engine::OpKind::put, b.key(std::to_string(k)), engine::Operand::integer, 7);
          b.expire(engine::Expiry::at, due_us);
          b.end();
        }
      });
    }
    sim.scheduler.run_for(due_us - 1 - sim.clock.wall_us());
    ASSERT_EQ(database->status().expired, 0u);
  }
  // One worker runs, or the clock moves a little.
  void step() {
    if (!sim.scheduler.run_one()) sim.clock.advance(10);
  }
  // Until all keys that are due have expired. Returns how long that took.
  DurationUs run_until_expired(std::uint64_t count, const std::function<void()>& meanwhile = {}) {
    const TimeUs begin_us = sim.clock.monotonic_us();
    while (database->status().expired < count && sim.clock.monotonic_us() - begin_us < 60 * kSecond) {
      if (meanwhile) meanwhile();
      step();
    }
    return sim.clock.monotonic_us() - begin_us;
  }

  SyncsTakeTime slow_log{&sim.clock};
};

TEST_F(DatabaseExpiriesTest, AClientWaitsForAShortBatchOfExpiries) {
  constexpr int kKeys = 100000;
  write_due(kKeys);
  DurationUs longest_us = 0;
  int answered = 0;
  TimeUs next_us = sim.clock.monotonic_us() + 5000, since_us = 0;
  std::shared_ptr<RecordingSink> sink;
  const DurationUs took_us = run_until_expired(kKeys, [&] {
    const TimeUs now = sim.clock.monotonic_us();
    if (sink && sink->done) {
      longest_us = std::max(longest_us, now - since_us);
      ++answered;
      sink = nullptr;
      next_us = now + 1000 + static_cast<DurationUs>(sim.random.next() % 1000);
    }
    if (!sink && now >= next_us) {
      sink = submit(add("account", 1));
      since_us = now;
    }
  });
  EXPECT_GT(answered, 50);
  EXPECT_LE(longest_us, 800) << "for the batch that runs, and perhaps for another one before its sync";
  EXPECT_LE(took_us, kKeys * kTransactionUs * 3 / 2) << "clients have little work";
}

// What clients did before, when no key was due, counts for nothing.
TEST_F(DatabaseExpiriesTest, TheFirstBatchIsShort) {
  write_due(20000);
  run_until_expired(1);
  EXPECT_LE(database->status().expired, static_cast<std::uint64_t>(ExpiryPace::kLateBatchUs / kTransactionUs));
}

TEST_F(DatabaseExpiriesTest, ExpiriesKeepUpWithClientsThatWriteAllTheTime) {
  constexpr int kKeys = 4000;
  std::size_t most = 0;
  DurationUs lag_us = 0;
  for (int round = 0; round < 50; ++round) {
    const auto sink = submit(put(std::to_string(round) + "/", kKeys, 10000));
    while (!sink->done) {
      step();
      most = std::max(most, database->status().engine.expiring);
      lag_us = std::max(lag_us, database->status().expiry_lag_us);
    }
  }
  EXPECT_GT(database->status().expired, 40u * kKeys);
  EXPECT_LE(most, 6u * kKeys);
  EXPECT_LE(lag_us, 60000) << "a few batches of clients";
}

TEST_F(DatabaseExpiriesTest, ASlowDiskMakesBatchesOfExpiriesLarger) {
  constexpr int kKeys = 20000;
  write_due(kKeys);
  slow_log.sync_us = 20000;
  EXPECT_LE(run_until_expired(kKeys), kSecond / 2);
}

// The other places are for clients. Otherwise they would wait for another sync.
TEST_F(DatabaseExpiriesTest, ExpiriesThatWaitForASyncLeaveAPlaceToClients) {
  for (const std::uint32_t in_flight_max : {2u, 4u}) {
    SCOPED_TRACE(in_flight_max);
    options.batch_in_flight_max = in_flight_max;
    open(&slow_log, sim.environment());
    write_due(20000);
    sim.scheduler.hold("log");
    const BatchNumber before = database->status().executed_batch;
    sim.scheduler.run_for(5000);
    EXPECT_EQ(database->status().executed_batch, before + in_flight_max / 2);
    const auto sink = submit(add("account", 1));
    sim.scheduler.run_for(1000);
    EXPECT_EQ(database->status().executed_batch, before + in_flight_max / 2 + 1);
    sim.scheduler.hold("");
    settle();
    EXPECT_TRUE(sink->done);
    run_until_expired(20000);
    sim.scheduler.run_for(kSecond);
    EXPECT_EQ(database->status().expired, 20000u);
  }
}

// Else batches of expiries would pile up in memory while one large answer is sent.
TEST_F(DatabaseExpiriesTest, ExpiriesWaitForTheirAnswers) {
  write_due(20000);
  sim.scheduler.hold("answer");
  const BatchNumber before = database->status().executed_batch;
  sim.scheduler.run_for(kSecond);
  EXPECT_LE(database->status().executed_batch, before + 3);
  sim.scheduler.hold("");
  sim.scheduler.run_for(kSecond);
  EXPECT_EQ(database->status().expired, 20000u);
}

// However many keys a batch takes, a replay deletes the same keys, and the others go after it.
TEST_F(DatabaseExpiriesTest, AReplayExpiresTheSameKeys) {
  write_due(20000);
  run_until_expired(5000);
  const Hash128 state_hash = database->status().state_hash;  // of what is in the log
  EXPECT_GE(slow_log.expired(), 4000u);
  EXPECT_LT(slow_log.expired(), 20000u);
  open(&slow_log, sim.environment());
  EXPECT_EQ(database->status().state_hash, state_hash);
  sim.scheduler.run_for(kSecond);
  EXPECT_EQ(slow_log.expired(), 20000u) << "each once";
  EXPECT_EQ(integer("7"), 0);
}

}  // namespace
}  // namespace kilokv::server
