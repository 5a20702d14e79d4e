// Backups: what is in them, that they can go on after any frame, that a damage is found, to which batches they restore,
// and what they keep against trimming.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "server/storage/bytes.hpp"
#include "server/storage/restore_writer.hpp"
#include "tests/unit/storage/backup_fixture.hpp"
#include "tests/unit/storage/checkpoint_fixture.hpp"

namespace kilokv::server::storage {
namespace {

class BackupTest : public testing::Test {
 protected:
  static std::unique_ptr<BackupSource> backup_of(CommitLog* log) {
    auto backup = log->open_backup();
    EXPECT_TRUE(backup.ok()) << backup.status().message();
    return std::move(*backup);
  }
  test::TestFolder temporary_;
  const std::string directory_ = temporary_.path("data");
};

TEST_F(BackupTest, HoldsWhatAStartWouldReadAtItsBoundary) {
  std::vector<std::string> expected;
  std::vector<std::string> frames;
  {
    OpenLog log(options_for(directory_));
    log.append(1, 20);
    ASSERT_TRUE(checkpoint(log.log.get(), 12, 20, 3).ok());
    log.append(21, 30);
    const std::string copy = temporary_.path("copy");
    copy_directory(directory_, copy);
    expected = OpenLog(options_for(copy)).transcript.lines;
    const auto source = backup_of(log.log.get());
    EXPECT_EQ(source->boundary(), 30u);
    log.append(31, 40);  // after the boundary
    ASSERT_TRUE(checkpoint(log.log.get(), 35, 35, 1).ok());
    frames = frames_of(source.get());
  }
  const VisitedBackup visited(frames);
  ASSERT_TRUE(visited.status.ok()) << visited.status.message();
  EXPECT_TRUE(visited.visit.complete());
  EXPECT_EQ(visited.transcript.lines, expected);
  EXPECT_EQ(visited.visit.position().batch, 30u);
  EXPECT_EQ(visited.visit.position().state_hash, sample_batch(30).state_hash);
}

TEST_F(BackupTest, OfANewDatabaseIsEmpty) {
  OpenLog log(options_for(directory_));
  const auto source = backup_of(log.log.get());
  const VisitedBackup visited(frames_of(source.get()));
  EXPECT_TRUE(visited.visit.complete()) << visited.status.message();
  EXPECT_TRUE(visited.transcript.lines.empty());
}

TEST_F(BackupTest, GoesOnAfterAnyFrame) {
  OpenLog log(options_for(directory_));
  log.append(1, 20);
  ASSERT_TRUE(checkpoint(log.log.get(), 12, 20, 3).ok());
  for (BatchNumber number = 21; number <= 26; ++number) {  // several frames of log
    Batch batch = sample_batch(number);
    batch.write_bytes(80, "long", std::string(kFramePayloadBytes, 'x'));
    const LogRecord record = batch.record();
    ASSERT_TRUE(log.log->append({&record, 1}).ok());
  }
  const auto source = backup_of(log.log.get());
  const std::vector<std::string> frames = frames_of(source.get());
  ASSERT_GE(frames.size(), 8u);
  for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
    const Result<Frame> frame = decode_frame(frames[i]);
    ASSERT_TRUE(frame.ok());
    const Result<BackupPoint> point = point_after(*frame);
    ASSERT_TRUE(point.ok());
    ASSERT_TRUE(source->seek(*point).ok());
    EXPECT_EQ(frames_of(source.get()), std::vector<std::string>(frames.begin() + i + 1, frames.end())) << i;
  }
}

TEST_F(BackupTest, RefusesAPointThatNoFrameHas) {
  OpenLog log(options_for(directory_));
  const auto source = backup_of(log.log.get());
  EXPECT_EQ(source->seek({.frame = 1, .crc = 0, .kind = 5, .key = {}}).code(), StatusCode::invalid_argument);
  EXPECT_EQ(source->seek({.frame = 1, .crc = 0, .kind = 4, .key = "short"}).code(), StatusCode::invalid_argument);
  EXPECT_EQ(source->seek({.frame = 1, .crc = 0, .kind = 2, .key = std::string(5000, 'k')}).code(),
            StatusCode::invalid_argument);
}

// A transaction may have 3.5 GiB of log, where the settings allow it. Only the head of its frame is here.
TEST_F(BackupTest, AFrameHoldsTheLongestLogRecord) {
  std::string head;
  bytes::put(&head, kFrameMagic);
  bytes::put(&head, static_cast<std::uint32_t>(FrameKind::log));
  bytes::put(&head, std::uint64_t{1});
  bytes::put(&head, std::uint32_t{0});
  const std::uint32_t payload = (std::uint32_t{7} << 29) + kFramePayloadBytes;
  bytes::put(&head, payload);
  const Result<std::size_t> length = frame_length(head);
  ASSERT_TRUE(length.ok()) << length.status().message();
  EXPECT_EQ(*length, kFrameBytesMin + payload);
  const std::string_view too_long(head.data(), std::size_t{kFramePayloadMax} + 1);  // only its length is looked at
  EXPECT_EQ(check_payload(too_long).code(), StatusCode::internal);
  EXPECT_TRUE(check_payload(head).ok());
}

TEST_F(BackupTest, AMissingDoubledOrExchangedFrameIsFound) {
  OpenLog log(options_for(directory_));
  log.append(1, 20);
  ASSERT_TRUE(checkpoint(log.log.get(), 12, 20, 3).ok());
  const auto source = backup_of(log.log.get());
  const std::vector<std::string> frames = frames_of(source.get());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    std::vector<std::string> missing = frames, doubled = frames;
    missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(i));
    doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(i), frames[i]);
    EXPECT_FALSE(VisitedBackup(missing).status.ok() && VisitedBackup(missing).visit.complete()) << i;
    EXPECT_FALSE(VisitedBackup(doubled).status.ok()) << i;
  }
  const auto other = backup_of(log.log.get());
  std::vector<std::string> mixed = frames;
  mixed[1] = frames_of(other.get())[1];
  EXPECT_FALSE(VisitedBackup(mixed).status.ok());
}

TEST_F(BackupTest, EachFlipOfAFrameIsFound) {
  OpenLog log(options_for(directory_));
  log.append(1, 3);
  const auto source = backup_of(log.log.get());
  for (const std::string& frame : frames_of(source.get())) {
    for (std::size_t bit = 0; bit < 8 * frame.size(); ++bit) {
      std::string flipped = frame;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      ASSERT_FALSE(decode_frame(flipped).ok()) << bit;
    }
  }
}

// The records of this checkpoint show batch 20, although it covers batch 12.
TEST_F(BackupTest, RestoresToNoBatchThatTheStateHasPassed) {
  OpenLog log(options_for(directory_));
  log.append(1, 20);
  ASSERT_TRUE(checkpoint(log.log.get(), 12, 20, 3).ok());
  log.append(21, 30);
  const auto source = backup_of(log.log.get());
  const std::vector<std::string> frames = frames_of(source.get());
  for (BatchNumber batch = 10; batch <= 32; ++batch) {
    const VisitedBackup visited(frames, {.batch = batch, .time_us = {}});
    ASSERT_TRUE(visited.status.ok()) << visited.status.message();
    EXPECT_EQ(visited.visit.check_until().ok(), batch >= 20 && batch <= 30) << batch;
    if (batch >= 20 && batch <= 30) {
      EXPECT_EQ(visited.visit.position().batch, batch);
    }
    const TimeUs time_us = sample_batch(batch).header.time_us + 5;
    const VisitedBackup by_time(frames, {.batch = {}, .time_us = time_us});
    EXPECT_EQ(by_time.visit.check_until().ok(), batch >= 20 && batch < 30) << batch;
    if (batch >= 20) {
      EXPECT_EQ(by_time.visit.position().batch, std::min<BatchNumber>(batch, 30));
    }
  }
}

// What a backup still needs is not trimmed, up to --archive-lag-max.
TEST_F(BackupTest, KeepsItsLogAgainstTrimmingUpToALimit) {
  StorageOptions options = options_for(directory_);
  options.history_bytes_max = 0;
  options.history_retention_us = 0;
  options.log_buffer_bytes = 64 << 10;
  for (const std::uint64_t lag_max : {std::uint64_t{1} << 30, std::uint64_t{1} << 20}) {
    std::filesystem::remove_all(directory_);
    options.archive_lag_max = lag_max;
    OpenLog log(options);
    log.append(1, 10);
    ASSERT_TRUE(checkpoint(log.log.get(), 10, 10, 1).ok());
    log.append(11, 14);
    const auto source = backup_of(log.log.get());
    for (BatchNumber number = 15; number <= 40; ++number) {
      Batch batch = sample_batch(number);
      batch.write_bytes(80, "long", std::string(100 << 10, 'x'));
      const LogRecord record = batch.record();
      ASSERT_TRUE(log.log->append({&record, 1}).ok());
    }
    ASSERT_TRUE(checkpoint(log.log.get(), 40, 40, 1).ok());
    ASSERT_TRUE(log.log->trim(INT64_MAX / 2).ok());
    std::string frame;
    Result<bool> has_more = source->next(&frame);
    if (lag_max == std::uint64_t{1} << 20) {
      EXPECT_EQ(has_more.status().code(), StatusCode::aborted);
      EXPECT_NE(has_more.status().message().find("--archive-lag-max"), std::string::npos);
    } else {
      EXPECT_LE(log.log->usage().first_batch, 11u);
      std::vector<std::string> frames = {frame};
      for (std::string& more : frames_of(source.get())) frames.push_back(std::move(more));
      EXPECT_TRUE(VisitedBackup(frames).visit.complete());
    }
  }
}

// After the backup, the log is trimmed again.
TEST_F(BackupTest, LetsGoOfTheLogAtItsEnd) {
  StorageOptions options = options_for(directory_);
  options.history_bytes_max = 0;
  options.history_retention_us = 0;
  OpenLog log(options);
  log.append(1, 10);
  backup_of(log.log.get()).reset();
  for (BatchNumber number = 11; number <= 20; ++number) {
    Batch batch = sample_batch(number);
    batch.write_bytes(80, "long", std::string(100 << 10, 'x'));
    const LogRecord record = batch.record();
    ASSERT_TRUE(log.log->append({&record, 1}).ok());
  }
  ASSERT_TRUE(checkpoint(log.log.get(), 20, 20, 1).ok());
  ASSERT_TRUE(log.log->trim(INT64_MAX / 2).ok());
  EXPECT_GT(log.log->usage().first_batch, 10u);
}

// A restored directory gives a start what the backup holds, in a new incarnation.
TEST_F(BackupTest, ARestoredDirectoryHoldsTheSame) {
  std::vector<std::string> frames;
  DatabaseIdentity original;
  {
    OpenLog log(options_for(directory_));
    original = log.transcript.seen_identity;
    log.append(1, 20);
    ASSERT_TRUE(checkpoint(log.log.get(), 12, 20, 3).ok());
    log.append(21, 30);
    frames = frames_of(backup_of(log.log.get()).get());
  }
  const std::string restored = temporary_.path("restored");
  constexpr Version kFirst = Version{1} << 41;
  {
    auto writer = RestoreWriter::create(restored);
    ASSERT_TRUE(writer.ok()) << writer.status().message();
    BackupVisit visit(writer->get(), {.batch = 25, .time_us = {}});
    for (const std::string& frame : frames) ASSERT_TRUE(visit.take(*decode_frame(frame)).ok());
    ASSERT_TRUE((*writer)->finish(visit.position(), kFirst).ok());
  }
  for (int start = 0; start < 2; ++start) {
    OpenLog log(options_for(restored));
    EXPECT_EQ(log.position.batch, 25u);
    EXPECT_EQ(log.position.next_version, kFirst);
    EXPECT_EQ(log.position.time_us, sample_batch(25).header.time_us);
    EXPECT_EQ(log.transcript.lines, VisitedBackup(frames, {.batch = 25, .time_us = {}}).transcript.lines);
    EXPECT_EQ(log.transcript.seen_identity.id, original.id);
    EXPECT_GT(log.transcript.sessions, 0u);
    EXPECT_EQ(log.transcript.frozen_sessions, log.transcript.sessions);
    EXPECT_NE(log.transcript.seen_identity.incarnation.id, original.incarnation.id);
    EXPECT_EQ(log.transcript.seen_identity.incarnation.after_batch, 25u);
  }
  EXPECT_EQ(original.incarnation.id, original.id) << "a database that was never restored";
  OpenLog log(options_for(restored));
  Batch next = sample_batch(26);
  next.header.first_version = kFirst;
  next.next_version = kFirst + 1000;
  const LogRecord record = next.record();
  EXPECT_TRUE(log.log->append({&record, 1}).ok());
}

}  // namespace
}  // namespace kilokv::server::storage
