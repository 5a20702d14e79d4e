// Restores from a backup and an archive: where the versions begin, which damage and which gaps matter, and how the new
// directory may be named.
#include "server/offline/restore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "server/core/time_text.hpp"
#include "server/storage/archive_name.hpp"
#include "tests/unit/storage/backup_fixture.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::offline {
namespace {

using namespace storage;  // NOLINT(google-build-using-namespace): the fixture is of this room

constexpr Version kGap = Version{1} << 40;

// A batch without writes, so that the hash of the state is known: nothing is in it.
Batch empty_batch(BatchNumber number, Version first_version) {
  Batch batch(number);
  batch.header.first_version = first_version;
  batch.next_version = first_version + 1000;
  batch.state_hash = {};
  return batch;
}

void append(CommitLog* log, BatchNumber from, BatchNumber to, Version version) {
  for (BatchNumber number = from; number <= to; ++number, version += 1000) {
    const Batch batch = empty_batch(number, version);
    const LogRecord record = batch.record();
    ASSERT_TRUE(log->append({&record, 1}).ok());
  }
}

// A backup at batch 5, and an archive with four files of five batches each.
class RestoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(archive_);
    for (BatchNumber first = 1; first <= 16; first += 5) {
      OpenLog log(with_archive("data"));
      append(log.log.get(), first, first + 4, first * 1000);
      if (first > 1) continue;
      std::ofstream backup(backup_, std::ios::binary);
      for (const std::string& frame : frames_of(log.log->open_backup()->get())) backup << frame;
    }
  }
  StorageOptions with_archive(const std::string& name) const {
    StorageOptions options = options_for(temporary_.path(name));
    options.archive_dir = archive_;
    return options;
  }
  Result<Summary> restore_to(const std::string& name, std::optional<BatchNumber> batch = {},
                             std::optional<TimeUs> time_us = {}, bool has_archive = true) {
    return restore({.backup = backup_,
                    .directory = temporary_.path(name),
                    .archive = has_archive ? archive_ : "",
                    .batch = batch,
                    .time_us = time_us,
                    .warn = [this](const std::string& what) { warnings_.push_back(what); }});
  }
  // The files of the archive that SetUp() makes.
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(archive_)) {
      if (batches_of_archive_file(entry.path().filename().string())) found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  static void damage(const std::string& path, std::size_t from_end) {
    std::string content = read_file(path);
    content[content.size() - from_end] = static_cast<char>(content[content.size() - from_end] ^ 1);
    write_file(path, content);
  }
  static TimeUs time_of(BatchNumber batch) { return Batch(batch).header.time_us; }

  test::TestFolder temporary_;
  const std::string archive_ = temporary_.path("archive"), backup_ = temporary_.path("a.backup");
  std::vector<std::string> warnings_;
};

TEST_F(RestoreTest, RestoresToTheEndABatchOrATime) {
  const Result<Summary> all = restore_to("all");
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->batch, 20u);
  EXPECT_GE(all->next_version, 21000 + kGap);
  EXPECT_EQ(restore_to("batch", 12)->batch, 12u);
  EXPECT_EQ(restore_to("time", {}, time_of(12) + 5)->batch, 12u);
  EXPECT_EQ(restore_to("backup", {}, {}, false)->batch, 5u);
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
}

// The first restore gave versions to its clients. The second one must give others, with its archive and without.
TEST_F(RestoreTest, NoVersionComesAgainAfterASecondRestore) {
  const Result<Summary> first = restore_to("first", 10);
  ASSERT_TRUE(first.ok()) << first.status().message();
  constexpr Version kFarAhead = Version{1} << 50;
  {
    OpenLog log(with_archive("first"));
    append(log.log.get(), 11, 12, first->next_version);
    append(log.log.get(), 13, 13, kFarAhead);
  }
  const Result<Summary> second = restore_to("second", 10);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_GE(second->next_version, kFarAhead + 1000 + kGap);
  ASSERT_EQ(warnings_.size(), 1u) << "batches 11 to 13 of the first restore are not in the second";
  EXPECT_NE(warnings_.front().find("a later incarnation"), std::string::npos) << warnings_.front();
  std::set<Version> begins;
  for (int i = 0; i < 4; ++i) {
    begins.insert(restore_to("again" + std::to_string(i), {}, {}, false)->next_version);
  }
  EXPECT_EQ(begins.size(), 4u);
  EXPECT_GE(*begins.begin(), 6000 + kGap);
}

TEST_F(RestoreTest, AnotherDatabaseDoesNotRaiseTheVersions) {
  {
    OpenLog log(with_archive("other"));
    append(log.log.get(), 1, 1, Version{1} << 55);
  }
  EXPECT_LT(restore_to("new")->next_version, Version{1} << 50);
}

// What comes after the wanted moment is needed for its version only.
TEST_F(RestoreTest, ADamageOrAGapAfterTheWantedMomentDoesNotMatter) {
  const std::string content = read_file(files()[3]);
  damage(files()[3], 10);
  for (const auto& [name, batch, time_us] :
       {std::tuple{"batch", std::optional<BatchNumber>(12), std::optional<TimeUs>()},
        std::tuple{"time", std::optional<BatchNumber>(), std::optional<TimeUs>(time_of(12) + 5)}}) {
    const Result<Summary> damaged = restore_to(std::string(name) + " damaged", batch, time_us);
    ASSERT_TRUE(damaged.ok()) << damaged.status().message();
    EXPECT_EQ(damaged->batch, 12u);
    EXPECT_GE(damaged->next_version, Version{1} << 45) << "nobody knows which versions were given";
  }
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_NE(warnings_.front().find(files()[3]), std::string::npos) << warnings_.front();
  EXPECT_EQ(restore_to("end").status().code(), StatusCode::data_loss);
  write_file(files()[3], content);
  std::filesystem::remove(files()[2]);
  EXPECT_EQ(restore_to("batch gap", 8)->batch, 8u);
  EXPECT_EQ(restore_to("time gap", {}, time_of(8) + 5)->batch, 8u);
  // Nothing tells whether there were more batches up to this time.
  EXPECT_EQ(restore_to("in the gap", {}, time_of(12)).status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(restore_to("end of the gap").status().code(), StatusCode::failed_precondition);
  EXPECT_FALSE(std::filesystem::exists(temporary_.path("in the gap")));
  EXPECT_FALSE(std::filesystem::exists(temporary_.path("in the gap.partial")));
}

// The last file may be cut where a frame ends, or be empty: nothing after it tells that batches are missing.
TEST_F(RestoreTest, AnArchiveThatIsCutShortIsDamaged) {
  const std::string last = files()[3], content = read_file(last);
  int cuts = 0;
  for (std::size_t at = 0; at < content.size(); at += *frame_length(std::string_view(content).substr(at)), ++cuts) {
    SCOPED_TRACE("cut at byte " + std::to_string(at));
    write_file(last, content.substr(0, at));
    const Status status = restore_to("end").status();
    EXPECT_EQ(status.code(), StatusCode::data_loss);
    EXPECT_NE(status.message().find(last + ": the end is missing"), std::string::npos) << status.message();
    EXPECT_EQ(restore_to("before " + std::to_string(at), 15)->batch, 15u);
  }
  EXPECT_GE(cuts, 3);
}

TEST_F(RestoreTest, ATimeAfterTheEndIsRefused) {
  EXPECT_EQ(restore_to("last", {}, time_of(20))->batch, 20u);
  const Status status = restore_to("later", {}, time_of(20) + 1).status();
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_NE(status.message().find("the last batch that is there, of " + format_utc(time_of(20))), std::string::npos)
      << status.message();
  EXPECT_EQ(restore_to("alone", {}, time_of(8), false).status().code(), StatusCode::failed_precondition);
}

// An empty database would look like a restore of something.
TEST_F(RestoreTest, ATimeBeforeTheFirstBatchIsRefused) {
  const Status status = restore_to("earlier", {}, 1).status();
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  const std::string said =
      "the time 1970-01-01T00:00:00.000001Z is before the first batch, of " + format_utc(time_of(1));
  EXPECT_TRUE(status.message().starts_with(said)) << status.message();
  EXPECT_FALSE(std::filesystem::exists(temporary_.path("earlier")));
}

TEST_F(RestoreTest, TheDirectoryMayEndWithASlashAndMayBeEmpty) {
  for (const char* name : {"a/", "b//", "c/."}) {
    const Result<Summary> restored = restore_to(name);
    ASSERT_TRUE(restored.ok()) << restored.status().message();
    EXPECT_TRUE(std::filesystem::exists(temporary_.path(name) + "/CURRENT")) << name;
  }
  std::filesystem::create_directory(temporary_.path("empty"));
  EXPECT_TRUE(restore_to("empty/").ok());
}

// Before the work, not after it.
TEST_F(RestoreTest, ADirectoryThatCannotBeReplacedIsRefused) {
  std::filesystem::create_directory(temporary_.path("empty"));
  std::filesystem::create_directory_symlink(temporary_.path("empty"), temporary_.path("link"));
  const Status link = restore_to("link").status();
  EXPECT_EQ(link.code(), StatusCode::failed_precondition);
  EXPECT_NE(link.message().find("is a link"), std::string::npos) << link.message();
  EXPECT_EQ(restore_to("empty/..").status().code(), StatusCode::failed_precondition);
}

// An error after the rename of a file can leave two files that begin with the same batch.
TEST_F(RestoreTest, FilesThatRepeatBatchesAreNoGap) {
  const std::string folder = std::filesystem::path(files().front()).parent_path().string() + "/";
  const std::string data = temporary_.path("data"), whole = temporary_.path("whole");
  std::filesystem::create_directory(whole);
  {
    StorageOptions options = options_for(data);
    options.archive_dir = whole;
    OpenLog log(options);  // makes one file of everything
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(whole)) {
    if (!batches_of_archive_file(entry.path().filename().string())) continue;
    std::filesystem::copy_file(entry.path(), folder + entry.path().filename().string());
  }
  ASSERT_EQ(files().size(), 5u);
  EXPECT_EQ(restore_to("new")->batch, 20u);
}

}  // namespace
}  // namespace kilokv::server::offline
