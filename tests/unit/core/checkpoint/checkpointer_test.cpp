// How much a checkpoint takes at a time, and what happens where the disk would not hold it.
#include <algorithm>

#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

constexpr DurationUs kSecond = 1000000;

class WatchedLog : public MemoryLog {
 public:
  Status checkpoint_begin() override {
    ++begins;
    if (full)
      return Status::exhausted(ErrorReason::disk_full, {"disk", "0 bytes free", "1 byte for a checkpoint", ""},
                               kSecond);
    return MemoryLog::checkpoint_begin();
  }
  Status append(std::span<const LogRecord> records) override {
    Status status = MemoryLog::append(records);
    if (status.ok()) next_version = records.back().next_version;
    return status;
  }
  Status checkpoint_records(std::span<const StoredRecord> records) override {
    std::uint64_t bytes = 0;
    for (const StoredRecord& record : records) {
      bytes += record.key.size() + record.bytes.size();
      EXPECT_LT(record.version, next_version) << "a batch that is not durable";
    }
    slice_bytes.push_back(bytes);
    return MemoryLog::checkpoint_records(records);
  }
  void watch_sessions(const std::function<std::uint64_t()>& stored_bytes) override { session_bytes = stored_bytes; }

  LogUsage usage() const override {
    LogUsage usage = MemoryLog::usage();
    usage.short_of_space = is_short;
    usage.bytes_since_checkpoint = since_checkpoint;
    return usage;
  }

  bool full = false;
  bool is_short = false;
  std::uint64_t since_checkpoint = 0;
  int begins = 0;
  Version next_version = 1;  // after the last durable batch
  std::vector<std::uint64_t> slice_bytes;
  std::function<std::uint64_t()> session_bytes;
};

class CheckpointerTest : public CoreFixture {
 protected:
  void SetUp() override {
    options.checkpoint_interval_us = kSecond;
    open(&watched, sim.environment());
  }
  void TearDown() override { database.reset(); }

  static Build put(const std::string& key, std::size_t bytes) {
    return [=](engine::ColumnsBuilder& b) {
      b.begin();
      b.op(engine::OpKind::put, b.key(key), engine::Operand::bytes, b.value(std::string(bytes, 'v')));
      b.end();
    };
  }

  WatchedLog watched;
};

TEST_F(CheckpointerTest, ASliceEndsAtAMebibyte) {
  constexpr std::uint64_t kMebibyte = 1 << 20, kValueBytes = 300000;
  for (int i = 0; i < 20; ++i) run(put("large" + std::to_string(i), kValueBytes));
  for (int i = 0; i < 20; ++i) run(put("small" + std::to_string(i), 10));
  run(put("huge", 3 * kMebibyte));
  sim.scheduler.run_for(2 * kSecond);
  EXPECT_EQ(watched.checkpoint(), database->status().durable_batch);
  EXPECT_EQ(watched.stored_records(), 41u);
  ASSERT_FALSE(watched.slice_bytes.empty());
  std::sort(watched.slice_bytes.begin(), watched.slice_bytes.end());
  EXPECT_LE(watched.slice_bytes.back(), 4 * kMebibyte);  // the huge one is taken whole
  ASSERT_GE(watched.slice_bytes.size(), 5u);
  EXPECT_LE(watched.slice_bytes[watched.slice_bytes.size() - 2], kMebibyte + kValueBytes + 100);
}

// The checkpoint lets the log drop what it covers.
TEST_F(CheckpointerTest, ADiskThatIsShortOfSpaceGetsACheckpointEarly) {
  options.checkpoint_interval_us = 3600 * kSecond;
  open(&watched, sim.environment());
  run(put("a", 10));
  watched.since_checkpoint = 1 << 20;
  sim.scheduler.run_for(5 * kSecond);
  EXPECT_EQ(watched.begins, 0);
  watched.is_short = true;
  watched.since_checkpoint -= 1;  // too little to be worth a checkpoint
  sim.scheduler.run_for(5 * kSecond);
  EXPECT_EQ(watched.begins, 0);
  watched.since_checkpoint += 1;
  sim.scheduler.run_for(kSecond);
  EXPECT_EQ(watched.begins, 1);
}

// Otherwise a crash could leave a part of a batch that was never logged.
TEST_F(CheckpointerTest, ASliceWaitsUntilItsBatchesAreDurable) {
  options.checkpoint_interval_us = 1000;
  open(&watched, sim.environment());
  for (int i = 0; i < 2000; ++i) {
    submit(add("key" + std::to_string(i % 7), 1));
    for (int step = 0; step < 5; ++step) sim.scheduler.run_one();
    sim.clock.advance(kSecond / 10);
  }
  settle();
  EXPECT_GT(watched.begins, 50);
  EXPECT_GT(watched.slice_bytes.size(), 50u);
}

TEST_F(CheckpointerTest, WaitsUntilTheDiskHasRoom) {
  watched.full = true;
  run(add("a", 1));
  sim.scheduler.run_for(20 * kSecond);
  EXPECT_GT(watched.begins, 1);
  EXPECT_LT(watched.begins, 10);
  EXPECT_FALSE(fatal);
  EXPECT_EQ(watched.checkpoint(), 0u);
  EXPECT_TRUE(run(add("a", 1))->done);
  watched.full = false;
  sim.scheduler.run_for(10 * kSecond);
  EXPECT_EQ(watched.checkpoint(), database->status().durable_batch);
}

TEST_F(CheckpointerTest, AShutdownDoesNotWaitForRoom) {
  watched.full = true;
  run(add("a", 1));
  bool done = false;
  database->drain([] {}, [&] { done = true; });
  settle();
  EXPECT_TRUE(done);
  EXPECT_FALSE(fatal);
}

TEST_F(CheckpointerTest, TheLogLearnsWhatSessionsStore) {
  EXPECT_EQ(watched.session_bytes(), 0u);
  EXPECT_TRUE(run(add("a", 1), open_session(), 1)->done);
  EXPECT_GT(watched.session_bytes(), 0u);
  database.reset();
  EXPECT_EQ(watched.session_bytes, nullptr);
}

}  // namespace
}  // namespace kilokv::server
