#include "server/storage/rocksdb_log.hpp"

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <filesystem>

#include "server/core/environment.hpp"
#include "server/core/fail_point.hpp"
#include "server/storage/acknowledged_file.hpp"
#include "server/storage/log_record.hpp"
#include "server/storage/store.hpp"
#include "server/storage/stored_values.hpp"
#include "tests/unit/storage/child_process.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {
namespace {

class RocksdbLogTest : public testing::Test {
 protected:
  ~RocksdbLogTest() override { EXPECT_TRUE(set_fail_points("").ok()); }

  test::TestFolder temporary_;
  const std::string directory_ = temporary_.path("data");
  const StorageOptions options_ = options_for(directory_);
};

TEST_F(RocksdbLogTest, ANewDatabaseHasAnIdentityThatStays) {
  DatabaseIdentity first;
  {
    OpenLog log(options_);
    first = log.transcript.seen_identity;
    EXPECT_EQ(log.position.batch, 0u);
    EXPECT_EQ(log.position.next_version, 1u);
    EXPECT_TRUE(log.transcript.lines.empty());
    EXPECT_NE(first.key_secret.low, 0u);
  }
  OpenLog again(options_);
  EXPECT_EQ(again.transcript.seen_identity.id, first.id);
  EXPECT_EQ(again.transcript.seen_identity.key_secret.low, first.key_secret.low);
  EXPECT_EQ(again.transcript.seen_identity.key_secret.high, first.key_secret.high);
  OpenLog other(options_for(temporary_.path("other")));
  EXPECT_NE(other.transcript.seen_identity.id, first.id);
}

TEST_F(RocksdbLogTest, BatchesComeBackInOrderAfterEachOfManyStarts) {
  for (BatchNumber number = 1; number <= 30; number += 3) {
    OpenLog log(options_);
    EXPECT_EQ(log.position.batch, number - 1);
    EXPECT_EQ(log.transcript.lines, sample_lines(1, number - 1));
    log.append(number, number + 2);
  }
  OpenLog log(options_);
  EXPECT_EQ(log.position.batch, 30u);
  EXPECT_EQ(log.position.next_version, sample_batch(30).next_version);
  EXPECT_EQ(log.position.tombstone_floor, sample_batch(30).tombstone_floor);
  EXPECT_EQ(log.position.time_us, sample_batch(30).header.time_us);
  EXPECT_EQ(log.position.state_hash, sample_batch(30).state_hash);
  EXPECT_GT(log.position.log_bytes_since_checkpoint, 30 * kRecordHeaderBytes);
  EXPECT_EQ(log.log->usage().first_batch, 1u);
  EXPECT_EQ(log.log->usage().log_bytes, log.position.log_bytes_since_checkpoint);
}

TEST_F(RocksdbLogTest, StartsWithoutWritesLeaveNoFiles) {
  {
    OpenLog log(options_);
    log.append(1, 3);
  }
  for (int start = 0; start < 10; ++start) OpenLog log(options_);
  std::size_t logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) logs += entry.path().extension() == ".log";
  EXPECT_EQ(logs, 1u);
  EXPECT_EQ(OpenLog(options_).transcript.lines, sample_lines(1, 3));
}

TEST_F(RocksdbLogTest, AGroupIsOneAppend) {
  {
    OpenLog log(options_);
    std::vector<Batch> batches;
    for (BatchNumber number = 1; number <= 20; ++number) batches.push_back(sample_batch(number));
    std::vector<LogRecord> records;
    for (const Batch& batch : batches) records.push_back(batch.record());
    ASSERT_TRUE(log.log->append(records).ok());
    ASSERT_TRUE(log.log->append({}).ok());
  }
  OpenLog log(options_);
  EXPECT_EQ(log.transcript.lines, sample_lines(1, 20));
}

TEST_F(RocksdbLogTest, ASecondOpenIsRefusedClearlyAndHarmsNothing) {
  OpenLog log(options_);
  log.append(1, 3);
  const Status status = open_status(options_);
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("in use by another process, which has locked it"), std::string::npos)
      << status.message();
  log.append(4, 5);
}

TEST_F(RocksdbLogTest, AnotherProcessThatHoldsTheDirectoryIsNamed) {
  ChildProcess child("hold", directory_, "");
  ASSERT_EQ(child.read_byte(), 'y');
  const Status status = open_status(options_);
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("in use by another process, which has locked it"), std::string::npos)
      << status.message();
}

TEST_F(RocksdbLogTest, AForeignDatabaseIsRefusedAndLeftAsItWas) {
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, directory_, &db).ok());
  ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), "theirs", "value").ok());
  ASSERT_TRUE(db->Close().ok());
  delete db;
  const Status status = open_status(options_);
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("another RocksDB database"), std::string::npos) << status.message();
  std::vector<std::string> families;
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), directory_, &families).ok());
  EXPECT_EQ(families, std::vector<std::string>{"default"});
}

// RocksDB's own lock keeps away a program that uses RocksDB alone.
TEST_F(RocksdbLogTest, AProgramThatHasTheFilesOfRocksdbIsNamed) {
  { OpenLog log(options_); }
  rocksdb::FileLock* lock = nullptr;
  ASSERT_TRUE(rocksdb::Env::Default()->LockFile(directory_ + "/LOCK", &lock).ok());
  const Status status = open_status(options_);
  ASSERT_TRUE(rocksdb::Env::Default()->UnlockFile(lock).ok());
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("in use by another process, which has its file LOCK"), std::string::npos)
      << status.message();
}

TEST_F(RocksdbLogTest, AnUnknownFormatIsRefused) {
  { OpenLog log(options_); }
  {
    auto store = Store::open(options_, nullptr);
    ASSERT_TRUE(store.ok());
    std::string format;
    put(&format, kDatabaseFormat + 1);
    ASSERT_TRUE((*store)->db()->Put({}, (*store)->family(Family::metadata), kFormatKey, format).ok());
  }
  const Status status = open_status(options_);
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("format " + std::to_string(kDatabaseFormat + 1)), std::string::npos)
      << status.message();
}

TEST_F(RocksdbLogTest, OptionsAreChecked) {
  StorageOptions options;
  EXPECT_EQ(options.validate().code(), StatusCode::invalid_argument);
  options.data_dir = directory_;
  EXPECT_TRUE(options.validate().ok());
  options.log_buffer_bytes = 1;
  const Status status = open_status(options);
  ASSERT_NE(status.violation(), nullptr);
  EXPECT_EQ(status.violation()->setting, "--log-buffer");
}

TEST_F(RocksdbLogTest, AHistoryMayBeKeptForNoTime) {
  StorageOptions options = options_;
  options.history_retention_us = 0;
  EXPECT_TRUE(options.validate().ok());
  EXPECT_TRUE(open_status(options).ok());
  options.history_retention_us = kDurationUsMax;
  EXPECT_TRUE(options.validate().ok());
  for (const DurationUs wrong : {DurationUs{-1}, kDurationUsMax + 1}) {
    options.history_retention_us = wrong;
    const Status status = options.validate();
    ASSERT_NE(status.violation(), nullptr);
    EXPECT_EQ(status.violation()->setting, "--history-retention");
  }
}

TEST_F(RocksdbLogTest, AMissingParentDirectoryIsRefused) {
  const Status status = open_status(options_for(temporary_.path("no/such")));
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("--data-dir"), std::string::npos) << status.message();
}

TEST_F(RocksdbLogTest, ReserveFollowsTheFileSystem) {
  StorageOptions options = options_;
  std::uint64_t free = 1 << 20;
  options.disk_reserve_bytes = 1 << 20;
  options.free_bytes = [&free](const std::string&) { return free; };
  OpenLog log(options);
  const Status full = log.log->reserve(1000, LogUse::new_data);
  EXPECT_EQ(full.code(), StatusCode::resource_exhausted);
  free = 100 << 20;
  EXPECT_TRUE(log.log->reserve(1000, LogUse::new_data).ok());
  EXPECT_EQ(log.log->usage().reserved_bytes, 1000u);
  EXPECT_EQ(log.log->usage().free_bytes, free);
  log.log->release(1000);
  EXPECT_EQ(log.log->usage().reserved_bytes, 0u);
}

TEST_F(RocksdbLogTest, ACheckpointThatTheDiskWouldNotHoldDoesNotBegin) {
  StorageOptions options = options_;
  std::uint64_t sessions = 10 << 20;
  options.disk_reserve_bytes = 1 << 20;
  options.free_bytes = [](const std::string&) { return std::uint64_t{16} << 20; };
  int told = 0;
  options.on_checkpoint_put_off = [&told](const Status&) { ++told; };
  OpenLog log(options);
  log.append(1, 2);
  log.log->watch_sessions([&sessions] { return sessions; });
  EXPECT_EQ(log.log->checkpoint_begin().code(), StatusCode::resource_exhausted);
  EXPECT_EQ(log.log->checkpoint_begin().code(), StatusCode::resource_exhausted);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(log.log->reserve(1000, LogUse::new_data).code(), StatusCode::resource_exhausted);
  log.append(3, 3);  // what was admitted is written all the same
  sessions = 1 << 20;
  EXPECT_TRUE(log.log->reserve(1000, LogUse::new_data).ok());
  EXPECT_TRUE(log.log->checkpoint_begin().ok());
  EXPECT_TRUE(log.log->checkpoint_end(position_after(sample_batch(3)), {}).ok());
}

TEST_F(RocksdbLogTest, AFailedSyncIsFinal) {
  ASSERT_TRUE(set_fail_points("storage.append.sync=error:3").ok());
  {
    OpenLog log(options_);
    log.append(1, 2);
    Batch batch = sample_batch(3);
    const LogRecord record = batch.record();
    EXPECT_FALSE(log.log->append({&record, 1}).ok());
    const std::string before = read_file(newest_write_ahead_log(directory_));
    const Status again = log.log->append({&record, 1});
    EXPECT_FALSE(again.ok());
    EXPECT_NE(again.message().find("failed before"), std::string::npos) << again.message();
    EXPECT_EQ(read_file(newest_write_ahead_log(directory_)), before);
  }
  ASSERT_TRUE(set_fail_points("").ok());
  OpenLog log(options_);
  EXPECT_GE(log.position.batch, 2u);  // what became of the third is unknown
  EXPECT_LE(log.position.batch, 3u);
  EXPECT_EQ(log.transcript.lines, sample_lines(1, log.position.batch));
  log.append(log.position.batch + 1, 10);
}

TEST_F(RocksdbLogTest, AFailedWriteIsFinalAndItsHalfIsCut) {
  ASSERT_TRUE(set_fail_points("storage.append.write=error:3").ok());
  {
    OpenLog log(options_);
    Batch batch = sample_batch(1);
    for (BatchNumber number = 1; number < 10; ++number) {
      batch = sample_batch(number);
      const LogRecord record = batch.record();
      if (!log.log->append({&record, 1}).ok()) break;
    }
    EXPECT_LT(batch.header.number, 9u);
    EXPECT_FALSE(log.log->append(std::vector<LogRecord>{batch.record()}).ok());
  }
  ASSERT_TRUE(set_fail_points("").ok());
  OpenLog log(options_);
  EXPECT_EQ(log.transcript.lines, sample_lines(1, log.position.batch));
  log.append(log.position.batch + 1, 10);
}

// Kills a child in the middle of an append, at every point and at several passes.
TEST_F(RocksdbLogTest, WhatWasAcknowledgedSurvivesAKillAtEveryPoint) {
  for (const std::string point : {"write", "before_sync", "after_sync"}) {
    for (const BatchNumber pass : {1, 2, 5}) {
      const std::string directory = temporary_.path(point + std::to_string(pass));
      ChildProcess child("append", directory, "storage.append." + point + "=kill:" + std::to_string(pass));
      const BatchNumber count = child.read_to_end().size();
      EXPECT_TRUE(child.was_killed()) << point << " " << pass;
      OpenLog log(options_for(directory));
      EXPECT_GE(log.position.batch, count) << point << " " << pass;
      EXPECT_LE(log.position.batch, count + 1) << point << " " << pass;
      EXPECT_EQ(log.transcript.lines, sample_lines(1, log.position.batch));
      log.append(log.position.batch + 1, 25);
    }
  }
}

}  // namespace
}  // namespace kilokv::server::storage
