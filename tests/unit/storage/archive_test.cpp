// The archive: it has every durable record, goes on after a start, and ends or refuses work when it falls back.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>

#include "server/core/fail_point.hpp"
#include "server/storage/archive_name.hpp"
#include "tests/unit/storage/backup_fixture.hpp"
#include "tests/unit/storage/checkpoint_fixture.hpp"

namespace kilokv::server::storage {
namespace {

class ArchiveTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(archive_); }
  void TearDown() override { ASSERT_TRUE(set_fail_points("").ok()); }

  StorageOptions options() {
    StorageOptions options = options_for(directory_);
    options.archive_dir = archive_;
    options.archive_interval_us = 100000;
    options.metrics = &metrics_;
    options.on_archive_problem = [this](const std::string& why, bool ended) {
      const std::lock_guard lock(mutex_);
      problems_.push_back((ended ? "ended: " : "") + why);
    };
    return options;
  }
  std::vector<std::string> problems() {
    const std::lock_guard lock(mutex_);
    return problems_;
  }
  // The paths of all files, in their order.
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(archive_)) {
      if (batches_of_archive_file(entry.path().filename().string())) found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  template <class Condition>
  static bool comes_true(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  // What a backup and the files of the archive give together.
  Status visit_all(VisitedBackup* all) const {
    for (const std::string& path : files()) {
      const std::string content = read_file(path);
      FrameChain chain;
      for (std::size_t at = 0; at < content.size();) {
        const Result<std::size_t> length = frame_length(std::string_view(content).substr(at));
        if (!length.ok()) return length.status();
        const Result<Frame> frame = decode_frame(std::string_view(content).substr(at, *length));
        if (!frame.ok()) return frame.status();
        if (Status status = chain.check(*frame); !status.ok()) return status;
        if (Status status = all->visit.take(*frame); !status.ok()) return status;
        at += *length;
      }
    }
    return {};
  }

  test::TestFolder temporary_;
  const std::string directory_ = temporary_.path("data"), archive_ = temporary_.path("archive");
  std::mutex mutex_;
  std::vector<std::string> problems_;
  LogMetrics metrics_;
};

TEST_F(ArchiveTest, HasEveryRecordAfterTheBackup) {
  std::vector<std::string> frames;
  {
    OpenLog log(options());
    log.append(1, 10);
    frames = frames_of(log.log->open_backup()->get());
    log.append(11, 20);
    ASSERT_TRUE(comes_true([&] { return log.log->usage().archive.batch == 20; }));
    EXPECT_EQ(log.log->usage().archive.lag_bytes, 0u);
  }
  {
    OpenLog log(options());  // goes on
    log.append(21, 30);
  }
  VisitedBackup all(frames);
  ASSERT_TRUE(all.status.ok());
  ASSERT_TRUE(visit_all(&all).ok());
  EXPECT_EQ(all.visit.position().batch, 30u);
  EXPECT_EQ(all.transcript.lines, sample_lines(1, 30));
  EXPECT_TRUE(problems().empty()) << problems().front();
  struct stat found = {};
  ASSERT_EQ(::stat(files().front().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST_F(ArchiveTest, RefusesADirectoryThatIsNotThere) {
  std::filesystem::remove(archive_);
  const Status status = open_status(options());
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("--archive-dir"), std::string::npos) << status.message();
}

TEST_F(ArchiveTest, RefusesTheArchiveOfAnotherCopy) {
  const std::string copy = temporary_.path("copy");
  {
    OpenLog log(options());
    log.append(1, 5);
  }
  copy_directory(directory_, copy);
  {
    OpenLog log(options());
    log.append(6, 10);
  }
  StorageOptions older = options();
  older.data_dir = copy;
  const Status status = open_status(older);
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("another copy"), std::string::npos) << status.message();
}

// It says so until a backup has what the archive lacks.
TEST_F(ArchiveTest, AGapCountsUntilTheNextBackup) {
  StorageOptions limited = options();
  LogMetrics metrics;
  limited.metrics = &metrics;
  limited.archive_dir.clear();
  limited.history_bytes_max = 0;
  limited.history_retention_us = 0;
  {
    OpenLog log(limited);
    for (BatchNumber number = 1; number <= 20; ++number) {
      Batch batch = sample_batch(number);
      batch.write_bytes(80, "long", std::string(100 << 10, 'x'));
      const LogRecord record = batch.record();
      ASSERT_TRUE(log.log->append({&record, 1}).ok());
    }
    ASSERT_TRUE(checkpoint(log.log.get(), 20, 20, 1).ok());
    ASSERT_TRUE(log.log->trim(INT64_MAX / 2).ok());
  }
  limited.archive_dir = archive_;
  OpenLog log(limited);
  ASSERT_GT(log.log->usage().first_batch, 1u);
  EXPECT_EQ(metrics.archive_gap_batches, log.log->usage().first_batch - 1);
  ASSERT_EQ(problems().size(), 1u);
  EXPECT_NE(problems().front().find("lacks the batches 1 to "), std::string::npos) << problems().front();
  frames_of(log.log->open_backup()->get());
  EXPECT_EQ(metrics.archive_gap_batches, 0u);
}

// The log keeps what is not archived, although it is old.
TEST_F(ArchiveTest, KeepsTheLogUntilItIsArchived) {
  StorageOptions limited = options();
  limited.history_bytes_max = 0;
  limited.history_retention_us = 0;
  limited.archive_interval_us = DurationUs{3600} * 1000000;
  OpenLog log(limited);
  log.append(1, 5);
  for (BatchNumber number = 6; number <= 20; ++number) {
    Batch batch = sample_batch(number);
    batch.write_bytes(80, "long", std::string(100 << 10, 'x'));
    const LogRecord record = batch.record();
    ASSERT_TRUE(log.log->append({&record, 1}).ok());
  }
  ASSERT_TRUE(checkpoint(log.log.get(), 20, 20, 1).ok());
  ASSERT_TRUE(log.log->trim(INT64_MAX / 2).ok());
  EXPECT_EQ(log.log->usage().first_batch, 1u);
}

TEST_F(ArchiveTest, EndsBeyondTheLagAndSaysSo) {
  ASSERT_TRUE(set_fail_points("storage.archive.write=always").ok());
  StorageOptions limited = options();
  limited.archive_lag_max = std::uint64_t{1} << 20;
  OpenLog log(limited);
  log.append(1, 5);
  ASSERT_TRUE(comes_true([&] { return !problems().empty(); }));
  EXPECT_FALSE(log.log->usage().archive.ended);
  Batch batch = sample_batch(6);
  batch.write_bytes(80, "long", std::string(2 << 20, 'x'));
  const LogRecord record = batch.record();
  ASSERT_TRUE(log.log->append({&record, 1}).ok());
  ASSERT_TRUE(comes_true([&] { return log.log->usage().archive.ended; }));
  ASSERT_TRUE(comes_true([&] { return problems().size() == 2; }));
  EXPECT_GT(metrics_.archive_failures, 0u);
  EXPECT_NE(problems().back().find("ended: the archive has ended after batch 0"), std::string::npos);
  EXPECT_TRUE(log.log->reserve(100, LogUse::new_data).ok()) << "work goes on";
}

TEST_F(ArchiveTest, RefusesNewWorkBeyondTheLagWhereItIsRequired) {
  ASSERT_TRUE(set_fail_points("storage.archive.write=always").ok());
  StorageOptions limited = options();
  limited.archive_lag_max = std::uint64_t{1} << 20;
  limited.archive_required = true;
  OpenLog log(limited);
  Batch batch = sample_batch(1);
  batch.write_bytes(80, "long", std::string(2 << 20, 'x'));
  const LogRecord record = batch.record();
  ASSERT_TRUE(log.log->append({&record, 1}).ok());
  const Status refused = log.log->reserve(100, LogUse::new_data);
  EXPECT_EQ(refused.code(), StatusCode::resource_exhausted);
  EXPECT_EQ(refused.reason(), ErrorReason::archive_late);
  EXPECT_NE(refused.message().find("--archive-lag-max"), std::string::npos) << refused.message();
  EXPECT_FALSE(log.log->usage().archive.ended);
  ASSERT_TRUE(set_fail_points("").ok());
  ASSERT_TRUE(comes_true([&] { return log.log->usage().archive.batch == 1; }));
  EXPECT_TRUE(log.log->reserve(100, LogUse::new_data).ok());
  log.log->release(100);
}

}  // namespace
}  // namespace kilokv::server::storage
