// The tag of the write-ahead log: the file that holds it, and the writes that begin with it.
#include "server/storage/wal_tag.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>

#include "tests/unit/storage/checkpoint_fixture.hpp"
#include "tests/unit/storage/log_fixture.hpp"
#include "tests/unit/storage/wal_fixture.hpp"

namespace kilokv::server::storage {
namespace {

std::string tag_file(const std::string& directory) { return directory + "/" + kWalTagFileName; }

class WalTagTest : public testing::Test {
 protected:
  test::TestFolder temporary_;
  const std::string directory_ = temporary_.path("data");
};

TEST_F(WalTagTest, EveryWriteBeginsWithTheTag) {
  StorageOptions options = options_for(directory_);
  options.history_bytes_max = 16 << 10;
  OpenLog log(options);
  log.append(1, 100);
  ASSERT_TRUE(log.log->checkpoint_begin().ok());
  StoredSession session;
  session.piece = 1;  // raises the format
  ASSERT_TRUE(log.log->checkpoint_session(session).ok());
  ASSERT_TRUE(log.log->checkpoint_end(position_after(sample_batch(80)), "a table").ok());
  ASSERT_TRUE(log.log->trim(INT64_MAX).ok());
  ASSERT_GT(log.log->usage().first_batch, 1u);
  const auto tag = read_wal_tag(directory_);
  ASSERT_TRUE(tag.has_value());
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().extension() != ".log") continue;
    for (const WalWrite& write : wal_writes(read_file(entry.path()))) {
      EXPECT_TRUE(begins_with(write.bytes, *tag)) << entry.path() << " at byte " << write.begin;
      ++count;
    }
  }
  EXPECT_EQ(count, 1 + 100 + 2 + 1u) << "the creation, the batches, the checkpoint, the trim";
}

class TagFileTest : public WalTagTest {};

TEST_F(TagFileTest, IsDrawnAnewAtEachStartForTheOwnerOnly) {
  std::set<std::string> tags;
  for (int start = 0; start < 5; ++start) {
    OpenLog log(options_for(directory_));
    const std::string file = read_file(tag_file(directory_));
    EXPECT_EQ(file.size(), 24u);
    EXPECT_TRUE(tags.insert(file).second);
    struct stat found = {};
    ASSERT_EQ(::stat(tag_file(directory_).c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u);
    ASSERT_EQ(::chmod(tag_file(directory_).c_str(), 0644), 0);
  }
}

TEST_F(TagFileTest, AloneIsARemainOfADatabase) {
  { OpenLog log(options_for(directory_)); }
  const std::string rest = temporary_.path("rest");
  std::filesystem::create_directory(rest);
  std::filesystem::copy(tag_file(directory_), tag_file(rest));
  EXPECT_EQ(open_status(options_for(rest)).code(), StatusCode::data_loss);
}

TEST_F(TagFileTest, ThatCannotBeWrittenEndsTheStart) {
  { OpenLog(options_for(directory_)).append(1, 3); }
  std::filesystem::remove(tag_file(directory_));
  std::filesystem::create_directory(tag_file(directory_));
  const Status status = open_status(options_for(directory_));
  EXPECT_EQ(status.code(), StatusCode::internal);
  EXPECT_NE(status.message().find("cannot open " + tag_file(directory_)), std::string::npos) << status.message();
  std::filesystem::remove(tag_file(directory_));
  EXPECT_EQ(OpenLog(options_for(directory_)).transcript.lines, sample_lines(1, 3));
}

}  // namespace
}  // namespace kilokv::server::storage
