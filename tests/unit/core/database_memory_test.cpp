// A database whose data may take only so much memory.

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/shown_limit.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

using engine::Operand;
using engine::OpKind;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr DurationUs kSecond = 1000000;
constexpr int kManyRequests = 20000;  // more than the memory has room for

class DatabaseMemoryTest : public CoreFixture {
 protected:
  DatabaseMemoryTest() {
    options.memory_limit = 16 * kMiB;
    options.data_bytes_max = 8 * kMiB;
  }
  static Build put(const std::string& key, std::size_t value_bytes) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(OpKind::put, b.key(key), Operand::bytes, b.value(std::string(value_bytes, 'v')));
      b.end();
    };
  }
  static Build remove(const std::string& key) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(OpKind::del, b.key(key));
      b.end();
    };
  }
  // Puts values until one is refused. Returns how many there are.
  int fill(std::size_t value_bytes) {
    for (int i = 0; i < kManyRequests; ++i) {
      const auto sink = run(put("key" + std::to_string(i), value_bytes));
      if (sink->done) continue;
      expect_shown(*sink->failure, "raise --memory-limit", ErrorReason::memory_full);
      EXPECT_TRUE(sink->failure->not_run());
      return i;
    }
    ADD_FAILURE() << "nothing was refused";
    return kManyRequests;
  }
  // An ADD may make a key, too.
  void fill_with_keys() {
    for (int i = 0; i < kManyRequests; ++i) {
      const auto sink = run([i](engine::ColumnsBuilder& b) {
        b.begin();
        for (int j = 0; j < 100; ++j) {
          b.op(OpKind::add, b.key("key" + std::to_string(i) + "/" + std::to_string(j)), Operand::integer, 1);
        }
        b.end();
      });
      if (sink->done) continue;
      EXPECT_EQ(sink->failure->reason(), ErrorReason::memory_full);
      return;
    }
    ADD_FAILURE() << "nothing was refused";
  }
};

TEST_F(DatabaseMemoryTest, RefusesNewDataAndServesReadsAndDeletes) {
  const int count = fill(10000);
  EXPECT_GT(count, 500);
  EXPECT_LT(count, 800);
  std::uint64_t data = 0;
  for (const MemoryOwner& owner : database->status().memory) {
    if (owner.name == "table" || owner.name == "keys" || owner.name == "values") data += owner.bytes;
    EXPECT_EQ(owner.bound_bytes == 8 * kMiB, owner.name == "values");
  }
  EXPECT_LE(data, 8 * kMiB);
  EXPECT_GT(data, 6 * kMiB);
  fill_with_keys();
  const auto read = run([](engine::ColumnsBuilder& b) {
    b.begin();
    b.op(OpKind::get, b.key("key0"));
    b.end();
  });
  EXPECT_EQ(read->at(0).reads.at(0).bytes.size(), 10000u);
  EXPECT_TRUE(run(remove("key0"))->done);
  EXPECT_TRUE(run(remove("key1"))->done);
  EXPECT_TRUE(run(remove("key2"))->done);
  EXPECT_TRUE(run(put("new", 10000))->done) << "deletes make room";
}

// Keys fill the memory. Half of them go, so new keys of the same length, or shorter, have room again.
TEST_F(DatabaseMemoryTest, NewKeysTakeThePlacesOfDeletedOnes) {
  options.checkpoint_interval_us = kSecond;
  options.snapshot_age_us_max = options.tombstone_retention_us = 0;
  reopen();
  const auto add = [this](char first, int i, std::size_t key_bytes) {
    return run([=](engine::ColumnsBuilder& b) {
      b.begin();
      for (int j = 0; j < 10; ++j) {
        const std::string number = first + std::to_string(i) + "/" + std::to_string(j);
        b.op(OpKind::add, b.key(number + std::string(key_bytes - number.size(), 'k')), Operand::integer, 1);
      }
      b.end();
    });
  };
  int full = 0;
  while (add('a', full, 500)->done) ++full;
  ASSERT_GT(full, 500);
  for (int i = 0; i < full; i += 2) {
    ASSERT_TRUE(run([=](engine::ColumnsBuilder& b) {
                  b.begin();
                  b.range_op(OpKind::delete_range, "a" + std::to_string(i) + "/", "a" + std::to_string(i) + "0", 10);
                  b.end();
                })->done);
  }
  for (int i = 0; i < 10; ++i) {  // tombstones go after a checkpoint, in steps
    ASSERT_TRUE(run(remove("none"))->done);
    sim.scheduler.run_for(2 * kSecond);
  }
  for (int i = 0; i < full / 3; ++i) ASSERT_TRUE(add('b', i, 490)->done) << i << " of " << full;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(add('c', i, 20)->done) << i;
}

// What waits in the queue has its memory already.
TEST_F(DatabaseMemoryTest, ReservesForWhatIsAdmitted) {
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 1000; ++i) sinks.push_back(submit(put("key" + std::to_string(i), 10000)));
  const auto refused = static_cast<int>(
      std::count_if(sinks.begin(), sinks.end(), [](const auto& sink) { return sink->failure.has_value(); }));
  EXPECT_GT(refused, 150);
  EXPECT_LT(refused, 500);
  settle();
  for (const auto& sink : sinks) EXPECT_TRUE(sink->ended());
  EXPECT_EQ(fatal.has_value(), false);
}

// The answers take longer than the batches: no more batches begin than the memory has room for.
TEST_F(DatabaseMemoryTest, BatchesThatAreNotAnsweredHaveABound) {
  options.batch_max_bytes = 64 << 10;
  options.batch_max_reads = 64;
  options.pools_bytes_max = 64 << 10;
  options.batch_in_flight_max = 64;  // their number is another bound, which is not reached here
  options.batch_max_delay_us = 0;
  reopen();
  sim.scheduler.hold("answer");
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 100; ++i) {
    sinks.push_back(submit([](engine::ColumnsBuilder& b) {
      b.begin();
      b.guard(engine::GuardKind::bytes_equal, engine::OnFalse::fail, b.key("none"), b.value(std::string(60000, 'v')));
      b.end();
    }));
  }
  settle();
  const DatabaseStatus status = database->status();
  const auto batches = std::find_if(status.memory.begin(), status.memory.end(),
                                    [](const MemoryOwner& owner) { return owner.name == "batches"; });
  ASSERT_NE(batches, status.memory.end());
  EXPECT_LE(batches->bytes, batches->bound_bytes);
  constexpr std::uint64_t kBoundOfFour = 2490368;  // the bound where four are in flight
  EXPECT_LE(batches->bytes, kBoundOfFour);
  EXPECT_GT(batches->bytes, kBoundOfFour / 8);
  EXPECT_LT(status.executed_batch, options.batch_in_flight_max);
  EXPECT_GT(status.queued_transactions, 50u);
  sim.scheduler.hold("");
  settle();
  for (const auto& sink : sinks) EXPECT_EQ(sink->outcome(0), engine::Outcome::guard_failed);
}

// Otherwise somebody new would wait for the answers of all that were executed before.
TEST_F(DatabaseMemoryTest, FewBatchesAreNotAnswered) {
  options.batch_max_transactions = 1;
  reopen();
  const BatchNumber before = database->status().executed_batch;
  sim.scheduler.hold("answer");
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < 20; ++i) sinks.push_back(submit(put("key", 5)));
  settle();
  const DatabaseStatus status = database->status();
  EXPECT_EQ(status.durable_batch, status.executed_batch);
  EXPECT_EQ(status.executed_batch - before, options.batch_in_flight_max + 1);
  sim.scheduler.hold("");
  settle();
  for (const auto& sink : sinks) EXPECT_EQ(sink->outcome(0), engine::Outcome::committed);
}

TEST_F(DatabaseMemoryTest, StartsAgainWhenItIsFull) {
  const int count = fill(3000);
  reopen();
  EXPECT_EQ(database->status().engine.records, static_cast<std::uint64_t>(count));
  EXPECT_TRUE(run(remove("key0"))->done);
}

TEST_F(DatabaseMemoryTest, SaysAtTheStartWhatItNeeds) {
  fill(10000);
  options.memory_limit = 8 * kMiB;
  options.data_bytes_max = 4 * kMiB;
  const auto opened = try_open(&log, sim.environment());
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().reason(), ErrorReason::memory_full);
  EXPECT_NE(opened.status().message().find("bytes needed by the stored data"), std::string::npos);
  EXPECT_NE(opened.status().message().find("raise --memory-limit"), std::string::npos);
}

// The log has each value by itself, and so has the memory after a restart.
TEST_F(DatabaseMemoryTest, CountsASharedValueForEachKey) {
  const auto puts = [](int count) {
    return [=](engine::ColumnsBuilder& b) {
      std::int64_t value = 0;
      for (int i = 0; i < count; ++i) {
        b.begin();
        if (i == 0) value = b.value(std::string(kMiB / 2, 'v'));
        b.op(OpKind::put, b.key("key" + std::to_string(i)), Operand::bytes, value);
        b.end();
      }
    };
  };
  EXPECT_TRUE(run(puts(20))->failure.has_value());
  EXPECT_TRUE(run(puts(10))->done);
  reopen();
  EXPECT_EQ(database->status().engine.records, 10u);
}

TEST_F(DatabaseMemoryTest, CountsACopiedValueForEachKey) {
  ASSERT_TRUE(run(put("key", kMiB / 2))->done);
  int copies = 0;
  for (; copies < 100; ++copies) {
    const auto sink = run([copies](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(OpKind::get, b.key("key"));
      b.op(OpKind::put, b.key("copy" + std::to_string(copies)), Operand::get, 0);
      b.end();
    });
    if (!sink->done) {
      EXPECT_EQ(sink->failure->reason(), ErrorReason::memory_full);
      break;
    }
  }
  EXPECT_GT(copies, 8);
  EXPECT_LT(copies, 16);
  reopen();
  EXPECT_EQ(database->status().engine.records, static_cast<std::uint64_t>(copies) + 1);
}

// What is reserved for copies grows with the largest value.
TEST_F(DatabaseMemoryTest, ALargerValueMakesTheReservedCopiesLarger) {
  ASSERT_TRUE(run(put("key", 1000))->done);
  const auto copy = submit([](engine::ColumnsBuilder& b) {
    b.begin();
    b.op(OpKind::get, b.key("key"));
    for (int i = 0; i < 5; ++i) b.op(OpKind::put, b.key("copy" + std::to_string(i)), Operand::get, 0);
    b.end();
  });
  EXPECT_TRUE(submit(put("key", 2 * kMiB))->failure.has_value()) << "with its five copies it does not fit";
  settle();
  EXPECT_TRUE(copy->done);
}

// A scan that nobody goes on with holds what was overwritten. If only writes come, and all are refused, there is no
// batch that could end it.
TEST_F(DatabaseMemoryTest, AScanThatIsLeftDoesNotRefuseWritesForEver) {
  const int count = fill(100000);
  ScanRequest scan{.from = "key", .to = "", .limit = 1, .boundary = {}, .keep_boundary = true};
  bool read = false;
  database->scan(std::move(scan), [&](const Result<ScanPage>& page) { read = page.ok(); });
  settle();
  ASSERT_TRUE(read);
  ASSERT_TRUE(run(remove("key0"))->done);
  ASSERT_TRUE(run(put("key0", 100000))->failure.has_value()) << "the scan still holds the old value";
  EXPECT_GT(count, 10);
  sim.scheduler.run_for(2 * options.snapshot_age_us_max);
  EXPECT_TRUE(run(put("key0", 100000))->done);
}

TEST_F(DatabaseMemoryTest, GivesBackWhatItKeepsForLater) {
  const auto batches = [this] {
    for (const MemoryOwner& owner : database->status().memory) {
      if (owner.name == "batches") return owner.bytes;
    }
    return std::uint64_t{0};
  };
  for (int i = 0; i < 4; ++i) run(put("key", 1000000));
  const std::uint64_t kept = batches();
  EXPECT_GT(kept, kMiB);
  sim.scheduler.run_for(10000000);
  EXPECT_LT(batches() + kMiB, kept);
}

}  // namespace
}  // namespace kilokv::server
