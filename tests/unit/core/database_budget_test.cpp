// What one batch may take: log bytes, reads; and what is reserved for that, while values grow.

#include <algorithm>
#include <string>
#include <vector>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Operand;
using engine::OpKind;
using engine::Outcome;

class DatabaseBudgetTest : public CoreFixture {
 protected:
  static Build put(const std::string& key, std::size_t value_bytes) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(OpKind::put, b.key(key), Operand::bytes, b.value(std::string(value_bytes, 'v')));
      b.end();
    };
  }
  // `count` transactions, each of which reads a range.
  static Build range_gets(int count, std::uint32_t limit) {
    return [=](engine::ColumnsBuilder& b) {
      for (int i = 0; i < count; ++i) {
        b.begin();
        b.range_op(OpKind::range_get, "", "", limit);
        b.end();
      }
    };
  }
  static Build gets(int transactions, int each) {
    return [=](engine::ColumnsBuilder& b) {
      for (int i = 0; i < transactions; ++i) {
        b.begin();
        for (int j = 0; j < each; ++j) b.op(OpKind::get, b.key("a"));
        b.end();
      }
    };
  }
  // Waits until "a" is there; then copies "large" so often.
  static Build wait_and_copy(int copies) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin(0, 3600000000);
      b.guard(engine::GuardKind::exists, engine::OnFalse::wait, b.key("a"), 0);
      b.op(OpKind::get, b.key("large"));
      for (int i = 0; i < copies; ++i) b.op(OpKind::put, b.key("copy" + std::to_string(i)), Operand::get, 0);
      b.end();
    };
  }
  std::uint64_t batches_of(const Build& build) {
    const std::uint64_t before = database->status().batches;
    EXPECT_TRUE(run(build)->done);
    return database->status().batches - before;
  }
};

TEST_F(DatabaseBudgetTest, ReadsFillABatch) {
  options.batch_max_reads = 1000;
  reopen();
  run(add("a", 1));
  EXPECT_EQ(batches_of(range_gets(10, 100)), 1u);
  EXPECT_EQ(batches_of(range_gets(30, 100)), 3u);
  EXPECT_EQ(batches_of(range_gets(4, 600)), 4u);
  EXPECT_EQ(batches_of(range_gets(3, 5000)), 3u) << "one alone may exceed the limit";
  EXPECT_EQ(batches_of(gets(20, 100)), 2u);
}

TEST_F(DatabaseBudgetTest, GuardsAndDeletedRangesAreReadsToo) {
  options.batch_max_reads = 100;
  reopen();
  const auto guards = [](engine::ColumnsBuilder& b) {
    for (int i = 0; i < 10; ++i) {
      b.begin();
      for (int j = 0; j < 50; ++j) b.guard(engine::GuardKind::absent, engine::OnFalse::fail, b.key("none"), 0);
      b.end();
    }
  };
  const auto deletes = [](engine::ColumnsBuilder& b) {
    for (int i = 0; i < 10; ++i) {
      b.begin();
      b.range_op(OpKind::delete_range, "x", "y", 50);
      b.end();
    }
  };
  EXPECT_EQ(batches_of(guards), 5u);
  EXPECT_EQ(batches_of(deletes), 5u);
  options.batch_max_reads = 4000;
  reopen();
  const auto range_guards = [](engine::ColumnsBuilder& b) {
    for (int i = 0; i < 10; ++i) {
      b.begin();
      for (int j = 0; j < 5; ++j) b.range_guard(engine::GuardKind::range_unchanged, engine::OnFalse::fail, "", "", 0);
      b.end();
    }
  };
  EXPECT_EQ(batches_of(range_guards), 5u) << "they look at some keys each";
}

TEST_F(DatabaseBudgetTest, ReadsOfLargeValuesCountMore) {
  options.batch_max_reads = 1000;
  reopen();
  EXPECT_EQ(batches_of(gets(10, 100)), 1u);
  run(put("large", 4 * 16384));
  EXPECT_EQ(batches_of(gets(10, 60)), 4u) << "each counts five times, and 200 fit";
  EXPECT_EQ(batches_of(gets(10, 100)), 5u) << "a transaction returns at most 4 MiB, which counts 256";
}

TEST_F(DatabaseBudgetTest, WokenOnesKeepToTheBudget) {
  options.batch_max_bytes = 1 << 20;
  reopen();
  run(put("large", 120000));  // counts as 131,072
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 9; ++i) sinks.push_back(run(wait_and_copy(3)));
  const std::uint64_t before = database->status().batches;
  run(add("a", 1));
  for (const auto& sink : sinks) EXPECT_TRUE(sink->done);
  EXPECT_EQ(database->status().batches - before, 1u + 5u) << "two of the nine fit in a batch";
}

// What is admitted may copy a value that comes after it.
TEST_F(DatabaseBudgetTest, ALargerValueReservesForThoseThatMayCopyIt) {
  options.transaction_copies_max = 10;
  reopen();
  run(put("large", 1000));
  EXPECT_EQ(log.reserved(), 0u);
  auto waiting = run(wait_and_copy(10));
  const std::uint64_t at_1000 = log.reserved();
  EXPECT_GT(at_1000, 10000u);
  EXPECT_LT(at_1000, 20000u);
  run(put("large", 50000));
  EXPECT_EQ(log.reserved(), at_1000 + 10 * 49000u);
  log.set_reserve_limit(log.reserved() + 200000);
  auto refused = run(put("large", 100000));
  ASSERT_TRUE(refused->failure) << "ten copies of it may be written";
  EXPECT_EQ(refused->failure->code(), StatusCode::resource_exhausted);
  EXPECT_EQ(log.reserved(), at_1000 + 10 * 49000u);
  log.set_reserve_limit(UINT64_MAX);
  run(add("a", 1));
  EXPECT_EQ(waiting->outcome(0), Outcome::committed);
  EXPECT_EQ(log.reserved(), 0u);
}

TEST_F(DatabaseBudgetTest, ATransactionThatNoLogRecordHoldsIsRefused) {
  options.transaction_copies_max = 4096;
  reopen();
  run(put("large", 1 << 20));
  const auto copies = [](int count) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(OpKind::get, b.key("large"));
      for (int i = 0; i < count; ++i) b.op(OpKind::put, b.key("copy"), Operand::get, 0);
      b.end();
    };
  };
  auto sink = submit(both(add("b", 1), copies(4096)));
  ASSERT_TRUE(sink->failure);
  EXPECT_EQ(sink->failure->code(), StatusCode::invalid_argument);
  ASSERT_NE(sink->failure->violation(), nullptr);
  EXPECT_EQ(sink->failure->violation()->field, "transactions[1]");
  EXPECT_EQ(log.reserved(), 0u);
  EXPECT_EQ(database->status().queued_transactions, 0u);
}

TEST_F(DatabaseBudgetTest, ADeletedRangeIsReservedWithItsLongestKeys) {
  const auto fill = [](engine::ColumnsBuilder& b) {
    b.begin();
    for (int i = 100; i < 200; ++i) b.op(OpKind::add, b.key(std::string(1000, 'k') + std::to_string(i)));
    b.end();
  };
  run(fill);
  auto sink = submit([](engine::ColumnsBuilder& b) {
    b.begin();
    b.range_op(OpKind::delete_range, "k", "", 10000);
    b.end();
  });
  EXPECT_GT(log.reserved(), 10000 * 1024u);
  settle();
  EXPECT_EQ(sink->outcome(0), Outcome::committed);
  EXPECT_EQ(log.reserved(), 0u);
}

// Requests are used again with the memory that they have. One that was long, and was refused, must not wait in the
// queue for a short one, which counts little.
TEST_F(DatabaseBudgetTest, AShortRequestDoesNotKeepTheMemoryOfALongOne) {
  options.transaction_reads_max = 100;
  reopen();
  std::vector<std::shared_ptr<RecordingSink>> waiting;
  for (int i = 0; i < 20; ++i) {
    const auto refused = submit([](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(OpKind::put, b.key("long"), Operand::bytes, b.value(std::string(std::size_t{1} << 20, 'v')));
      b.range_op(OpKind::range_get, "k", "", 10000);
      b.end();
    });
    ASSERT_TRUE(refused->ended());
    const std::uint64_t before = database->status().queued_bytes;
    waiting.push_back(submit(add("a", 1)));
    EXPECT_LT(database->status().queued_bytes - before, 16384u);
    EXPECT_LT(capacity_bytes(*database->acquire_request()), 4u << 20) << "the long one is back, and only one is kept";
  }
  settle();
  for (const auto& sink : waiting) EXPECT_EQ(sink->outcome(0), Outcome::committed);
  EXPECT_EQ(database->status().queued_bytes, 0u);
}

// What waits counts with all the memory that it has.
TEST_F(DatabaseBudgetTest, ARequestInTheQueueCountsWithItsCapacity) {
  auto request = database->acquire_request();
  engine::ColumnsBuilder builder(&request->transactions, database->key_secret());
  for (int i = 0; i < 1000; ++i) add("k" + std::to_string(i), 1)(builder);
  const std::uint64_t held = capacity_bytes(*request);
  EXPECT_GT(held, request->transactions.memory_bytes());
  request->sink = std::make_shared<RecordingSink>();
  database->submit(std::move(request));
  EXPECT_GE(database->status().queued_bytes, held);
  settle();
}

// With the longest durations that there may be, clocks do not overflow: what should wait waits, what is due is done.
TEST_F(DatabaseBudgetTest, TheLongestDurationsOverflowNoClock) {
  options.batch_max_delay_us = options.wait_timeout_us_max = kDurationUsMax;
  options.session_lease_us_default = options.session_lease_us_max = kDurationUsMax;
  options.snapshot_age_us_max = options.tombstone_retention_us = options.checkpoint_interval_us = kDurationUsMax;
  reopen();
  const SessionId session = open_session();
  run(add("b", 1), session, 1);
  auto waiting = run(withdraw("a", 10, kDurationUsMax), session, 2);
  sim.scheduler.run_for(10000000);
  EXPECT_FALSE(waiting->ended());
  EXPECT_EQ(database->status().sessions, 1u);
  run(add("a", 10), session, 3);
  EXPECT_EQ(waiting->outcome(0), Outcome::committed);
}

}  // namespace
}  // namespace kilokv::server
