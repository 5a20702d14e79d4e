// The data directory: one process at a time whatever happens to the files in it, closed to others, and a new database
// that is created whole or again.
#include "server/storage/data_directory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "server/storage/acknowledged_file.hpp"
#include "server/storage/store.hpp"
#include "server/storage/wal_tag.hpp"
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
  // The mode of a file or directory that is made with it.
  void make(const std::string& path, mode_t mode) {
    write_file(path, "content");
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }

  test::TestFolder temporary_;
  const std::string path_ = temporary_.path("data");
  std::vector<std::string> open_to_others_;
  const StorageOptions options_ = [this] {
    StorageOptions options = options_for(path_);
    options.on_open_to_others = [this](const std::string& found) { open_to_others_.push_back(found); };
    return options;
  }();
};

TEST_F(DataDirectoryTest, IsCreatedForTheOwnerOnly) {
  ASSERT_TRUE(DataDirectory::open(path_).ok());
  EXPECT_EQ(mode_of(path_), 0700u);
}

TEST_F(DataDirectoryTest, OfAnEarlierVersionIsClosedToOthersWithItsFiles) {
  { OpenLog log(options_); }
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod((path_ + "/IDENTITY").c_str(), 0644), 0);
  make(path_ + "/run", 0750);
  { OpenLog log(options_); }
  EXPECT_EQ(mode_of(path_), 0700u);
  EXPECT_EQ(mode_of(path_ + "/IDENTITY"), 0600u);
  EXPECT_EQ(mode_of(path_ + "/run"), 0750u) << "a file that is not ours";
  EXPECT_TRUE(open_to_others_.empty());
}

// Its owner could put another database there. Only root can make such a directory.
TEST_F(DataDirectoryTest, OfAnotherUserIsRefused) {
  constexpr uid_t kOther = 65534;
  { OpenLog log(options_); }
  if (::chown(path_.c_str(), kOther, static_cast<gid_t>(-1)) != 0) {
    GTEST_SKIP() << "this user may not give a directory away";
  }
  const Status refused = open_status(options_);
  EXPECT_EQ(refused.code(), StatusCode::failed_precondition);
  EXPECT_NE(refused.message().find("belongs to another user (id 65534)"), std::string::npos) << refused.message();
  ASSERT_EQ(::chown(path_.c_str(), ::geteuid(), static_cast<gid_t>(-1)), 0);
  EXPECT_TRUE(open_status(options_).ok());
}

TEST_F(DataDirectoryTest, ALinkInItIsNotFollowed) {
  { OpenLog log(options_); }
  const std::string victim = temporary_.path("victim");
  for (const char* name : {kAcknowledgedFileName, kWalTagFileName}) {
    write_file(victim, std::string(100, 'v'));
    const std::string path = path_ + "/" + name, before = read_file(path);
    std::filesystem::remove(path);
    std::filesystem::create_symlink(victim, path);
    EXPECT_FALSE(open_status(options_).ok()) << name;
    EXPECT_EQ(read_file(victim), std::string(100, 'v')) << name;
    std::filesystem::remove(path);
    write_file(path, before);
  }
}

// A mistyped path, such as /tmp, gets no database and no other file. Both names are there, and the first is named.
TEST_F(DataDirectoryTest, WithFilesOfOthersGetsNoDatabase) {
  std::filesystem::create_directories(path_ + "/work");
  make(path_ + "/the \"notes\".txt", 0644);
  const Status refused = open_status(options_);
  EXPECT_EQ(refused.code(), StatusCode::failed_precondition);
  EXPECT_EQ(refused.message(), "data directory " + path_ +
                                   " has no database, but it has other files, such as \"the \\\"notes\\\".txt\": a new "
                                   "database is made only in an empty or a new directory (--data-dir)");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()), 2)
      << "also no file LOCK";
  std::filesystem::remove(path_ + "/the \"notes\".txt");
  EXPECT_NE(open_status(options_).message().find("such as \"work\""), std::string::npos) << "a folder of others";
  const Result<bool> made = create_rocksdb_database(options_);
  EXPECT_EQ(made.status().code(), StatusCode::failed_precondition);
}

// A write-ahead log would be read, and removed.
TEST_F(DataDirectoryTest, WithAFileThatLooksLikeALogGetsNoDatabase) {
  std::filesystem::create_directory(path_);
  write_file(path_ + "/20261120.log", "of another program");
  EXPECT_NE(open_status(options_).message().find("such as \"20261120.log\""), std::string::npos);
  EXPECT_EQ(read_file(path_ + "/20261120.log"), "of another program");
}

// What a new file system has, what a start leaves that was killed early, and what the settings of this server name.
TEST_F(DataDirectoryTest, WithNothingOfOthersGetsADatabase) {
  std::filesystem::create_directories(path_ + "/lost+found");
  std::filesystem::create_directories(path_ + "/logs");
  write_file(path_ + "/LOCK", "");
  write_file(path_ + "/logs/kilokvd.log", "a line");
  write_file(path_ + "/admin.token", "a token");
  StorageOptions options = options_;
  options.own_files = {path_ + "/logs/kilokvd.log", "", path_ + "/../data/admin.token"};
  EXPECT_NE(open_status(options_).message().find("such as \"admin.token\""), std::string::npos)
      << "without the settings";
  {
    OpenLog log(options);
    log.append(1, 3);
  }
  EXPECT_EQ(OpenLog(options_).position.batch, 3u) << "a database that is there is opened beside anything";
  EXPECT_EQ(read_file(path_ + "/logs/kilokvd.log"), "a line");
}

// Such as /tmp, of an earlier version: others need it as it is.
TEST_F(DataDirectoryTest, WithFilesOfOthersStaysAsItIs) {
  std::filesystem::create_directory(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 01777), 0);
  make(path_ + "/theirs", 0644);
  write_file(path_ + "/" + kCreationFileName, "");  // a creation that did not end goes on
  { OpenLog log(options_); }
  EXPECT_EQ(mode_of(path_), 0777u);
  EXPECT_EQ(mode_of(path_ + "/theirs"), 0644u);
  EXPECT_EQ(open_to_others_, std::vector{path_});
}

TEST_F(DataDirectoryTest, ThatIsRefusedStaysAsItIs) {
  std::filesystem::create_directory(path_);
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
  make(path_ + "/CURRENT", 0644);
  EXPECT_FALSE(open_status(options_).ok());
  EXPECT_EQ(mode_of(path_), 0755u);
  EXPECT_EQ(mode_of(path_ + "/CURRENT"), 0644u);
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
  ASSERT_TRUE(DataDirectory::open(path_).ok());
  EXPECT_TRUE(DataDirectory::open(path_).ok());
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

// All of it is still in the write-ahead log.
TEST_F(DataDirectoryTest, ANoteBesideAnAcknowledgedBatchRemovesNothing) {
  const std::string copy = temporary_.path("copy");
  {
    OpenLog log(options_);
    log.append(1, 3);
    copy_directory(path_, copy);
  }
  write_file(copy + "/" + kCreationFileName, "");
  const Status status = open_status(options_for(copy));
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("ACKNOWLEDGED is there, but also CREATING"), std::string::npos) << status.message();
  std::filesystem::remove(copy + "/" + kCreationFileName);
  EXPECT_EQ(OpenLog(options_for(copy)).position.batch, 3u);
}

// RocksDB finds its files by their paths, so it would change those of the server that took the place.
TEST_F(DataDirectoryTest, ThatWasReplacedGetsNoCheckpointAndNoTrim) {
  OpenLog log(options_);
  log.append(1, 3);
  ASSERT_TRUE(log.log->checkpoint_begin().ok());
  std::filesystem::rename(path_, path_ + ".moved");
  std::filesystem::create_directory(path_);
  for (const Status& status :
       {log.log->checkpoint_end(position_after(sample_batch(3)), {}), log.log->checkpoint_begin(), log.log->trim(0)}) {
    EXPECT_EQ(status.code(), StatusCode::internal);
    EXPECT_NE(status.message().find("was replaced"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(std::filesystem::is_empty(path_));
  std::filesystem::remove(path_);
  std::filesystem::rename(path_ + ".moved", path_);
}

// Another directory would not help, so the error names the limit, and not --data-dir.
TEST_F(DataDirectoryTest, TooManyOpenFilesAreNoFaultOfTheDirectory) {
  std::filesystem::create_directory(path_);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::dup(STDIN_FILENO);
  ::close(lowest_free);
  for (const int more : {0, 1, 2, 4, 6}) {  // in the directory itself, its lock, and then in RocksDB
    SCOPED_TRACE(more);
    rlimit low = before;
    low.rlim_cur = static_cast<rlim_t>(lowest_free) + static_cast<rlim_t>(more);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    const Status status = open_status(options_);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_FALSE(status.ok());
    const std::string says =
        "Too many open files; this process may have " + std::to_string(low.rlim_cur) +
        " files open, and has them: raise this limit (ulimit -n, or LimitNOFILE in the unit of systemd)";
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find("--data-dir"), std::string::npos) << status.message();
  }
  EXPECT_TRUE(open_status(options_).ok());
}

// Root may write everywhere, so the test is another user for a moment.
TEST_F(DataDirectoryTest, ThatCannotBeWrittenIsNamed) {
  constexpr uid_t kOther = 65534;
  std::filesystem::create_directory(path_);
  ASSERT_EQ(::chmod(temporary_.path(".").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0555), 0);
  const bool is_root = ::geteuid() == 0;
  if (is_root && ::seteuid(kOther) != 0) FAIL() << "root may be any user";
  const Status status = open_status(options_);
  if (is_root && ::seteuid(0) != 0) FAIL() << "and root again";
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_EQ(status.message(), "data directory " + path_ +
                                  " cannot be written: Permission denied; let the user of this program write there, or "
                                  "choose another (--data-dir)");
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(DataDirectoryTest, ThatCannotBeCreatedIsNamed) {
  const Status status = DataDirectory::open(temporary_.path("missing/data")).status();
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_EQ(status.message(), "data directory " + temporary_.path("missing/data") + " cannot be created: its parent " +
                                  temporary_.path("missing") + " does not exist; make it first (--data-dir)");
  write_file(temporary_.path("file"), "");
  EXPECT_NE(DataDirectory::open(temporary_.path("file"))
                .status()
                .message()
                .find("cannot be opened: Not a directory (--data-dir)"),
            std::string::npos);
}

}  // namespace
}  // namespace kilokv::server::storage
