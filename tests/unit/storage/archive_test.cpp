// The archive: it has every durable record, goes on after a start, and ends or refuses work when it falls back.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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

  // Long batches, so that the log has several segments.
  static void append_long(CommitLog* log, BatchNumber from, BatchNumber to, std::size_t bytes = 100 << 10) {
    for (BatchNumber number = from; number <= to; ++number) {
      Batch batch = sample_batch(number);
      batch.write_bytes(80, "long", std::string(bytes, 'x'));
      const LogRecord record = batch.record();
      ASSERT_TRUE(log->append({&record, 1}).ok());
    }
  }
  // The log keeps what it must, and no more.
  StorageOptions without_history() {
    StorageOptions limited = options();
    limited.history_bytes_max = 0;
    limited.history_retention_us = 0;
    return limited;
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

// The copy has gone on in another way, to the same batch or beyond it. The numbers of the batches fit.
TEST_F(ArchiveTest, RefusesTheArchiveOfACopyThatWentAnotherWay) {
  const std::string copy = temporary_.path("copy");
  {
    OpenLog log(options());
    log.append(1, 5);
  }
  copy_directory(directory_, copy);
  {
    OpenLog log(options());
    log.append(6, 8);
  }
  for (const BatchNumber last : {8, 12}) {
    StorageOptions other = options_for(copy);
    {
      OpenLog log(other);
      append_long(log.log.get(), last == 8 ? 6 : 9, last, 10);
    }
    other.archive_dir = archive_;
    const std::size_t before = files().size();
    const Status status = open_status(other);
    EXPECT_EQ(status.code(), StatusCode::failed_precondition) << last;
    EXPECT_NE(status.message().find("another copy"), std::string::npos) << status.message();
    EXPECT_EQ(files().size(), before);
  }
  OpenLog log(options());
  EXPECT_TRUE(problems().empty()) << problems().front();
}

// The log does not have the last batch of the archive any more, but the record after it names its checksum.
TEST_F(ArchiveTest, ComparesWithTheRecordAfterTheArchive) {
  for (const bool is_same : {true, false}) {
    std::filesystem::remove_all(directory_);
    std::filesystem::remove_all(archive_);
    std::filesystem::create_directory(archive_);
    StorageOptions limited = without_history();
    limited.archive_required = true;                           // keeps the rest of the log
    limited.archive_interval_us = DurationUs{3600} * 1000000;  // one file, at the end
    {
      OpenLog log(limited);
      append_long(log.log.get(), 1, 5);
    }
    ASSERT_EQ(files().size(), 1u);
    const std::string file = files().front();
    const std::string content = read_file(file);
    {
      OpenLog log(limited);
      append_long(log.log.get(), 6, 20);
      ASSERT_TRUE(checkpoint(log.log.get(), 20, 20, 1).ok());
      ASSERT_TRUE(log.log->trim(INT64_MAX / 2).ok());
      ASSERT_EQ(log.log->usage().first_batch, 6u);
    }
    for (const std::string& path : files()) std::filesystem::remove(path);
    if (is_same) {
      write_file(file, content);
    } else {
      StorageOptions other = options_for(temporary_.path("other"));
      other.archive_dir = temporary_.path("other archive");
      std::filesystem::create_directory(other.archive_dir);
      OpenLog(other).append(1, 5);
      for (const auto& entry : std::filesystem::recursive_directory_iterator(other.archive_dir)) {
        if (batches_of_archive_file(entry.path().filename().string()))
          write_file(file, read_file(entry.path().string()));
      }
    }
    EXPECT_EQ(open_status(limited).ok(), is_same);
  }
}

TEST_F(ArchiveTest, ADamagedFileIsToldAndTheArchiveGoesOn) {
  {
    OpenLog log(options());
    log.append(1, 5);
  }
  const std::string last = files().back();  // the one that is read; there may be more of them
  std::string content = read_file(last);
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  write_file(last, content);
  {
    OpenLog log(options());
    log.append(6, 8);
  }
  EXPECT_GE(files().size(), 2u);
  ASSERT_EQ(problems().size(), 1u);
  EXPECT_NE(problems().front().find("is damaged"), std::string::npos) << problems().front();
  EXPECT_GE(metrics_.archive_gap_batches, 1u) << "until a backup has these batches";
}

TEST_F(ArchiveTest, TwoServersDoNotShareAFolder) {
  const std::string copy = temporary_.path("copy");
  { const OpenLog makes_the_database(options()); }
  copy_directory(directory_, copy);
  const OpenLog log(options());
  StorageOptions other = options();
  other.data_dir = copy;
  const Status status = open_status(other);
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("another server writes"), std::string::npos) << status.message();
}

// The next trim would remove it, or a check would take the database for an archive.
TEST_F(ArchiveTest, TheArchiveLiesOutsideTheDataDirectory) {
  { const OpenLog makes_the_database(options_for(directory_)); }
  std::filesystem::create_directory_symlink(directory_, temporary_.path("link"));
  for (const std::string& path : {directory_, directory_ + "/", directory_ + "/archive",
                                  directory_ + "/../data/archive", temporary_.path("link") + "/archive"}) {
    StorageOptions inside = options();
    inside.archive_dir = path;
    EXPECT_EQ(inside.validate().code(), StatusCode::invalid_argument) << path;
  }
  for (const std::string& path : {directory_ + "-archive", directory_ + "/../archive", temporary_.path("")}) {
    StorageOptions outside = options();
    outside.archive_dir = path;
    EXPECT_TRUE(outside.validate().ok()) << path;
  }
}

// Also after later starts: the files have the gap, until those before it are removed.
TEST_F(ArchiveTest, AGapBetweenFilesCountsAfterEachStart) {
  {
    OpenLog log(options());
    log.append(1, 5);
  }
  {
    StorageOptions limited = without_history();
    limited.archive_dir.clear();
    OpenLog log(limited);
    append_long(log.log.get(), 6, 25);
    ASSERT_TRUE(checkpoint(log.log.get(), 25, 25, 1).ok());
    ASSERT_TRUE(log.log->trim(INT64_MAX / 2).ok());
    ASSERT_GT(log.log->usage().first_batch, 7u);
  }
  for (int start = 1; start <= 3; ++start) {
    metrics_.archive_gap_batches = 0;
    OpenLog log(options());
    if (start == 1) log.append(26, 30);
    EXPECT_EQ(metrics_.archive_gap_batches, log.log->usage().first_batch - 6) << start;
    ASSERT_EQ(problems().size(), static_cast<std::size_t>(start));
    EXPECT_NE(problems().back().find("lacks the batches 6 to "), std::string::npos) << problems().back();
    if (start != 2) continue;
    frames_of(log.log->open_backup()->get());
    EXPECT_EQ(metrics_.archive_gap_batches, 0u);
  }
  metrics_.archive_gap_batches = 0;
  std::filesystem::remove(files().front());
  const OpenLog log(options());
  EXPECT_EQ(metrics_.archive_gap_batches, 0u);
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

// A disk that is full must not stay full for an archive that need not be.
TEST_F(ArchiveTest, EndsWhereItKeepsTheDataDiskFull) {
  ASSERT_TRUE(set_fail_points("storage.archive.write=always").ok());
  for (const bool required : {false, true}) {
    std::filesystem::remove_all(directory_);
    StorageOptions limited = without_history();
    limited.archive_required = required;
    limited.free_bytes = [](const std::string&) { return std::uint64_t{100} << 20; };  // enough for a checkpoint
    OpenLog log(limited);
    append_long(log.log.get(), 1, 20);
    const auto backup = std::move(*log.log->open_backup());
    ASSERT_TRUE(checkpoint(log.log.get(), 20, 20, 1).ok());
    ASSERT_TRUE(log.log->usage().short_of_space);
    ASSERT_TRUE(log.log->trim(INT64_MAX / 2).ok());
    EXPECT_EQ(log.log->usage().first_batch > 1, !required);
    if (!required) {
      std::string frame;
      EXPECT_EQ(backup->next(&frame).status().code(), StatusCode::aborted);
      ASSERT_TRUE(comes_true([&] { return log.log->usage().archive.ended; }));
    }
  }
}

// A long interval does not make an archive late whose disk is well.
TEST_F(ArchiveTest, AWholeFileDoesNotWaitForTheInterval) {
  StorageOptions limited = options();
  limited.archive_interval_us = DurationUs{3600} * 1000000;
  OpenLog log(limited);
  append_long(log.log.get(), 1, 60);  // 6 MB
  EXPECT_TRUE(comes_true([&] { return log.log->usage().archive.batch >= 30; }));
  EXPECT_FALSE(log.log->usage().archive.ended);
}

// The thread that writes hangs in its disk. Others know all the same that the archive has ended.
TEST_F(ArchiveTest, EndsWhileItsDiskHangs) {
  StorageOptions limited = without_history();
  limited.free_bytes = [](const std::string&) { return std::uint64_t{100} << 20; };  // enough for a checkpoint
  OpenLog log(limited);
  const std::string folder = std::filesystem::directory_iterator(archive_)->path().string();
  const std::string file = folder + "/next.partial";
  ASSERT_EQ(::mkfifo(file.c_str(), S_IRUSR | S_IWUSR), 0) << "who opens it waits for a reader";
  log.append(1, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  append_long(log.log.get(), 2, 20);
  ASSERT_TRUE(checkpoint(log.log.get(), 20, 20, 1).ok());
  EXPECT_FALSE(log.log->usage().archive.ended);
  ASSERT_TRUE(log.log->trim(INT64_MAX / 2).ok());
  EXPECT_TRUE(log.log->usage().archive.ended);
  EXPECT_EQ(problems().size(), 0u) << "it still hangs";
  const int reader = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_TRUE(comes_true([&] { return !problems().empty() && problems().back().starts_with("ended: "); }));
  ::close(reader);
}

// A little that is late does not end it: the interval makes every archive late.
TEST_F(ArchiveTest, DoesNotEndOnAFullDiskForALittle) {
  StorageOptions limited = without_history();
  limited.archive_interval_us = DurationUs{3600} * 1000000;
  limited.free_bytes = [](const std::string&) { return std::uint64_t{100} << 20; };
  OpenLog log(limited);
  log.append(1, 10);
  ASSERT_TRUE(checkpoint(log.log.get(), 10, 10, 1).ok());
  ASSERT_TRUE(log.log->usage().short_of_space);
  ASSERT_TRUE(log.log->trim(INT64_MAX / 2).ok());
  EXPECT_EQ(log.log->usage().first_batch, 1u);
}

// What is left from before a kill is known by segments only. A whole one counts at first, although most of it is in the
// archive; this must not count for ever.
TEST_F(ArchiveTest, TheLagIsExactAfterAKill) {
  StorageOptions limited = options();
  limited.archive_lag_max = std::uint64_t{1} << 20;
  limited.archive_required = true;
  const std::string killed = temporary_.path("killed");
  {
    OpenLog log(limited);
    append_long(log.log.get(), 1, 4, 600 << 10);
    ASSERT_TRUE(comes_true([&] { return log.log->usage().archive.batch == 4; }));
    ASSERT_TRUE(set_fail_points("storage.archive.write=always").ok());
    log.append(5, 6);
    copy_directory(directory_, killed);
  }
  limited.data_dir = killed;
  OpenLog log(limited);
  EXPECT_GT(log.log->usage().archive.lag_bytes, 0u);
  ASSERT_TRUE(set_fail_points("").ok());
  ASSERT_TRUE(comes_true([&] { return log.log->usage().archive.batch == 6; }));
  ASSERT_TRUE(comes_true([&] { return log.log->usage().archive.lag_bytes == 0; }));
  EXPECT_TRUE(log.log->reserve(100, LogUse::new_data).ok());
  log.log->release(100);
  append_long(log.log.get(), 7, 7, 600 << 10);
  ASSERT_TRUE(comes_true([&] { return log.log->usage().archive.lag_bytes == 0; }));
}

// New work is not refused for half an interval after a start.
TEST_F(ArchiveTest, CopiesAtOnceWhatIsLeftFromBefore) {
  {
    StorageOptions without = options();
    without.archive_dir.clear();
    OpenLog(without).append(1, 5);
  }
  StorageOptions slow = options();
  slow.archive_interval_us = DurationUs{3600} * 1000000;
  OpenLog log(slow);
  EXPECT_TRUE(comes_true([&] { return log.log->usage().archive.batch == 5; }));
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
  EXPECT_EQ(log.log->reserve(100, LogUse::reads_and_deletes).reason(), ErrorReason::archive_late);
  EXPECT_TRUE(log.log->reserve(100, LogUse::access_changes).ok()) << "a right can be taken away";
  log.log->release(100);
  EXPECT_NE(refused.message().find("--archive-lag-max"), std::string::npos) << refused.message();
  EXPECT_FALSE(log.log->usage().archive.ended);
  ASSERT_TRUE(set_fail_points("").ok());
  ASSERT_TRUE(comes_true([&] { return log.log->usage().archive.batch == 1; }));
  EXPECT_TRUE(log.log->reserve(100, LogUse::new_data).ok());
  log.log->release(100);
}

}  // namespace
}  // namespace kilokv::server::storage
