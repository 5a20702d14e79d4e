// The tag of the write-ahead log. Bytes of clients in a torn end never look like a later write. Real damage before a
// later write is still a loss, wherever that write begins. Directories of older versions, and those whose tag is lost,
// lose nothing.
#include "server/storage/wal_tag.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "server/storage/acknowledged_file.hpp"
#include "server/storage/bytes.hpp"
#include "server/storage/store.hpp"
#include "server/storage/wal_check.hpp"
#include "tests/unit/storage/checkpoint_fixture.hpp"
#include "tests/unit/storage/log_fixture.hpp"
#include "tests/unit/storage/wal_fixture.hpp"

namespace kilokv::server::storage {
namespace {

std::string tag_file(const std::string& directory) { return directory + "/" + kWalTagFileName; }

// What a client may store to forge a later write: fragments without data at any place; a write of this log, without the
// tag that the client does not know; a whole log of another database, with the tag of that one.
std::string planted_value(const std::string& forged_write, const std::string& foreign_log) {
  const std::string shortest = wal_fragment(1, {});
  std::string forged;
  append_wal_write(&forged, forged_write);
  std::string value;
  while (value.size() < 150000) {
    for (int i = 0; i < 1000; ++i) value += shortest;
    for (int i = 0; i < 50; ++i) value += wal_fragment(2, std::string(static_cast<std::size_t>(i), 'x'));
    value += forged + foreign_log + std::string(value.size() % 97, 'x');
  }
  return value;
}

std::string log_of_another_database(const std::string& directory) {
  OpenLog log(options_for(directory));
  log.append(1, 3);
  return read_file(newest_write_ahead_log(directory));
}

class WalTagTest : public testing::Test {
 protected:
  // Appends sample batches up to `last`, and then a batch whose value looks like writes. Copies the directory as it was
  // when the process was killed in that batch: nobody was told of it.
  void kill_in_planted_batch(const std::string& directory, BatchNumber first, BatchNumber last) {
    OpenLog log(options_for(directory));
    log.append(first, last);
    const std::string acknowledged = read_file(directory + "/" + kAcknowledgedFileName);
    const std::string before = read_file(newest_write_ahead_log(directory));
    const std::vector<WalWrite> writes = wal_writes(before);
    const std::string forged =
        without_tag(writes.empty() ? std::string(100, 'f') : writes.back().bytes);  // of a client's batch
    Batch planted(last + 1);
    planted.write_bytes(0, "planted", planted_value(forged, log_of_another_database(temporary_.path("foreign"))));
    const LogRecord record = planted.record();
    ASSERT_TRUE(log.log->append({&record, 1}).ok());
    copy_directory(directory, killed_);
    write_file(killed_ + "/" + kAcknowledgedFileName, acknowledged);
    content_ = read_file(newest_write_ahead_log(killed_));
    planted_begin_ = before.size();
  }

  // Whether the check accepts the log of killed_, cut here.
  Status check_cut_at(std::size_t size) {
    const std::string directory = temporary_.path("logs");
    std::filesystem::create_directory(directory);
    std::filesystem::copy(tag_file(killed_), tag_file(directory), std::filesystem::copy_options::overwrite_existing);
    write_file(directory + "/000004.log", content_.substr(0, size));
    return check_write_ahead_logs(directory);
  }

  StorageOptions cut_at(std::size_t size) {
    const std::string copy = temporary_.path("copy");
    copy_directory(killed_, copy);
    write_file(newest_write_ahead_log(copy), content_.substr(0, size));
    return options_for(copy);
  }

  // The start after each of these kills gives all acknowledged batches, and goes on.
  void expect_cuts_lose_nothing(BatchNumber last) {
    ASSERT_LT(planted_begin_ + 150000, content_.size());
    for (std::size_t size = planted_begin_; size < content_.size(); size += 211) {
      ASSERT_TRUE(check_cut_at(size).ok()) << "cut at " << size;
    }
    for (std::size_t size = planted_begin_; size < content_.size(); size += 9001) {
      const StorageOptions options = cut_at(size);
      OpenLog log(options);
      ASSERT_EQ(log.position.batch, last) << "cut at " << size;
      ASSERT_EQ(log.transcript.lines, sample_lines(1, last));
      log.append(last + 1, last + 1);
      log.log.reset();
      ASSERT_EQ(OpenLog(options).transcript.lines, sample_lines(1, last + 1));
    }
  }

  test::TestFolder temporary_;
  const std::string directory_ = temporary_.path("data");
  const std::string killed_ = temporary_.path("killed");
  std::string content_;
  std::size_t planted_begin_ = 0;  // in content_
};

TEST_F(WalTagTest, BytesOfClientsInATornEndAreNoLaterWrite) {
  kill_in_planted_batch(directory_, 1, 3);
  expect_cuts_lose_nothing(3);
}

TEST_F(WalTagTest, BytesOfClientsInTheFirstWriteOfALogAreNoLaterWrite) {
  { OpenLog(options_for(directory_)).append(1, 3); }
  kill_in_planted_batch(directory_, 4, 3);
  EXPECT_EQ(planted_begin_, 0u);
  expect_cuts_lose_nothing(3);
}

TEST_F(WalTagTest, AnAcknowledgedWriteIsNotCutWhateverIsInIt) {
  kill_in_planted_batch(directory_, 1, 3);
  std::filesystem::copy(directory_ + "/" + kAcknowledgedFileName, killed_ + "/" + kAcknowledgedFileName,
                        std::filesystem::copy_options::overwrite_existing);
  for (std::size_t size = planted_begin_; size < content_.size(); size += 30011) {
    EXPECT_EQ(open_status(cut_at(size)).code(), StatusCode::data_loss) << "cut at " << size;
  }
}

// RocksDB begins a new log with an empty write before it notes that the torn one is done. A kill in between leaves
// both.
TEST_F(WalTagTest, AStartThatIsKilledAfterATornEndLosesNothing) {
  kill_in_planted_batch(directory_, 1, 3);
  const StorageOptions options = cut_at(content_.size() - 1);
  const std::string& torn = options.data_dir;
  const std::string during = temporary_.path("during"), opened = temporary_.path("opened");
  copy_directory(torn, during);
  {
    const auto store = Store::open(options, nullptr);
    ASSERT_TRUE(store.ok()) << store.status().message();
    copy_directory(torn, opened);
  }
  const std::filesystem::path next = newest_write_ahead_log(opened);
  const std::vector<WalWrite> writes = wal_writes(read_file(next));
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].bytes.size(), 12u) << "an empty write";
  std::filesystem::copy(next, during + "/" + next.filename().string());
  OpenLog log(options_for(during));
  ASSERT_EQ(log.transcript.lines, sample_lines(1, 3));
  log.append(4, 5);
}

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

// Writes of exact sizes, through RocksDB.
class WalDamageTest : public WalTagTest {
 protected:
  void SetUp() override {
    auto store = Store::open(options_for(directory_), nullptr);
    ASSERT_TRUE(store.ok());
    store_ = std::move(*store);
    std::filesystem::create_directory(logs_);
    std::filesystem::copy(tag_file(directory_), tag_file(logs_));
  }

  std::size_t size() const { return std::filesystem::file_size(newest_write_ahead_log(directory_)); }

  // The log from this byte on.
  std::string content(std::size_t begin) const {
    std::string bytes(size() - begin, '\0');
    std::ifstream(newest_write_ahead_log(directory_), std::ios::binary)
        .seekg(static_cast<std::streamoff>(begin))
        .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
  }

  rocksdb::WriteBatch batch_of(std::size_t value_bytes) const {
    rocksdb::WriteBatch batch;
    store_->begin_write(&batch);
    EXPECT_TRUE(batch.Put(store_->family(Family::log), "key", std::string(value_bytes, 'v')).ok());
    return batch;
  }

  void write(std::size_t value_bytes) {
    rocksdb::WriteBatch batch = batch_of(value_bytes);
    ASSERT_TRUE(store_->write({}, &batch).ok());
  }

  // A write that ends so that `left` bytes of its block are left.
  void write_to_end_of_block(std::size_t left) {
    std::size_t value = 20000;
    const std::size_t begin = size(), other = batch_of(value).GetDataSize() - value;
    const std::size_t end = (kWalBlockBytes - left) % kWalBlockBytes;
    while (end_of_wal_write(begin, other + value) % kWalBlockBytes != end) ++value;
    write(value);
  }

  Status check(const std::string& file) {
    write_file(logs_ + "/000004.log", file);
    return check_write_ahead_logs(logs_);
  }

  std::unique_ptr<Store> store_;
  const std::string logs_ = temporary_.path("logs");
};

TEST_F(WalDamageTest, BeforeALaterWriteIsALossWhereverThatBegins) {
  for (std::size_t left = 0; left < 60; ++left) {
    write_to_end_of_block(0);
    const std::size_t begin = size();
    write_to_end_of_block(left);
    write(left % 2 == 0 ? 10 : 40000);
    const std::string file = content(begin);
    const std::vector<WalWrite> writes = wal_writes(file);
    const WalWrite& damaged = writes[writes.size() - 2];
    ASSERT_EQ(damaged.end % kWalBlockBytes, (kWalBlockBytes - left) % kWalBlockBytes);
    ASSERT_TRUE(check(file).ok());
    for (const std::size_t place : {damaged.begin, damaged.begin + 4, damaged.begin + 15, damaged.begin + 25,
                                    damaged.begin + 1000, damaged.end - 1}) {
      std::string changed = file;
      changed[place] = static_cast<char>(changed[place] ^ 0x55);
      EXPECT_EQ(check(changed).code(), StatusCode::data_loss) << left << " bytes left, damage at " << place;
    }
  }
}

// The tag must be read to its end. So a later write that was torn in its first bytes does not count.
TEST_F(WalDamageTest, BeforeATornWriteCountsOnceItsBeginningIsIntact) {
  write_to_end_of_block(20);  // the first fragment of the next write has 13 bytes of data
  write(40000);
  std::string file = content(0);
  const std::vector<WalWrite> writes = wal_writes(file);
  const std::size_t damaged = writes[writes.size() - 2].begin + 40, last = writes.back().begin;
  file[damaged] = static_cast<char>(file[damaged] ^ 1);
  EXPECT_TRUE(check(file.substr(0, last + 20)).ok());
  EXPECT_TRUE(check(file.substr(0, last + 20 + kWalBlockBytes - 1)).ok());
  EXPECT_EQ(check(file.substr(0, last + 20 + kWalBlockBytes)).code(), StatusCode::data_loss);
}

// A fragment is forged at the end of a block, and the real next one makes it whole. Only the tag is missing.
TEST_F(WalDamageTest, InAWriteIsNoLossWhateverIsAtTheEndOfABlock) {
  write(10);
  for (std::size_t length = 0; length < 30; ++length) {
    const std::string forged = wal_fragment(2, std::string(length, 'x'));
    std::string file = content(0);
    std::string torn = batch_of(100000).Data();
    const std::size_t first = kWalBlockBytes - file.size() - kWalFragmentHeaderBytes;  // data before the block's end
    torn.replace(first - forged.size(), forged.size(), forged);
    append_wal_write(&file, torn);
    ASSERT_TRUE(file.substr(0, kWalBlockBytes).ends_with(forged));
    EXPECT_TRUE(check(file.substr(0, file.size() - 1)).ok()) << length;
  }
}

// RocksDB puts the batches of two threads into one write. So there may be a tag inside a write, after bytes of clients.
TEST_F(WalDamageTest, InAWriteWithTwoTagsIsNoLoss) {
  write(10);
  const std::string second = batch_of(50).Data();
  std::string forged = wal_fragment(1, std::string(12, '\0') + second.substr(12));
  forged[0] = static_cast<char>(forged[0] ^ 1);  // nobody can compute the checksum without the tag
  std::string file = content(0);
  append_wal_write(&file, batch_of(1000).Data() + forged);
  EXPECT_TRUE(check(file.substr(0, file.size() - 1)).ok());
}

TEST_F(WalDamageTest, AtTheEndOfALogWithALaterLogIsALoss) {
  write(10);
  write(10);
  const std::string file = content(0);
  write_file(logs_ + "/000010.log", file);
  EXPECT_EQ(check(file.substr(0, file.size() - 1)).code(), StatusCode::data_loss);
  write_file(logs_ + "/000010.log", file.substr(0, 20));
  EXPECT_TRUE(check(file.substr(0, file.size() - 1)).ok()) << "both writes may be torn";
}

// A directory as a killed program of a version without tags leaves it.
class OlderDirectoryTest : public WalTagTest {
 protected:
  static constexpr BatchNumber kBatches = 8;

  void SetUp() override {
    OpenLog log(options_for(directory_));
    log.append(1, kBatches);
    copy_directory(directory_, older_);
    for (const WalWrite& write : wal_writes(read_file(newest_write_ahead_log(older_)))) {
      append_wal_write(&log_, without_tag(write.bytes));
    }
    std::filesystem::remove(tag_file(older_));
    write_file(newest_write_ahead_log(older_), log_);
  }

  // The status of a start after damage at this byte of the log. No acknowledgement helps the check.
  StatusCode start_with_damage(std::size_t place) {
    const std::string copy = temporary_.path("copy");
    copy_directory(older_, copy);
    std::string damaged = log_;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x20);
    write_file(newest_write_ahead_log(copy), damaged);
    std::filesystem::remove(copy + "/" + kAcknowledgedFileName);
    return open_status(options_for(copy)).code();
  }

  const std::string older_ = temporary_.path("older");
  std::string log_;
};

TEST_F(OlderDirectoryTest, OpensAndIsProtectedFromThenOn) {
  {
    OpenLog log(options_for(older_));
    EXPECT_EQ(log.transcript.lines, sample_lines(1, kBatches));
    EXPECT_TRUE(read_wal_tag(older_).has_value());
  }
  kill_in_planted_batch(older_, kBatches + 1, kBatches + 2);
  expect_cuts_lose_nothing(kBatches + 2);
}

TEST_F(OlderDirectoryTest, WithDamageIsRefused) {
  const std::size_t last = wal_writes(log_).back().begin;
  for (std::size_t place = 0; place < last; place += 157) {
    EXPECT_EQ(start_with_damage(place), StatusCode::data_loss) << "byte " << place;
  }
  EXPECT_EQ(start_with_damage(last + 30), StatusCode::ok);
}

// Somebody went back to the older version. It leaves the tag as it is.
TEST_F(OlderDirectoryTest, WithTheTagOfANewerVersionIsRefusedForDamage) {
  std::filesystem::copy(tag_file(directory_), tag_file(older_));
  const std::vector<WalWrite> writes = wal_writes(log_);
  for (std::size_t place = writes[1].begin; place < writes.back().begin; place += 157) {
    EXPECT_EQ(start_with_damage(place), StatusCode::data_loss) << "byte " << place;
  }
}

class TagFileTest : public WalTagTest {
 protected:
  // What may become of the file.
  static std::vector<std::string> damaged_tags(const std::string& whole) {
    std::string flipped = whole;
    flipped[whole.size() - 3] = static_cast<char>(flipped[whole.size() - 3] ^ 1);
    return {"", whole.substr(0, whole.size() - 1), flipped, std::string(whole.size(), '\0')};
  }
};

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

TEST_F(TagFileTest, ThatIsLostMakesTheNextStartStricterAndIsDrawnAnew) {
  std::string before_last;
  {
    OpenLog log(options_for(directory_));
    log.append(1, 5);
    before_last = read_file(newest_write_ahead_log(directory_));
    log.append(6, 6);
    copy_directory(directory_, killed_);
  }
  std::vector<std::string> files = damaged_tags(read_file(tag_file(killed_)));
  files.push_back(read_file(tag_file(directory_)));
  { OpenLog draws_another(options_for(directory_)); }
  files.back() = read_file(tag_file(directory_));
  for (const std::string& file : files) {
    const std::string copy = temporary_.path("copy");
    copy_directory(killed_, copy);
    write_file(tag_file(copy), file);
    std::string content = read_file(newest_write_ahead_log(copy));
    std::string damaged = content;
    damaged[before_last.size() - 60] = static_cast<char>(damaged[before_last.size() - 60] ^ 1);
    write_file(newest_write_ahead_log(copy), damaged);
    EXPECT_EQ(open_status(options_for(copy)).code(), StatusCode::data_loss);
    EXPECT_EQ(read_file(tag_file(copy)), file) << "nothing is changed";
    write_file(newest_write_ahead_log(copy), content);
    EXPECT_EQ(OpenLog(options_for(copy)).transcript.lines, sample_lines(1, 6));
    EXPECT_NE(read_file(tag_file(copy)), file);
    EXPECT_TRUE(read_wal_tag(copy).has_value());
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
