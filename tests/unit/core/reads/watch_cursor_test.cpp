// A watch gives every write of its range once, in order, from any position, however its answers are cut.
#include "server/core/reads/watch_cursor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace kilokv::server {
namespace {

struct Write {
  std::string key;
  Version version;
  std::uint32_t index;  // among the writes of its version, from 1; 0: not known
  friend bool operator==(const Write&, const Write&) = default;
};

struct Logged {
  LoggedBatch head;
  std::vector<Write> writes;
};

// Batches 1 to n. Those before `first` are trimmed.
struct Log {
  std::vector<Logged> batches;
  BatchNumber first = 1;

  Position newest() const {
    if (batches.empty()) return {};
    Position position;
    position.batch = batches.back().head.header.number;
    position.next_version = batches.back().head.next_version;
    return position;
  }
};

class Reader final : public LogReader {
 public:
  explicit Reader(const Log* log) : log_(log) {}
  BatchNumber first_batch() const override { return log_->batches.empty() ? 0 : log_->first; }
  Result<bool> read(BatchNumber batch) override {
    if (batch < log_->first || batch > log_->batches.size()) return false;
    at_ = &log_->batches[batch - 1];
    return true;
  }
  const LoggedBatch& batch() const override { return at_->head; }
  void visit(const std::function<bool(const StoredRecord&)>& visit) const override {
    for (const Write& write : at_->writes) {
      StoredRecord record;
      record.key = write.key;
      record.version = write.version;
      if (!visit(record)) return;
    }
  }

 private:
  const Log* const log_;
  const Logged* at_ = nullptr;
};

// Batches of transactions, some of which write several keys, or none. Versions have gaps.
Log random_log(std::mt19937_64* random) {
  Log log;
  Version next = 1;
  const std::uint64_t batches = 1 + (*random)() % 12;
  for (BatchNumber number = 1; number <= batches; ++number) {
    Logged batch;
    batch.head.header = {number, static_cast<TimeUs>(number) * 1000, next};
    const std::uint64_t transactions = 1 + (*random)() % 6;
    for (std::uint64_t t = 0; t < transactions; ++t) {
      const auto writes = static_cast<std::uint32_t>((*random)() % 4);
      for (std::uint32_t i = 1; i <= writes; ++i) {
        batch.writes.push_back({std::string(1, static_cast<char>('a' + (*random)() % 6)), next + t, i});
      }
    }
    next += transactions * (1 + (*random)() % 3);
    batch.head.next_version = next;
    batch.head.bytes = 100;
    log.batches.push_back(std::move(batch));
  }
  return log;
}

std::vector<Write> expected(const Log& log, const WatchPosition& after, const std::string& from,
                            const std::string& to) {
  std::vector<Write> all;
  for (const Logged& batch : log.batches) {
    for (const Write& write : batch.writes) {
      const bool is_before = write.version < after.version ||
                             (write.version == after.version && (after.writes == 0 || write.index <= after.writes));
      if (!is_before && write.key >= from && (to.empty() || write.key < to)) all.push_back(write);
    }
  }
  return all;
}

// Watches from the position to the end, with answers of at most this size. Now and then it begins anew at its position,
// as after a lost connection.
std::vector<Write> watched(const Log& log, WatchPosition after, const std::string& from, const std::string& to,
                           std::uint64_t bytes_max, std::mt19937_64* random) {
  std::vector<Write> all;
  for (;;) {
    WatchCursor cursor(std::make_unique<Reader>(&log), from, to);
    EXPECT_TRUE(cursor.start(&after, log.newest()).ok());
    for (;;) {
      std::vector<Write> part;
      const Result<bool> caught_up =
          cursor.advance(log.newest().batch, bytes_max, [&](const StoredRecord& write, const LoggedBatch& batch) {
            EXPECT_GE(write.version, batch.header.first_version);
            EXPECT_LT(write.version, batch.next_version);
            part.push_back({std::string(write.key), write.version, 0});
          });
      EXPECT_TRUE(caught_up.ok());
      all.insert(all.end(), part.begin(), part.end());
      after = cursor.position();
      EXPECT_EQ(cursor.within_transaction() && *caught_up, false);
      if (*caught_up) {
        EXPECT_EQ(after, (WatchPosition{log.newest().next_version - 1, 0}));
        return all;
      }
      if ((*random)() % 3 == 0) break;
    }
  }
}

TEST(WatchCursor, EveryWriteOnceInOrderFromAnyPosition) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const Log log = random_log(&random);
    const std::string from(1, static_cast<char>('a' + random() % 3)), to = random() % 3 == 0 ? "" : "e";
    WatchPosition after{random() % log.newest().next_version, static_cast<std::uint32_t>(random() % 3)};
    const std::uint64_t bytes_max = random() % 4 == 0 ? 1 : 70 * (1 + random() % 5);
    std::vector<Write> wanted = expected(log, after, from, to);
    for (Write& write : wanted) write.index = 0;
    ASSERT_EQ(watched(log, after, from, to, bytes_max, &random), wanted);
  }
}

TEST(WatchCursor, WithoutAPositionItBeginsAtTheEnd) {
  std::mt19937_64 random(7);
  Log log = random_log(&random);
  WatchCursor cursor(std::make_unique<Reader>(&log), "", "");
  ASSERT_TRUE(cursor.start(nullptr, log.newest()).ok());
  std::size_t count = 0;
  const auto visit = [&](const StoredRecord&, const LoggedBatch&) { ++count; };
  EXPECT_TRUE(*cursor.advance(log.newest().batch, 1000, visit));
  EXPECT_EQ(count, 0u);
  const Version next = log.newest().next_version;
  log.batches.push_back({{{log.newest().batch + 1, 99, next}, next + 1, true, 10}, {{"a", next, 1}}});
  EXPECT_TRUE(*cursor.advance(log.newest().batch, 1000, visit));
  EXPECT_EQ(count, 1u);
}

TEST(WatchCursor, WhatIsTrimmedIsNeverSkipped) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    Log log = random_log(&random);
    log.first = 1 + random() % log.batches.size();
    const Version oldest = log.batches[log.first - 1].head.header.first_version;
    const WatchPosition after{random() % log.newest().next_version, 0};
    WatchCursor cursor(std::make_unique<Reader>(&log), "", "");
    const Status status = cursor.start(&after, log.newest());
    const bool is_there = after.version + 1 >= oldest;
    ASSERT_EQ(status.ok(), is_there) << "seed " << seed << ": " << after.version << ", oldest " << oldest;
    if (is_there) continue;
    EXPECT_EQ(status.code(), StatusCode::aborted);
    EXPECT_NE(status.message().find("from version " + std::to_string(oldest - 1)), std::string::npos);
  }
}

TEST(WatchCursor, WhatIsTrimmedWhileItWatchesEndsIt) {
  std::mt19937_64 random(3);
  Log log = random_log(&random);
  while (log.batches.size() < 4) log = random_log(&random);
  const WatchPosition begin{};
  WatchCursor cursor(std::make_unique<Reader>(&log), "", "");
  ASSERT_TRUE(cursor.start(&begin, log.newest()).ok());
  log.first = 3;
  const Result<bool> lost = cursor.advance(log.newest().batch, 1000, [](const StoredRecord&, const LoggedBatch&) {});
  EXPECT_EQ(lost.status().code(), StatusCode::aborted);
}

TEST(WatchCursor, APositionInTheFutureIsRefused) {
  std::mt19937_64 random(3);
  const Log log = random_log(&random);
  const WatchPosition future{log.newest().next_version, 0};
  WatchCursor cursor(std::make_unique<Reader>(&log), "", "");
  EXPECT_EQ(cursor.start(&future, log.newest()).violation()->field, "after.version");
}

// A transaction whose writes do not fit into one answer is marked until its last write.
TEST(WatchCursor, ACutTransactionIsMarked) {
  Log log;
  log.batches.push_back({{{1, 10, 1}, 3, false, 10}, {{"a", 1, 1}, {"b", 1, 2}, {"c", 1, 3}, {"d", 2, 1}}});
  const WatchPosition begin{};
  WatchCursor cursor(std::make_unique<Reader>(&log), "", "");
  ASSERT_TRUE(cursor.start(&begin, log.newest()).ok());
  const bool marked[] = {true, true, false, false};
  const WatchPosition positions[] = {{1, 1}, {1, 2}, {1, 3}, {2, 0}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(*cursor.advance(1, 1, [](const StoredRecord&, const LoggedBatch&) {}), i == 3);
    EXPECT_EQ(cursor.within_transaction(), marked[i]);
    EXPECT_EQ(cursor.position(), positions[i]);
  }
}

}  // namespace
}  // namespace kilokv::server
