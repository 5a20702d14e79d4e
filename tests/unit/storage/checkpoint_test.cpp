#include <gtest/gtest.h>

#include "server/core/fail_point.hpp"
#include "server/storage/bytes.hpp"
#include "server/storage/store.hpp"
#include "server/storage/stored_values.hpp"
#include "tests/unit/storage/checkpoint_fixture.hpp"
#include "tests/unit/storage/child_process.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  ~CheckpointTest() override { EXPECT_TRUE(set_fail_points("").ok()); }

  // Recovers a copy, so that the directory itself stays as it is.
  RecoveredPosition recover_copy(Table* table) {
    const std::string copy = temporary_.path("copy");
    copy_directory(directory_, copy);
    auto log = open_rocksdb_log(options_for(copy));
    EXPECT_TRUE(log.ok()) << log.status().message();
    if (!log.ok()) return {};
    const Result<RecoveredPosition> position = (*log)->recover(table);
    EXPECT_TRUE(position.ok()) << position.status().message();
    return position.ok() ? *position : RecoveredPosition{};
  }

  // The format of the directory; the log is closed.
  std::uint32_t format() const {
    const auto store = Store::open(options_for(directory_), nullptr);
    std::string value;
    EXPECT_TRUE(store.ok() && (*store)->db()->Get({}, (*store)->family(Family::metadata), kFormatKey, &value).ok());
    return value.size() == sizeof(std::uint32_t) ? load<std::uint32_t>(value.data()) : 0;
  }

  test::TestFolder temporary_;
  const std::string directory_ = temporary_.path("data");
};

TEST_F(CheckpointTest, FoldsBatchesAndReplaysOnlyWhatFollows) {
  {
    OpenLog log(options_for(directory_));
    log.append(1, 20);
    ASSERT_TRUE(checkpoint(log.log.get(), 15, 15, 3).ok());
    log.append(21, 24);
  }
  Table table;
  const RecoveredPosition position = recover_copy(&table);
  EXPECT_EQ(position.batch, 24u);
  EXPECT_EQ(position.checkpoint_batch, 15u);
  EXPECT_EQ(table.batches, 9u);
  EXPECT_EQ(table.sessions.size(), 3u);
  EXPECT_EQ(table.texts, state_after(24));
}

TEST_F(CheckpointTest, ASessionMayComeInPieces) {
  {
    OpenLog log(options_for(directory_));
    log.append(1, 5);
    ASSERT_TRUE(log.log->checkpoint_begin().ok());
    StoredSession session;
    session.session.bytes[0] = 9;
    for (session.piece = 0; session.piece < 300; ++session.piece) {
      session.requests = {{.number = session.piece + 1, .digest = {}, .transactions = 2, .results = {"stored"}}};
      ASSERT_TRUE(log.log->checkpoint_session(session).ok());
    }
    ASSERT_TRUE(log.log->checkpoint_end(position_after(sample_batch(5)), {}).ok());
  }
  Table table;
  recover_copy(&table);
  ASSERT_EQ(table.sessions.size(), 300u);
  for (std::size_t i = 0; i < table.sessions.size(); ++i) {
    EXPECT_EQ(table.sessions[i].piece, i);
    EXPECT_EQ(table.sessions[i].requests.front().number, i + 1);
  }
}

// Older programs read a directory of format 1, and take the key of a further piece for damage.
TEST_F(CheckpointTest, AFurtherPieceOfASessionRaisesTheFormat) {
  {
    OpenLog log(options_for(directory_));
    log.append(1, 5);
    ASSERT_TRUE(checkpoint(log.log.get(), 5, 5, 3).ok());
  }
  EXPECT_EQ(format(), 1u);
  {
    OpenLog log(options_for(directory_));
    ASSERT_TRUE(log.log->checkpoint_begin().ok());
    StoredSession session;
    ASSERT_TRUE(log.log->checkpoint_session(session).ok());
    session.piece = 1;
    ASSERT_TRUE(log.log->checkpoint_session(session).ok());
  }
  EXPECT_EQ(format(), kAccessDatabaseFormat) << "RocksDB may flush the piece at once, so the checkpoint need not end";
  {
    OpenLog log(options_for(directory_));
    ASSERT_TRUE(checkpoint(log.log.get(), 5, 5, 3).ok());
  }
  EXPECT_EQ(format(), kAccessDatabaseFormat);
}

TEST_F(CheckpointTest, TheAccessTableIsThatOfTheLastCheckpoint) {
  for (const std::string table : {"first", "second", ""}) {
    {
      OpenLog log(options_for(directory_));
      if (log.position.batch == 0) log.append(1, 5);
      ASSERT_TRUE(log.log->checkpoint_begin().ok());
      ASSERT_TRUE(log.log->checkpoint_end(position_after(sample_batch(5)), table).ok());
    }
    const std::vector<std::string> lines = OpenLog(options_for(directory_)).transcript.lines;
    EXPECT_EQ(lines, table.empty() ? std::vector<std::string>() : std::vector{"access table " + table});
    EXPECT_EQ(format(), kAccessDatabaseFormat);
  }
}

TEST_F(CheckpointTest, MayHoldNewerRecordsThanItCovers) {
  {
    OpenLog log(options_for(directory_));
    log.append(1, 20);
    ASSERT_TRUE(checkpoint(log.log.get(), 10, 20, 0).ok());
  }
  Table table;
  EXPECT_EQ(recover_copy(&table).batch, 20u);
  EXPECT_EQ(table.texts, state_after(20));
}

TEST_F(CheckpointTest, EverythingCoveredLeavesNothingToReplay) {
  {
    OpenLog log(options_for(directory_));
    log.append(1, 5);
    ASSERT_TRUE(checkpoint(log.log.get(), 5, 5, 1).ok());
    ASSERT_TRUE(checkpoint(log.log.get(), 5, 5, 2).ok());  // again, nothing new
  }
  Table table;
  const RecoveredPosition position = recover_copy(&table);
  EXPECT_EQ(position.batch, 5u);
  EXPECT_EQ(position.next_version, sample_batch(5).next_version);
  EXPECT_EQ(position.state_hash, sample_batch(5).state_hash);
  EXPECT_EQ(table.batches, 0u);
  EXPECT_EQ(table.sessions.size(), 2u);
  OpenLog log(options_for(directory_));
  log.append(6, 8);
}

TEST_F(CheckpointTest, CountsTheBytesSinceTheLastOne) {
  std::uint64_t after = 0;
  {
    OpenLog log(options_for(directory_));
    EXPECT_EQ(log.log->usage().bytes_since_checkpoint, 0u);
    log.append(1, 10);
    EXPECT_EQ(log.log->usage().bytes_since_checkpoint, log.log->usage().log_bytes);
    ASSERT_TRUE(checkpoint(log.log.get(), 10, 10, 0).ok());
    EXPECT_EQ(log.log->usage().bytes_since_checkpoint, 0u);
    log.append(11, 12);
    after = log.log->usage().bytes_since_checkpoint;
    EXPECT_GT(after, 0u);
  }
  OpenLog log(options_for(directory_));
  EXPECT_EQ(log.log->usage().bytes_since_checkpoint, after);
}

TEST_F(CheckpointTest, DroppedRecordsAreGone) {
  {
    OpenLog log(options_for(directory_));
    log.append(1, 6);
    ASSERT_TRUE(checkpoint(log.log.get(), 6, 6, 0).ok());
    const std::vector<std::string_view> keys = {"low", "account-1"};
    ASSERT_TRUE(log.log->checkpoint_begin().ok());
    ASSERT_TRUE(log.log->checkpoint_drop(keys).ok());
    ASSERT_TRUE(log.log->checkpoint_end(position_after(sample_batch(6)), {}).ok());
  }
  Table table;
  recover_copy(&table);
  EXPECT_EQ(table.texts.count("low"), 0u);
  EXPECT_EQ(table.texts.count("account-1"), 0u);
  EXPECT_EQ(table.texts.size(), state_after(6).size() - 2);
}

// Copies the directory between the steps: whatever a copy holds is a crash there.
TEST_F(CheckpointTest, TheOlderCheckpointHoldsUntilTheNewOneCounts) {
  OpenLog log(options_for(directory_));
  log.append(1, 10);
  ASSERT_TRUE(checkpoint(log.log.get(), 8, 8, 4).ok());
  log.append(11, 30);
  const auto expect_older = [&](const char* where) {
    Table table;
    const RecoveredPosition position = recover_copy(&table);
    EXPECT_EQ(position.checkpoint_batch, 8u) << where;
    EXPECT_EQ(position.batch, 30u) << where;
    EXPECT_EQ(table.texts, state_after(30)) << where;
    ASSERT_EQ(table.sessions.size(), 4u) << where;
    for (const StoredSession& session : table.sessions) EXPECT_EQ(session.acknowledged_through, 8u) << where;
  };
  expect_older("before");
  for (const char* point : {"storage.checkpoint.records", "storage.checkpoint.flush", "storage.checkpoint.commit"}) {
    ASSERT_TRUE(set_fail_points(std::string(point) + "=error").ok());
    EXPECT_FALSE(checkpoint(log.log.get(), 25, 28, 6).ok());
    ASSERT_TRUE(set_fail_points("").ok());
    expect_older(point);
  }
  ASSERT_TRUE(set_fail_points("storage.checkpoint.committed=error").ok());
  EXPECT_FALSE(checkpoint(log.log.get(), 25, 28, 6).ok());
  Table table;
  EXPECT_EQ(recover_copy(&table).checkpoint_batch, 25u);
  EXPECT_EQ(table.texts, state_after(30));
  EXPECT_EQ(table.sessions.size(), 6u);
}

// A fuzzy checkpoint that never counted may have flushed newer records and dropped generations behind it.
TEST_F(CheckpointTest, UnfinishedCheckpointsLeaveNothingBehind) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(set_fail_points("storage.checkpoint.commit=error").ok());
    OpenLog log(options_for(directory_));
    if (round == 0) log.append(1, 10);
    EXPECT_FALSE(checkpoint(log.log.get(), 5, 10, 9).ok());
    ASSERT_TRUE(set_fail_points("").ok());
  }
  {
    OpenLog log(options_for(directory_));
    ASSERT_TRUE(checkpoint(log.log.get(), 9, 10, 2).ok());
  }
  Table table;
  recover_copy(&table);
  EXPECT_EQ(table.sessions.size(), 2u);
  EXPECT_EQ(table.texts, state_after(10));
}

TEST_F(CheckpointTest, SurvivesAKillAtEveryPoint) {
  for (const std::string point : {"records", "flush", "commit", "committed"}) {
    const std::string directory = temporary_.path(point);
    ChildProcess child("checkpoint", directory, "storage.checkpoint." + point + "=kill:2");
    EXPECT_TRUE(child.was_killed()) << point;
    auto log = open_rocksdb_log(options_for(directory));
    ASSERT_TRUE(log.ok());
    Table table;
    const Result<RecoveredPosition> position = (*log)->recover(&table);
    ASSERT_TRUE(position.ok()) << position.status().message();
    EXPECT_EQ(position->checkpoint_batch, point == "committed" ? 25u : 8u);
    EXPECT_EQ(table.sessions.size(), point == "committed" ? 6u : 4u);
    EXPECT_EQ(table.texts, state_after(30)) << point;
  }
}

// Each sync after those of the two appends fails once. One of them is the sync that commits the checkpoint: it makes
// the checkpoint fail, because nobody may be told of a checkpoint that a loss of power could undo.
TEST_F(CheckpointTest, OneThatIsNotSyncedFails) {
  bool has_failed = false;
  for (int sync = 3; sync < 10 && !has_failed; ++sync) {
    ASSERT_TRUE(set_fail_points("storage.append.sync=error:" + std::to_string(sync)).ok());
    OpenLog log(options_for(temporary_.path("sync" + std::to_string(sync))));
    log.append(1, 2);
    const Status status = checkpoint(log.log.get(), 2, 2, 1);
    has_failed = status.message().find("committing a checkpoint") != std::string::npos;
  }
  EXPECT_TRUE(has_failed);
}

TEST_F(CheckpointTest, AMissingSessionIsALoss) {
  {
    OpenLog log(options_for(directory_));
    log.append(1, 5);
    ASSERT_TRUE(checkpoint(log.log.get(), 5, 5, 3).ok());
  }
  {
    auto store = Store::open(options_for(directory_), nullptr);
    ASSERT_TRUE(store.ok());
    auto* const family = (*store)->family(Family::sessions);
    const std::unique_ptr<rocksdb::Iterator> it((*store)->db()->NewIterator({}, family));
    it->SeekToFirst();
    ASSERT_TRUE(it->Valid());
    ASSERT_TRUE((*store)->db()->Delete({}, family, it->key()).ok());
  }
  const Status status = open_status(options_for(directory_));
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("sessions"), std::string::npos) << status.message();
}

// Trimming.

class TrimTest : public CheckpointTest {
 protected:
  // Segments of 4 KiB: about 10 sample batches.
  StorageOptions options() const {
    StorageOptions options = options_for(directory_);
    options.history_bytes_max = 16 << 10;
    return options;
  }
};

TEST_F(TrimTest, KeepsWhatTheCheckpointDoesNotCover) {
  OpenLog log(options());
  log.append(1, 400);
  const std::uint64_t all = log.log->usage().log_bytes;
  ASSERT_TRUE(log.log->trim(INT64_MAX).ok());
  EXPECT_EQ(log.log->usage().first_batch, 1u);
  EXPECT_EQ(log.log->usage().log_bytes, all);
  ASSERT_TRUE(checkpoint(log.log.get(), 100, 100, 0).ok());
  ASSERT_TRUE(log.log->trim(INT64_MAX).ok());
  EXPECT_GT(log.log->usage().first_batch, 50u);
  EXPECT_LE(log.log->usage().first_batch, 100u);
  Table table;
  EXPECT_EQ(recover_copy(&table).batch, 400u);
  EXPECT_EQ(table.texts, state_after(400));
}

TEST_F(TrimTest, KeepsTheHistoryWithinBothLimits) {
  OpenLog log(options());
  log.append(1, 400);
  ASSERT_TRUE(checkpoint(log.log.get(), 400, 400, 0).ok());
  const TimeUs early = sample_batch(1).header.time_us;  // nothing is too old, the bytes are too many
  ASSERT_TRUE(log.log->trim(early).ok());
  EXPECT_LE(log.log->usage().log_bytes, 16u << 10);
  EXPECT_GT(log.log->usage().log_bytes, 8u << 10);
  const BatchNumber by_bytes = log.log->usage().first_batch;
  const TimeUs late = sample_batch(390).header.time_us + options().history_retention_us;
  ASSERT_TRUE(log.log->trim(late).ok());
  EXPECT_GT(log.log->usage().first_batch, by_bytes);
  EXPECT_LE(log.log->usage().first_batch, 390u);
}

// However young the records are. Their write-ahead log and files go, too.
TEST_F(TrimTest, KeepsNoHistoryThatIsCoveredWhileTheDiskIsShortOfSpace) {
  StorageOptions short_options = options();
  std::uint64_t free_bytes = std::uint64_t{1} << 30;
  short_options.free_bytes = [&](const std::string&) { return free_bytes; };
  short_options.history_bytes_max = std::uint64_t{1} << 20;  // segments of 64 KiB
  OpenLog log(short_options);
  log.append(1, 400);
  ASSERT_TRUE(checkpoint(log.log.get(), 400, 400, 0).ok());
  const TimeUs early = sample_batch(1).header.time_us;
  EXPECT_FALSE(log.log->usage().short_of_space);
  ASSERT_TRUE(log.log->trim(early).ok());
  EXPECT_EQ(log.log->usage().first_batch, 1u);
  free_bytes = short_options.disk_reserve_bytes;
  constexpr std::uint64_t kTooMuch = std::uint64_t{1} << 40;
  EXPECT_FALSE(log.log->reserve(kTooMuch, LogUse::new_data).ok());  // looks at the disk at once
  EXPECT_TRUE(log.log->usage().short_of_space);
  const std::size_t write_ahead_log = read_file(newest_write_ahead_log(short_options.data_dir)).size();
  ASSERT_TRUE(log.log->trim(early).ok());
  EXPECT_GT(log.log->usage().first_batch, 1u);
  EXPECT_LE(log.log->usage().log_bytes, 64u << 10);
  EXPECT_LT(read_file(newest_write_ahead_log(short_options.data_dir)).size(), write_ahead_log);
}

TEST_F(TrimTest, IsRememberedAndGoesOnAfterARestart) {
  LogUsage usage;
  {
    OpenLog log(options());
    log.append(1, 400);
    ASSERT_TRUE(checkpoint(log.log.get(), 350, 400, 0).ok());
    ASSERT_TRUE(log.log->trim(INT64_MAX).ok());
    usage = log.log->usage();
  }
  for (int round = 0; round < 2; ++round) {
    OpenLog log(options());
    EXPECT_EQ(log.log->usage().first_batch, usage.first_batch);
    EXPECT_EQ(log.log->usage().log_bytes, usage.log_bytes);
    EXPECT_EQ(log.position.batch, 400u);
  }
  OpenLog log(options());
  log.append(401, 500);
  ASSERT_TRUE(checkpoint(log.log.get(), 500, 500, 0).ok());
  ASSERT_TRUE(log.log->trim(INT64_MAX).ok());
  EXPECT_GT(log.log->usage().first_batch, 400u);
  Table table;
  EXPECT_EQ(recover_copy(&table).batch, 500u);
  EXPECT_EQ(table.texts, state_after(500));
}

TEST_F(TrimTest, ACrashBeforeTheFilesAreRemovedIsHarmless) {
  ASSERT_TRUE(set_fail_points("storage.trim.files=error").ok());
  OpenLog log(options());
  log.append(1, 400);
  ASSERT_TRUE(checkpoint(log.log.get(), 400, 400, 0).ok());
  EXPECT_FALSE(log.log->trim(INT64_MAX).ok());
  Table table;
  EXPECT_EQ(recover_copy(&table).batch, 400u);
  EXPECT_EQ(table.texts, state_after(400));
}

}  // namespace
}  // namespace kilokv::server::storage
