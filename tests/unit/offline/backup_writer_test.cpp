// The file of a backup: it goes on where it can, one program at a time writes it, and nothing old passes as new.
#include "server/offline/backup_writer.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/storage/backup_fixture.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::offline {
namespace {

using namespace storage;  // NOLINT(google-build-using-namespace): the fixture is of this room

// The hash of the sample batches is made up. So it is not compared, but for the test of a wrong one.
class BackupWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    OpenLog log(options_for(temporary_.path("data")));
    log.append(1, 10);
    for (std::vector<std::string>* frames : {&frames_, &others_}) {
      *frames = frames_of(log.log->open_backup()->get());
      ASSERT_GE(frames->size(), 3u);
    }
  }
  Result<std::unique_ptr<BackupWriter>> open(bool verifies = false) const {
    return BackupWriter::open(path_, verifies);
  }
  static void take(BackupWriter* writer, const std::vector<std::string>& frames) {
    for (const std::string& frame : frames) {
      const Status status = writer->take(frame);
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
  static std::string all(const std::vector<std::string>& frames) {
    std::string bytes;
    for (const std::string& frame : frames) bytes += frame;
    return bytes;
  }
  std::vector<std::string> frames_from(std::size_t begin) const {
    return {frames_.begin() + static_cast<std::ptrdiff_t>(begin), frames_.end()};
  }

  test::TestFolder temporary_;
  const std::string path_ = temporary_.path("a.backup"), partial_ = path_ + ".partial";
  std::vector<std::string> frames_, others_;  // two backups of the same data
};

TEST_F(BackupWriterTest, GivesTheFileItsNameAtTheEnd) {
  const auto writer = open();
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  take(writer->get(), frames_);
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE((*writer)->is_complete());
  ASSERT_TRUE((*writer)->finish().ok());
  EXPECT_FALSE(std::filesystem::exists(partial_));
  EXPECT_EQ(read_file(path_), all(frames_));
  struct stat found = {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  EXPECT_EQ(open().status().code(), StatusCode::failed_precondition) << "an existing backup is not overwritten";
}

TEST_F(BackupWriterTest, GoesOnAfterTheLastWholeFrame) {
  {
    const auto writer = open();
    take(writer->get(), {frames_[0], frames_[1], frames_[2].substr(0, 9)});
  }
  write_file(partial_, read_file(partial_) + frames_[2].substr(0, 20));  // as a kill can leave it
  const auto writer = open();
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ((*writer)->forgotten(), "");
  ASSERT_TRUE((*writer)->resume());
  EXPECT_EQ((*writer)->resume()->frame, 1u);
  take(writer->get(), frames_from(2));
  ASSERT_TRUE((*writer)->finish().ok());
  EXPECT_EQ(read_file(path_), all(frames_));
}

// The second program would otherwise cut off, or write over, what the first one has checked.
TEST_F(BackupWriterTest, ASecondProgramIsRefusedAndChangesNothing) {
  const auto writer = open();
  take(writer->get(), {frames_[0], frames_[1]});
  const std::string before = read_file(partial_);
  const auto second = open();
  EXPECT_EQ(second.status().code(), StatusCode::failed_precondition);
  EXPECT_NE(second.status().message().find("another backup writes"), std::string::npos) << second.status().message();
  EXPECT_EQ(read_file(partial_), before);
  take(writer->get(), frames_from(2));
  ASSERT_TRUE((*writer)->finish().ok());
  EXPECT_EQ(read_file(path_), all(frames_));
}

TEST_F(BackupWriterTest, AFileThatAnotherProgramHasChangedGetsNoName) {
  for (const bool is_replaced : {false, true}) {
    std::filesystem::remove(partial_);
    const auto writer = open();
    take(writer->get(), frames_);
    const std::string longer = read_file(partial_) + "more";
    if (is_replaced) std::filesystem::remove(partial_);
    write_file(partial_, is_replaced ? all(frames_) : longer);
    EXPECT_EQ((*writer)->finish().status().code(), StatusCode::failed_precondition);
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
}

// Between the link and the removal of the first name, a program may have been killed.
TEST_F(BackupWriterTest, AnotherNameOfABackupIsNotTouched) {
  const std::string moved = temporary_.path("moved.backup");
  write_file(moved, all(frames_));
  std::filesystem::create_hard_link(moved, partial_);
  EXPECT_EQ(open().status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(read_file(moved), all(frames_));
}

TEST_F(BackupWriterTest, OnlyAPartialFileWithNothingInItIsRemoved) {
  {
    const auto writer = open();
    ASSERT_TRUE(std::filesystem::exists(partial_));
    (*writer)->remove_if_empty();
    EXPECT_FALSE(std::filesystem::exists(partial_));
    // Another program may have the name now.
    write_file(partial_, "");
    (*writer)->remove_if_empty();
    EXPECT_TRUE(std::filesystem::exists(partial_));
  }
  const auto writer = open();
  take(writer->get(), {frames_[0]});
  (*writer)->remove_if_empty();
  EXPECT_EQ(read_file(partial_), frames_[0]);
}

// Nobody has asked a server for it: the data may be a week old.
TEST_F(BackupWriterTest, ACompletePartialFileStartsOverAndSaysSo) {
  write_file(partial_, all(frames_));
  const auto writer = open();
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  EXPECT_FALSE((*writer)->is_complete());
  EXPECT_FALSE((*writer)->resume());
  EXPECT_NE((*writer)->forgotten().find("is complete"), std::string::npos) << (*writer)->forgotten();
  take(writer->get(), others_);
  ASSERT_TRUE((*writer)->finish().ok());
  EXPECT_EQ(read_file(path_), all(others_));
}

TEST_F(BackupWriterTest, AMixedPartialFileStartsOverAndSaysSo) {
  write_file(partial_, frames_[0] + others_[1]);
  const auto writer = open();
  ASSERT_TRUE(writer.ok());
  EXPECT_FALSE((*writer)->resume());
  EXPECT_FALSE((*writer)->forgotten().empty());
  EXPECT_EQ(std::filesystem::file_size(partial_), 0u);
}

// The frames of a backup of one batch without writes, whose record says that the state has this hash.
std::vector<std::string> frames_with(const std::string& directory, Hash128 state_hash) {
  OpenLog log(options_for(directory));
  Batch batch(1);
  batch.state_hash = state_hash;
  const LogRecord record = batch.record();
  EXPECT_TRUE(log.log->append({&record, 1}).ok());
  return frames_of(log.log->open_backup()->get());
}

TEST_F(BackupWriterTest, AWrongHashGetsNoNameAndStartsOver) {
  {
    const auto writer = open(true);
    take(writer->get(), frames_with(temporary_.path("wrong"), {1, 2}));
    ASSERT_TRUE((*writer)->is_complete());
    EXPECT_EQ((*writer)->finish().status().code(), StatusCode::data_loss);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE((*open())->is_complete());
}

TEST_F(BackupWriterTest, TheHashIsComparedAlsoAfterAnInterruption) {
  const std::vector<std::string> frames = frames_with(temporary_.path("right"), {});
  take(open(true)->get(), {frames[0]});
  const auto writer = open(true);
  ASSERT_TRUE((*writer)->resume());
  take(writer->get(), {frames.begin() + 1, frames.end()});
  const Result<Summary> summary = (*writer)->finish();
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  EXPECT_TRUE(summary->complete);
  EXPECT_EQ(summary->batch, 1u);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace kilokv::server::offline
