// What the log measures about itself.
#include <gtest/gtest.h>

#include "server/core/fail_point.hpp"
#include "tests/unit/storage/checkpoint_fixture.hpp"

namespace kilokv::server::storage {
namespace {

class LogMetricsTest : public testing::Test {
 protected:
  void open() {
    log_.reset();
    StorageOptions options = options_for(folder_.path("data"));
    options.metrics = &metrics_;
    auto opened = open_rocksdb_log(options);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    log_ = std::move(*opened);
    Transcript transcript;
    ASSERT_TRUE(log_->recover(&transcript).ok());
    ASSERT_TRUE(log_->end_recovery().ok());
  }
  Status append(BatchNumber number) {
    const Batch batch = sample_batch(number);
    const LogRecord record = batch.record();
    return log_->append({&record, 1});
  }

  test::TestFolder folder_;
  LogMetrics metrics_;
  std::unique_ptr<CommitLog> log_;
};

TEST_F(LogMetricsTest, EachAppendIsOneSync) {
  open();
  const std::uint64_t before = metrics_.sync.snapshot().count;
  for (BatchNumber number = 1; number <= 3; ++number) ASSERT_TRUE(append(number).ok());
  EXPECT_EQ(metrics_.sync.snapshot().count, before + 3);
}

TEST_F(LogMetricsTest, TheBytesOfRecordsAreCounted) {
  open();
  ASSERT_TRUE(append(1).ok());
  const std::uint64_t one = metrics_.written_bytes;
  EXPECT_EQ(one, log_->usage().bytes_since_checkpoint);
  ASSERT_TRUE(append(2).ok());
  EXPECT_GT(metrics_.written_bytes, one);
}

TEST_F(LogMetricsTest, ASyncThatFailsIsNotMeasured) {
  ASSERT_TRUE(set_fail_points("storage.append.sync=always").ok());
  open();
  const std::uint64_t before = metrics_.sync.snapshot().count, bytes = metrics_.written_bytes;
  EXPECT_FALSE(append(1).ok());
  EXPECT_EQ(metrics_.sync.snapshot().count, before);
  EXPECT_EQ(metrics_.written_bytes, bytes);
  ASSERT_TRUE(set_fail_points("").ok());
}

TEST_F(LogMetricsTest, TheRecoveryTellsWhatItHasRead) {
  open();
  for (BatchNumber number = 1; number <= 3; ++number) ASSERT_TRUE(append(number).ok());
  EXPECT_EQ(metrics_.recovered_batches, 0u);
  open();
  EXPECT_EQ(metrics_.recovered_batches, 3u);
  EXPECT_EQ(metrics_.recovered_records, 0u) << "there is no checkpoint";
  ASSERT_TRUE(checkpoint(log_.get(), 3, 3, 0).ok());
  open();
  EXPECT_EQ(metrics_.recovered_records, state_after(3).size());
}

TEST_F(LogMetricsTest, TheUsageTellsTheSizeOfTheDisk) {
  open();
  EXPECT_GT(log_->usage().disk_bytes, 0u);
  EXPECT_LE(log_->usage().free_bytes, log_->usage().disk_bytes);
}

}  // namespace
}  // namespace kilokv::server::storage
