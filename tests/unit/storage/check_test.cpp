// The check of a data directory: it changes nothing, it finds each damage and goes on after it, and it reads what a
// start reads.
#include "server/storage/check.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <random>

#include "server/storage/acknowledged_file.hpp"
#include "tests/unit/storage/checkpoint_fixture.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {
namespace {

// Names, contents and times of all files.
std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    struct stat found = {};
    EXPECT_EQ(::stat(entry.path().c_str(), &found), 0);
    files[entry.path().filename().string()] = std::to_string(found.st_mtim.tv_sec) + "." +
                                              std::to_string(found.st_mtim.tv_nsec) + " " +
                                              std::to_string(found.st_mode) + " " + read_file(entry.path().string());
  }
  return files;
}

struct Checked {
  explicit Checked(const std::string& directory) {
    const Result<CheckedLog> checked =
        check_directory(options_for(directory), &transcript, [this](const Status& damage) {
          EXPECT_EQ(damage.code(), StatusCode::data_loss);
          damages.push_back(damage.message());
        });
    status = checked.status();
    if (checked.ok()) log = *checked;
  }
  bool found(const std::string& words) const {
    return std::any_of(damages.begin(), damages.end(),
                       [&](const std::string& damage) { return damage.find(words) != std::string::npos; });
  }

  Transcript transcript;
  std::vector<std::string> damages;
  Status status;
  CheckedLog log;
};

// A database with a checkpoint, log records before and after it, and a write-ahead log.
class CheckTest : public testing::Test {
 protected:
  void SetUp() override {
    OpenLog log(options_for(directory_));
    log.append(1, 20);
    ASSERT_TRUE(checkpoint(log.log.get(), 12, 20, 3).ok());
    log.append(21, 30);
    copy_directory(directory_, killed_);  // as a killed process leaves it
  }
  test::TestFolder temporary_;
  const std::string directory_ = temporary_.path("data");
  const std::string killed_ = temporary_.path("killed");
};

TEST_F(CheckTest, ReadsWhatAStartReadsAndChangesNothing) {
  const auto before = files_of(killed_);
  const Checked checked(killed_);
  ASSERT_TRUE(checked.status.ok()) << checked.status.message();
  EXPECT_TRUE(checked.damages.empty()) << checked.damages.front();
  EXPECT_EQ(files_of(killed_), before);
  EXPECT_EQ(checked.log.position.batch, 30u);
  EXPECT_EQ(checked.log.position.checkpoint_batch, 12u);
  EXPECT_EQ(checked.log.first_batch, 1u);
  const OpenLog started(options_for(killed_));
  EXPECT_EQ(checked.transcript.lines, started.transcript.lines);
}

TEST_F(CheckTest, ReadsADatabaseThatWasClosed) {
  const Checked checked(directory_);
  ASSERT_TRUE(checked.status.ok()) << checked.status.message();
  EXPECT_TRUE(checked.damages.empty());
  EXPECT_EQ(checked.log.position.batch, 30u);
}

TEST_F(CheckTest, RefusesADirectoryInUse) {
  const OpenLog open(options_for(directory_));
  const Checked checked(directory_);
  EXPECT_EQ(checked.status.code(), StatusCode::failed_precondition);
  EXPECT_NE(checked.status.message().find("in use"), std::string::npos) << checked.status.message();
}

TEST_F(CheckTest, RefusesADirectoryWithoutADatabase) {
  const std::string empty = temporary_.path("empty");
  EXPECT_EQ(Checked(empty).status.code(), StatusCode::failed_precondition);
  EXPECT_FALSE(std::filesystem::exists(empty));
  std::filesystem::create_directory(empty);
  EXPECT_EQ(Checked(empty).status.code(), StatusCode::failed_precondition);
  EXPECT_TRUE(std::filesystem::is_empty(empty));
}

TEST_F(CheckTest, NamesEachOfTwoDamages) {
  std::filesystem::remove(killed_ + "/" + kAcknowledgedFileName);
  write_file(killed_ + "/" + kAcknowledgedFileName, "no acknowledgement");
  const std::string wal = newest_write_ahead_log(killed_);
  std::string content = read_file(wal);
  content[content.size() / 2] ^= 1;
  write_file(wal, content);
  const Checked checked(killed_);
  EXPECT_TRUE(checked.found(kAcknowledgedFileName));
  EXPECT_TRUE(checked.found(std::filesystem::path(wal).filename().string()));
  EXPECT_GE(checked.damages.size(), 2u);
}

// Each byte of the table files has a checksum, or a check of its own.
TEST_F(CheckTest, FindsAFlipInAnyTableFile) {
  {
    const OpenLog closes(options_for(killed_));  // moves the write-ahead log into table files
  }
  std::mt19937 random(7);
  for (const auto& entry : std::filesystem::directory_iterator(killed_)) {
    if (entry.path().extension() != ".sst") continue;
    const std::string copy = temporary_.path("copy");
    for (int i = 0; i < 8; ++i) {
      copy_directory(killed_, copy);
      const std::string table = copy + "/" + entry.path().filename().string();
      std::string content = read_file(table);
      const std::size_t place = random() % content.size();
      content[place] = static_cast<char>(content[place] ^ 1 << random() % 8);
      write_file(table, content);
      const Checked checked(copy);
      // An error that is no damage finds nothing.
      const bool is_found =
          checked.status.ok() ? !checked.damages.empty() : checked.status.code() == StatusCode::data_loss;
      EXPECT_TRUE(is_found) << entry.path().filename() << ", byte " << place << " of " << content.size() << ": "
                            << checked.status.message();
    }
  }
}

// A scan of a family ends at the first damaged block.
TEST_F(CheckTest, NamesEachDamagedTable) {
  {
    OpenLog log(options_for(killed_));
    log.append(31, 40);
  }
  { const OpenLog closes(options_for(killed_)); }
  std::vector<std::string> tables;
  for (const auto& entry : std::filesystem::directory_iterator(killed_)) {
    if (entry.path().extension() != ".sst") continue;
    tables.push_back(entry.path().filename().string());
    std::string content = read_file(entry.path().string());
    content[10] = static_cast<char>(content[10] ^ 1);
    write_file(entry.path().string(), content);
  }
  ASSERT_GE(tables.size(), 4u);
  const Checked checked(killed_);
  for (const std::string& table : tables) EXPECT_TRUE(checked.found(table)) << table;
}

TEST_F(CheckTest, RefusesADatabaseWhoseCreationDidNotEnd) {
  std::filesystem::create_directory(temporary_.path("creating"));
  write_file(temporary_.path("creating") + "/CREATING", "");
  EXPECT_EQ(Checked(temporary_.path("creating")).status.code(), StatusCode::failed_precondition);
}

}  // namespace
}  // namespace kilokv::server::storage
