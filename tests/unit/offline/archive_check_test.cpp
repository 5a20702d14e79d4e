// The check of an archive: each flip, each missing file and each missing end is found.
#include "server/offline/archive_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "server/storage/archive_name.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::offline {
namespace {

using namespace storage;  // NOLINT(google-build-using-namespace): the fixture is of this room

// Four files with five batches each: each start of the log makes one.
class ArchiveCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(archive_);
    StorageOptions options = options_for(temporary_.path("data"));
    options.archive_dir = archive_;
    for (BatchNumber first = 1; first <= 16; first += 5) {
      OpenLog log(options);
      log.append(first, first + 4);
    }
  }
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(archive_)) {
      if (batches_of_archive_file(entry.path().filename().string())) found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  std::vector<std::string> damages() const {
    std::vector<std::string> found;
    const auto checked = check_archive(archive_, [&](const std::string& damage) { found.push_back(damage); });
    EXPECT_TRUE(checked.ok()) << checked.status().message();
    if (!checked.ok()) return found;
    EXPECT_EQ(checked->front().damages, found.size());
    return found;
  }
  void damage_last_file() const {
    std::string content = read_file(files().back());
    content[content.size() - 10] = static_cast<char>(content[content.size() - 10] ^ 1);
    write_file(files().back(), content);
  }

  test::TestFolder temporary_;
  const std::string archive_ = temporary_.path("archive");
};

TEST_F(ArchiveCheckTest, TellsWhatAWholeArchiveHas) {
  ASSERT_EQ(files().size(), 4u);
  const std::string folder = std::filesystem::path(files().front()).parent_path().string();
  for (const std::string& path : {archive_, folder, folder + "/"}) {
    EXPECT_TRUE(is_archive(path)) << path;
    const auto checked = check_archive(path, [](const std::string& damage) { FAIL() << damage; });
    ASSERT_TRUE(checked.ok()) << checked.status().message();
    ASSERT_EQ(checked->size(), 1u);
    const Summary& summary = checked->front();
    EXPECT_EQ(summary.files, 4u);
    EXPECT_EQ(summary.first_log_batch, 1u);
    EXPECT_EQ(summary.batch, 20u);
    EXPECT_EQ(summary.time_us, sample_batch(20).header.time_us);
    EXPECT_EQ(summary.incarnation, std::filesystem::path(folder).filename().string());
  }
  EXPECT_FALSE(is_archive(temporary_.path("data")));
  EXPECT_FALSE(is_archive(files().front()));
  EXPECT_FALSE(is_archive(temporary_.path("missing")));
}

TEST_F(ArchiveCheckTest, EachFlipIsFound) {
  std::mt19937 random(7);
  for (const std::string& path : files()) {
    const std::string content = read_file(path);
    for (int i = 0; i < 100; ++i) {
      const std::size_t place = random() % content.size();
      std::string flipped = content;
      flipped[place] = static_cast<char>(flipped[place] ^ 1 << random() % 8);
      write_file(path, flipped);
      EXPECT_FALSE(damages().empty()) << path << ", byte " << place << " of " << content.size();
    }
    for (const std::size_t size : {std::size_t{0}, std::size_t{10}, content.size() - 1}) {
      write_file(path, content.substr(0, size));
      EXPECT_FALSE(damages().empty()) << path << ", " << size << " bytes";
    }
    write_file(path, content);
    EXPECT_TRUE(damages().empty());
  }
}

TEST_F(ArchiveCheckTest, AFileThatIsMissingIsAGap) {
  std::filesystem::remove(files()[1]);
  const std::vector<std::string> found = damages();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found.front().find("lacks the batches 6 to 10"), std::string::npos) << found.front();
}

// As after a start that has copied nothing yet. The other incarnations are checked nevertheless.
TEST_F(ArchiveCheckTest, AFolderWithoutFilesIsWhole) {
  std::filesystem::create_directory(archive_ + "/" + std::string(32, '0'));
  damage_last_file();
  std::size_t found = 0;
  const auto checked = check_archive(archive_, [&](const std::string&) { ++found; });
  ASSERT_TRUE(checked.ok()) << checked.status().message();
  ASSERT_EQ(checked->size(), 2u);
  EXPECT_EQ(checked->front().files, 0u);
  EXPECT_EQ(checked->front().damages, 0u);
  EXPECT_TRUE(checked->front().is_archive);
  EXPECT_EQ(checked->back().files, 4u);
  EXPECT_EQ(found, 1u);
}

// An error after the rename of a file can leave two files that begin with the same batch, in any order of the folder.
TEST_F(ArchiveCheckTest, FilesThatRepeatBatchesAreNoGap) {
  const std::string whole = temporary_.path("whole");
  std::filesystem::create_directory(whole);
  StorageOptions options = options_for(temporary_.path("data"));
  options.archive_dir = whole;
  for (const BatchNumber last : {20, 25}) {
    OpenLog log(options);  // makes a file of everything, and then one of five batches
    if (last == 25) log.append(21, 25);
  }
  const std::string folder = std::filesystem::path(files().front()).parent_path().string() + "/";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(whole)) {
    if (!batches_of_archive_file(entry.path().filename().string())) continue;
    std::filesystem::copy_file(entry.path(), folder + entry.path().filename().string());
  }
  ASSERT_EQ(files().size(), 6u);
  const auto checked = check_archive(archive_, [](const std::string& damage) { ADD_FAILURE() << damage; });
  ASSERT_TRUE(checked.ok());
  EXPECT_EQ(checked->front().batch, 25u);
  const std::vector<std::string> all = files();
  std::filesystem::remove(all[3]);  // the file of everything has what these two have
  std::filesystem::remove(all[4]);
  EXPECT_TRUE(damages().empty());
}

TEST_F(ArchiveCheckTest, AFileOfAnotherNameOrOfAnotherLogIsFound) {
  const std::vector<std::string> all = files();
  const std::string folder = std::filesystem::path(all.front()).parent_path().string() + "/";
  std::filesystem::rename(all[3], folder + archive_file_name(16, 21));
  EXPECT_EQ(damages().size(), 1u);
  std::filesystem::rename(folder + archive_file_name(16, 21), all[3]);
  ASSERT_TRUE(damages().empty());
  // The same batches of a log that has gone another way.
  StorageOptions other = options_for(temporary_.path("other"));
  other.archive_dir = temporary_.path("other archive");
  std::filesystem::create_directory(other.archive_dir);
  {
    OpenLog log(other);
    log.append(1, 5);
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(other.archive_dir)) {
    if (entry.is_regular_file()) {
      std::filesystem::copy_file(entry.path(), all[0], std::filesystem::copy_options::overwrite_existing);
    }
  }
  const std::vector<std::string> found = damages();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found.front().find("does not follow"), std::string::npos) << found.front();
}

}  // namespace
}  // namespace kilokv::server::offline
