// A watch gives every write of its range once, in order, from any position, however its answers are cut.
#include "server/core/reads/watch_cursor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/fake_log.hpp"

namespace kilokv::server {
namespace {

using Write = FakeLog::Write;

// Batches of transactions, some of which write several keys, or none. Versions have gaps.
void fill(std::mt19937_64* random, FakeLog* log) {
  const std::uint64_t batches = 1 + (*random)() % 12;
  for (std::uint64_t i = 0; i < batches; ++i) {
    std::vector<Write> writes;
    const Version next = log->newest().next_version;
    const std::uint64_t transactions = 1 + (*random)() % 6;
    for (std::uint64_t t = 0; t < transactions; ++t) {
      const auto count = static_cast<std::uint32_t>((*random)() % 4);
      for (std::uint32_t w = 1; w <= count; ++w) {
        writes.push_back({std::string(1, static_cast<char>('a' + (*random)() % 6)), next + t, w});
      }
    }
    log->append(std::move(writes), transactions * (1 + (*random)() % 3));
  }
}

std::vector<Write> expected(const FakeLog& log, const WatchPosition& after, const std::string& from,
                            const std::string& to) {
  std::vector<Write> all;
  for (const FakeLog::Batch& batch : log.batches()) {
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
std::vector<Write> watched(const FakeLog& log, WatchPosition after, const std::string& from, const std::string& to,
                           std::uint64_t bytes_max, std::mt19937_64* random) {
  std::vector<Write> all;
  for (;;) {
    const auto reader = log.open();
    WatchCursor cursor(reader.get(), from, to);
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
    FakeLog log;
    fill(&random, &log);
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
  FakeLog log;
  fill(&random, &log);
  const auto reader = log.open();
  WatchCursor cursor(reader.get(), "", "");
  ASSERT_TRUE(cursor.start(nullptr, log.newest()).ok());
  std::size_t count = 0;
  const auto visit = [&](const StoredRecord&, const LoggedBatch&) { ++count; };
  EXPECT_TRUE(*cursor.advance(log.newest().batch, 1000, visit));
  EXPECT_EQ(count, 0u);
  const Version next = log.newest().next_version;
  log.append({{"a", next, 1}}, 1);
  EXPECT_TRUE(*cursor.advance(log.newest().batch, 1000, visit));
  EXPECT_EQ(count, 1u);
}

TEST(WatchCursor, WhatIsTrimmedIsNeverSkipped) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    FakeLog log;
    fill(&random, &log);
    const BatchNumber first = 1 + random() % log.newest().batch;
    log.trim(first);
    const Version oldest = log.batches()[first - 1].head.header.first_version;
    const WatchPosition after{random() % log.newest().next_version, 0};
    const auto reader = log.open();
    WatchCursor cursor(reader.get(), "", "");
    const Status status = cursor.start(&after, log.newest());
    const bool is_there = after.version + 1 >= oldest;
    ASSERT_EQ(status.ok(), is_there) << "seed " << seed << ": " << after.version << ", oldest " << oldest;
    if (is_there) continue;
    EXPECT_EQ(status.code(), StatusCode::aborted);
    EXPECT_NE(status.message().find("from version " + std::to_string(oldest - 1)), std::string::npos);
  }
}

// The log may be trimmed while the cursor searches its place. Then it knows less of what lies before.
TEST(WatchCursor, WhatIsTrimmedDuringTheSearchIsNeverSkipped) {
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 random(seed);
    FakeLog log;
    while (log.newest().batch < 12) fill(&random, &log);
    const WatchPosition after{random() % log.newest().next_version, 0};
    std::uint64_t reads_left = random() % 5;
    BatchNumber first = 1 + random() % 3;
    log.trim(first);
    log.before_read = [&] {
      if (reads_left-- > 0) return;
      reads_left = random() % 3;
      first = std::min(first + random() % 6, log.newest().batch);
      log.trim(first);
    };
    const auto reader = log.open();
    WatchCursor cursor(reader.get(), "", "");
    const Status started = cursor.start(&after, log.newest());
    std::vector<Write> given;
    Result<bool> caught_up = started.ok() ? Result<bool>(false) : Result<bool>(started);
    while (caught_up.ok() && !*caught_up) {
      caught_up = cursor.advance(log.newest().batch, 1 << 20, [&](const StoredRecord& write, const LoggedBatch&) {
        given.push_back({std::string(write.key), write.version, 0});
      });
    }
    std::vector<Write> wanted = expected(log, after, "", "");
    for (Write& write : wanted) write.index = 0;
    if (caught_up.ok()) {
      ASSERT_EQ(given, wanted) << "seed " << seed;
    } else {
      ++refused;
      ASSERT_EQ(caught_up.status().reason(), ErrorReason::watch_too_old);
      given.resize(std::min(given.size(), wanted.size()));
      ASSERT_TRUE(std::equal(given.begin(), given.end(), wanted.begin())) << "seed " << seed;
    }
  }
  EXPECT_GT(refused, 200u);
  EXPECT_LT(refused, 1800u);
}

// A database that was just restored has a position, and no log.
TEST(WatchCursor, AnEmptyLogHasOnlyItsEnd) {
  const FakeLog log;
  const auto reader = log.open();
  WatchCursor cursor(reader.get(), "", "");
  Position newest;
  newest.batch = 7;
  newest.next_version = 100;
  const WatchPosition end{99, 0}, before{98, 0};
  EXPECT_TRUE(cursor.start(&end, newest).ok());
  const Status status = cursor.start(&before, newest);
  EXPECT_EQ(status.reason(), ErrorReason::watch_too_old);
  EXPECT_EQ(status.violation()->limit, "99 or greater");
}

TEST(WatchCursor, WhatIsTrimmedWhileItWatchesEndsIt) {
  std::mt19937_64 random(3);
  FakeLog log;
  while (log.newest().batch < 4) fill(&random, &log);
  const WatchPosition begin{};
  const auto reader = log.open();
  WatchCursor cursor(reader.get(), "", "");
  ASSERT_TRUE(cursor.start(&begin, log.newest()).ok());
  log.trim(3);
  const Result<bool> lost = cursor.advance(log.newest().batch, 1000, [](const StoredRecord&, const LoggedBatch&) {});
  EXPECT_EQ(lost.status().code(), StatusCode::aborted);
}

TEST(WatchCursor, APositionInTheFutureIsRefused) {
  std::mt19937_64 random(3);
  FakeLog log;
  fill(&random, &log);
  const WatchPosition future{log.newest().next_version, 0};
  const auto reader = log.open();
  WatchCursor cursor(reader.get(), "", "");
  EXPECT_EQ(cursor.start(&future, log.newest()).violation()->field, "after.version");
}

// A transaction whose writes do not fit into one answer is marked until its last write.
TEST(WatchCursor, ACutTransactionIsMarked) {
  FakeLog log;
  log.append({{"a", 1, 1}, {"b", 1, 2}, {"c", 1, 3}, {"d", 2, 1}}, 2);
  const WatchPosition begin{};
  const auto reader = log.open();
  WatchCursor cursor(reader.get(), "", "");
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
