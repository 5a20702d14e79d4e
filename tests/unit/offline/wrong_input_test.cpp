// What is no backup and no database is called so, and a damaged backup is called damaged.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "server/offline/backup_writer.hpp"
#include "server/offline/check.hpp"
#include "server/offline/restore.hpp"
#include "server/storage/archive_name.hpp"
#include "tests/unit/storage/backup_fixture.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::offline {
namespace {

using namespace storage;  // NOLINT(google-build-using-namespace): the fixture is of this room

class WrongInputTest : public testing::Test {
 protected:
  void SetUp() override {
    StorageOptions options = options_for(temporary_.path("data"));
    options.archive_dir = temporary_.path("archive");
    std::filesystem::create_directory(options.archive_dir);
    OpenLog log(options);
    log.append(1, 10);
    for (const std::string& frame : frames_of(log.log->open_backup()->get())) backup_ += frame;
  }
  // Empty: it is a backup, and damaged. Otherwise the error.
  std::string check(const std::string& content) {
    const std::string path = temporary_.path("file");
    write_file(path, content);
    std::uint64_t found = 0;
    const auto checked = check_backup(path, [&found](const std::string&) { ++found; });
    if (!checked.ok()) return checked.status().message();
    EXPECT_GT(checked->damages, 0u);
    EXPECT_EQ(checked->damages, found);
    return "";
  }
  Status restore_from(const std::string& path) {
    return restore({.backup = path, .directory = temporary_.path("new"), .archive = "", .batch = {}, .time_us = {}})
        .status();
  }

  test::TestFolder temporary_;
  std::string backup_;
};

TEST_F(WrongInputTest, ADamagedBackupIsStillABackup) {
  for (std::size_t bit = 0; bit < 8 * 28; ++bit) {  // the head of the first frame, and more
    std::string flipped = backup_;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(check(flipped), "") << "bit " << bit;
  }
  for (std::size_t size = 0; size < 40; ++size) EXPECT_EQ(check(backup_.substr(0, size)), "") << size << " bytes";
  std::string other_magic = backup_;
  other_magic.replace(0, 4, "TEXT");
  EXPECT_EQ(check(other_magic), "");
  EXPECT_EQ(check(std::string(24, '\0') + backup_.substr(24)), "");
}

TEST_F(WrongInputTest, AFileOfAnotherKindIsNoBackup) {
  for (const std::string& text : {std::string("no backup at all"), std::string("x"), std::string(5000, ' '),
                                  std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10) + backup_}) {
    const std::string path = temporary_.path("file");
    EXPECT_EQ(check(text), path + " is no backup: it does not begin as one");
    const Status status = restore_from(path);
    EXPECT_EQ(status.code(), StatusCode::invalid_argument);
    EXPECT_EQ(status.message(), path + " is no backup: it does not begin as one");
    EXPECT_FALSE(std::filesystem::exists(temporary_.path("new.partial")));
  }
}

TEST_F(WrongInputTest, AFileOfAnArchiveIsNoBackup) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary_.path("archive"))) {
    if (!batches_of_archive_file(entry.path().filename().string())) continue;
    EXPECT_NE(check(read_file(entry.path().string())).find("is no backup: it is a file of an archive"),
              std::string::npos);
    return;
  }
  FAIL() << "no file of an archive";
}

TEST_F(WrongInputTest, ADirectoryIsNoBackup) {
  const Status status = restore_from(temporary_.path("data"));
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_EQ(status.message(), temporary_.path("data") + " is no backup: it is a directory");
}

TEST_F(WrongInputTest, ADirectoryWithoutADatabaseIsNoDamage) {
  const std::string other = temporary_.path("other");
  std::filesystem::create_directory(other);
  const auto code = [&other] { return check_directory(other, [](const std::string&) {}).status().code(); };
  EXPECT_EQ(code(), StatusCode::invalid_argument);
  write_file(other + "/letter.txt", "hello");
  EXPECT_EQ(code(), StatusCode::invalid_argument);
  EXPECT_EQ(check_directory(other + "/none", [](const std::string&) {}).status().code(),
            StatusCode::failed_precondition);
  // Parts of a database, without its file CURRENT, are a damage.
  write_file(other + "/000004.sst", "x");
  std::uint64_t damages = 0;
  const auto checked = check_directory(other, [&damages](const std::string&) { ++damages; });
  ASSERT_TRUE(checked.ok()) << checked.status().message();
  EXPECT_EQ(damages, 1u);
}

// The file that a backup goes on with may be a file of somebody else, such as a part of the image of a disk.
TEST_F(WrongInputTest, APartialFileOfAnotherKindIsNotTouched) {
  namespace fs = std::filesystem;
  const std::string path = temporary_.path("letter"), partial = path + ".partial";
  const std::string image = std::string(3 << 20, '\0') + "a file system";
  for (const std::string& content :
       {std::string("Dear reader"), image, std::string("KBAK\5\0\0\0 and more of it", 24)}) {
    write_file(partial, content);
    fs::permissions(partial, fs::perms(0644));
    const auto writer = BackupWriter::open(path, false);
    EXPECT_EQ(writer.status().code(), StatusCode::invalid_argument);
    EXPECT_NE(writer.status().message().find(partial + " is no backup: it "), std::string::npos)
        << writer.status().message();
    EXPECT_EQ(read_file(partial), content);
    EXPECT_EQ(fs::status(partial).permissions(), fs::perms(0644));
  }
}

// A crash of the machine can leave a file with its length and without its content.
TEST_F(WrongInputTest, APartialFileOfZerosIsBegunAgain) {
  const std::string path = temporary_.path("zeros"), partial = path + ".partial";
  write_file(partial, std::string(100000, '\0'));
  const auto writer = BackupWriter::open(path, false);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  EXPECT_EQ((*writer)->bytes(), 0u);
  EXPECT_EQ(read_file(partial), "");
  EXPECT_EQ(std::filesystem::status(partial).permissions(), std::filesystem::perms(0600));
}

}  // namespace
}  // namespace kilokv::server::offline
