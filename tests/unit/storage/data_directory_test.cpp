// The data directory: one process at a time whatever happens to the files in it, closed to others, and a new database
// that is created whole or again.
#include "server/storage/data_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "server/storage/acknowledged_file.hpp"
#include "server/storage/store.hpp"
#include "tests/unit/storage/child_process.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat found = {};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

class DataDirectoryTest : public testing::Test {
 protected:
  Result<std::unique_ptr<DataDirectory>> open(const std::string& path) {
    return DataDirectory::open(path, [this](const std::string& found) { open_to_others_.push_back(found); });
  }

  TemporaryDirectory temporary_;
  const std::string path_ = temporary_.path("data");
  std::vector<std::string> open_to_others_;
};

TEST_F(DataDirectoryTest, IsCreatedForTheOwnerOnly) {
  ASSERT_TRUE(open(path_).ok());
  EXPECT_EQ(mode_of(path_), 0700u);
  EXPECT_TRUE(open_to_others_.empty());
}

TEST_F(DataDirectoryTest, OfAnEarlierVersionIsClosedToOthersWithItsFiles) {
  std::filesystem::create_directory(path_);
  write_file(path_ + "/000007.log", "content");
  write_file(path_ + "/run", "content");
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod((path_ + "/000007.log").c_str(), 0644), 0);
  ASSERT_EQ(::chmod((path_ + "/run").c_str(), 0750), 0);
  const std::string elsewhere = temporary_.path("elsewhere");
  write_file(elsewhere, "content");
  ASSERT_EQ(::chmod(elsewhere.c_str(), 0644), 0);
  std::filesystem::create_symlink(elsewhere, path_ + "/link");
  ASSERT_TRUE(open(path_).ok());
  EXPECT_EQ(mode_of(path_), 0700u);
  EXPECT_EQ(mode_of(path_ + "/000007.log"), 0600u);
  EXPECT_EQ(mode_of(path_ + "/run"), 0700u);
  EXPECT_EQ(mode_of(elsewhere), 0644u) << "a link leads to a file that is not ours";
}

TEST_F(DataDirectoryTest, IsForOneEvenIfEveryFileInItIsRemoved) {
  OpenLog log(options_for(path_));
  for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove(entry.path());
  const Status status = open_status(options_for(path_));
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("in use by another process, which has locked it"), std::string::npos)
      << status.message();
}

TEST_F(DataDirectoryTest, WithoutItsFileLockIsForOneProcess) {
  ChildProcess child("hold", path_, "");
  ASSERT_EQ(child.read_byte(), 'y');
  ASSERT_TRUE(std::filesystem::remove(path_ + "/LOCK"));
  const Status status = open_status(options_for(path_));
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("in use by another process, which has locked it"), std::string::npos)
      << status.message();
}

TEST_F(DataDirectoryTest, IsFreeAgainWhenItsOwnerEnds) {
  ASSERT_TRUE(open(path_).ok());
  EXPECT_TRUE(open(path_).ok());
}

// A second server may have the place where the path leads now. So the first must not acknowledge anything.
TEST_F(DataDirectoryTest, ThatWasReplacedOrTakenAwayEndsTheLog) {
  for (const bool replaced : {true, false}) {
    const std::string path = temporary_.path(replaced ? "replaced" : "taken");
    OpenLog log(options_for(path));
    log.append(1, 2);
    std::filesystem::rename(path, path + ".moved");
    if (replaced) std::filesystem::create_directory(path);
    const Batch third = sample_batch(3);
    const LogRecord record = third.record();
    const Status status = log.log->append({&record, 1});
    EXPECT_EQ(status.code(), StatusCode::internal);
    EXPECT_NE(status.message().find(replaced ? "was replaced" : "was taken away"), std::string::npos)
        << status.message();
    if (replaced) std::filesystem::remove(path);
    std::filesystem::rename(path + ".moved", path);
    EXPECT_FALSE(log.log->append({&record, 1}).ok()) << "a log that failed once accepts nothing more";
    log.log.reset();
    EXPECT_EQ(OpenLog(options_for(path)).position.batch, 2u);
  }
}

TEST_F(DataDirectoryTest, MayBeReachedByALinkThatStays) {
  const std::string link = temporary_.path("link");
  std::filesystem::create_directory(path_);
  std::filesystem::create_directory_symlink(path_, link);
  OpenLog log(options_for(link));
  log.append(1, 2);
  EXPECT_EQ(open_status(options_for(path_)).code(), StatusCode::failed_precondition);
  std::filesystem::remove(link);
  std::filesystem::create_directory_symlink(temporary_.path("."), link);
  const Batch third = sample_batch(3);
  const LogRecord record = third.record();
  EXPECT_NE(log.log->append({&record, 1}).message().find("was replaced"), std::string::npos);
}

TEST_F(DataDirectoryTest, AFinishedCreationLeavesNoNote) {
  { OpenLog log(options_for(path_)); }
  EXPECT_FALSE(std::filesystem::exists(path_ + "/" + kCreationFileName));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/" + kAcknowledgedFileName));
}

// Every state of the directory that a kill can leave: the note, and any part of the files.
TEST_F(DataDirectoryTest, AnUnfinishedCreationIsDoneAgain) {
  {
    const auto store = Store::open(options_for(path_), nullptr);  // recovery, which ends the creation, does not run
    ASSERT_TRUE(store.ok());
    EXPECT_TRUE((*store)->created());
  }
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
  ASSERT_GT(names.size(), 5u);
  for (const std::string& missing : names) {
    if (missing == kCreationFileName) continue;
    const std::string copy = temporary_.path("without-" + missing);
    copy_directory(path_, copy);
    std::filesystem::remove(copy + "/" + missing);
    write_file(copy + "/notes.txt", "not ours");
    {
      OpenLog log(options_for(copy));
      log.append(1, 3);
    }
    EXPECT_EQ(OpenLog(options_for(copy)).position.batch, 3u) << missing;
    EXPECT_EQ(read_file(copy + "/notes.txt"), "not ours");
  }
}

TEST_F(DataDirectoryTest, ANoteBesideTablesRemovesNothing) {
  {
    OpenLog log(options_for(path_));
    log.append(1, 3);
  }
  { OpenLog moves_the_records_into_a_table(options_for(path_)); }
  write_file(path_ + "/" + kCreationFileName, "");
  const Status status = open_status(options_for(path_));
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find(".sst is there, but also CREATING"), std::string::npos) << status.message();
  std::filesystem::remove(path_ + "/" + kCreationFileName);
  EXPECT_EQ(OpenLog(options_for(path_)).position.batch, 3u);
}

TEST_F(DataDirectoryTest, ThatCannotBeCreatedIsNamed) {
  const Status status = open(temporary_.path("missing/data")).status();
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("cannot be created: No such file or directory (--data-dir)"), std::string::npos)
      << status.message();
  write_file(temporary_.path("file"), "");
  EXPECT_NE(open(temporary_.path("file")).status().message().find("cannot be opened: Not a directory (--data-dir)"),
            std::string::npos);
}

}  // namespace
}  // namespace kilokv::server::storage
