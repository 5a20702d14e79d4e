// Damage of every kind to the files of a closed database: what was acknowledged comes back whole, or the start refuses
// with DATA_LOSS and says where. Only an end that nobody was told of is cut.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <vector>

#include "server/storage/acknowledged_file.hpp"
#include "server/storage/bytes.hpp"
#include "server/storage/store.hpp"
#include "server/storage/wal_check.hpp"
#include "server/storage/wal_tag.hpp"
#include "tests/unit/storage/checkpoint_fixture.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {
namespace {

std::string newest_manifest(const std::string& directory) {
  std::string name = read_file(directory + "/CURRENT");
  name.pop_back();  // the end of the line
  return name;
}

// A directory as a killed process leaves it: copied while the log is open, so that its content is in the write-ahead
// log. `previous` is the state of the acknowledgement before the last batch.
class DamageTest : public testing::Test {
 protected:
  static constexpr BatchNumber kBatches = 12;

  void SetUp() override {
    OpenLog log(options_for(directory_));
    log.append(1, kBatches - 1);
    previous_acknowledged_ = read_file(directory_ + "/" + kAcknowledgedFileName);
    before_last_ = read_file(newest_write_ahead_log(directory_)).size();
    log.append(kBatches, kBatches);
    copy_directory(directory_, killed_);
    wal_ = newest_write_ahead_log(killed_);
    content_ = read_file(wal_);
  }

  // A fresh copy with other content in its write-ahead log.
  StorageOptions with_log(const std::string& content, bool last_was_acknowledged) {
    const std::string copy = temporary_.path("copy");
    copy_directory(killed_, copy);
    write_file(copy + "/" + std::filesystem::path(wal_).filename().string(), content);
    if (!last_was_acknowledged) write_file(copy + "/" + kAcknowledgedFileName, previous_acknowledged_);
    return options_for(copy);
  }

  // A folder for logs alone, with the tag of this database or without one.
  std::string folder_for_logs(const std::string& database, bool tag_is_known) {
    const std::string folder = temporary_.path(tag_is_known ? "tagged" : "untagged");
    std::filesystem::create_directory(folder);
    if (tag_is_known) write_file(folder + "/" + kWalTagFileName, read_file(database + "/" + kWalTagFileName));
    return folder;
  }

  test::TestFolder temporary_;
  const std::string directory_ = temporary_.path("data");
  const std::string killed_ = temporary_.path("killed");
  std::string wal_, content_, previous_acknowledged_;
  std::size_t before_last_ = 0;  // bytes of the write-ahead log before the last batch
};

TEST_F(DamageTest, AKilledProcessLosesNothing) {
  ASSERT_LT(before_last_, content_.size());
  OpenLog log(options_for(killed_));
  EXPECT_EQ(log.transcript.lines, sample_lines(1, kBatches));
}

// Every byte is tried on the check of the write-ahead log. The whole database is tried at a sample of the bytes,
// because opening one takes a tenth of a second.
TEST_F(DamageTest, TheCheckTellsTornFromLostAtEveryByte) {
  for (const bool tag_is_known : {true, false}) {
    const std::string directory = folder_for_logs(killed_, tag_is_known);
    const std::string log = directory + "/000004.log";
    for (std::size_t size = before_last_; size <= content_.size(); ++size) {
      write_file(log, content_.substr(0, size));
      ASSERT_TRUE(check_write_ahead_logs(directory).ok()) << "cut at " << size;
    }
    for (std::size_t i = 0; i < content_.size(); ++i) {
      for (const char bits : {'\x01', '\x7F'}) {
        std::string damaged = content_;
        damaged[i] = static_cast<char>(damaged[i] ^ bits);
        write_file(log, damaged);
        ASSERT_EQ(check_write_ahead_logs(directory).ok(), i >= before_last_) << "byte " << i;
      }
    }
    write_file(log, content_.substr(0, content_.size() - 1));
    write_file(directory + "/000010.log", content_);
    EXPECT_EQ(check_write_ahead_logs(directory).code(), StatusCode::data_loss);
  }
}

// Writes of many blocks of 32 KiB, whose parts are fragments, and rests of blocks too short for a header.
TEST_F(DamageTest, TheCheckReadsWritesOfAnySize) {
  const std::string large = temporary_.path("large");
  OpenLog log(options_for(large));
  std::size_t before_last = 0;
  for (BatchNumber number = 1; number <= 60; ++number) {
    before_last = read_file(newest_write_ahead_log(large)).size();
    Batch batch(number);
    batch.write_bytes(0, "key", std::string(number * 1777 % 100000, 'v'));
    const LogRecord record = batch.record();
    ASSERT_TRUE(log.log->append({&record, 1}).ok());
  }
  const std::string content = read_file(newest_write_ahead_log(large));
  for (const bool tag_is_known : {true, false}) {
    const std::string directory = folder_for_logs(large, tag_is_known);
    const std::string path = directory + "/000004.log";
    write_file(path, content);
    EXPECT_TRUE(check_write_ahead_logs(directory).ok());
    for (std::size_t size = before_last; size < content.size(); size += 997) {
      write_file(path, content.substr(0, size));
      ASSERT_TRUE(check_write_ahead_logs(directory).ok()) << "cut at " << size;
    }
    for (std::size_t i = 0; i < content.size(); i += 9973) {
      std::string damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ 1);
      write_file(path, damaged);
      ASSERT_EQ(check_write_ahead_logs(directory).ok(), i >= before_last) << "byte " << i;
    }
  }
}

TEST_F(DamageTest, ATornEndIsCutAndTheLogGoesOnFromThere) {
  for (std::size_t size = before_last_; size < content_.size(); size += 11) {
    const StorageOptions options = with_log(content_.substr(0, size), false);
    OpenLog log(options);
    ASSERT_EQ(log.position.batch, kBatches - 1) << "cut at " << size;
    ASSERT_EQ(log.transcript.lines, sample_lines(1, kBatches - 1));
    log.append(kBatches, kBatches + 1);
    log.log.reset();
    OpenLog again(options);
    ASSERT_EQ(again.transcript.lines, sample_lines(1, kBatches + 1));
  }
}

TEST_F(DamageTest, AnAcknowledgedBatchIsNeverCut) {
  for (std::size_t size = before_last_; size < content_.size(); size += 41) {
    const Status status = open_status(with_log(content_.substr(0, size), true));
    ASSERT_EQ(status.code(), StatusCode::data_loss) << "cut at " << size;
    ASSERT_NE(status.message().find("batch 12 was acknowledged"), std::string::npos) << status.message();
  }
}

TEST_F(DamageTest, AFlippedByteInTheEndIsCutOnlyIfNobodyWasToldOfIt) {
  for (std::size_t i = before_last_; i < content_.size(); i += 37) {
    std::string damaged = content_;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    ASSERT_EQ(open_status(with_log(damaged, true)).code(), StatusCode::data_loss) << "byte " << i;
    Transcript transcript;
    const Status status = open_status(with_log(damaged, false), &transcript);
    ASSERT_TRUE(status.ok()) << "byte " << i << ": " << status.message();
    ASSERT_EQ(transcript.lines, sample_lines(1, kBatches - 1));
  }
}

TEST_F(DamageTest, AFlippedByteBeforeTheEndIsAlwaysALoss) {
  for (std::size_t i = 0; i < before_last_; i += 101) {
    std::string damaged = content_;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    const Status status = open_status(with_log(damaged, false));
    ASSERT_EQ(status.code(), StatusCode::data_loss) << "byte " << i;
    ASSERT_NE(status.message().find(".log"), std::string::npos) << status.message();
  }
}

TEST_F(DamageTest, ZeroesInTheEndAreATornWrite) {
  for (std::size_t size : {before_last_, before_last_ + 20}) {
    std::string torn = content_.substr(0, size);
    torn.resize(content_.size() + 40000, '\0');
    Transcript transcript;
    const Status status = open_status(with_log(torn, false), &transcript);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(transcript.lines, sample_lines(1, kBatches - 1));
  }
}

TEST_F(DamageTest, ATornEndAfterACheckpointIsCut) {
  const std::string copy = temporary_.path("copy");
  {
    OpenLog log(options_for(killed_));
    ASSERT_TRUE(checkpoint(log.log.get(), kBatches, kBatches, 3).ok());
    log.append(kBatches + 1, kBatches + 4);
    copy_directory(killed_, copy);
    log.append(kBatches + 5, kBatches + 5);
    const std::string wal = newest_write_ahead_log(killed_);
    write_file(copy + "/" + std::filesystem::path(wal).filename().string(),
               read_file(wal).substr(0, read_file(wal).size() - 9));
  }
  OpenLog log(options_for(copy));
  EXPECT_EQ(log.position.checkpoint_batch, kBatches);
  EXPECT_EQ(log.position.batch, kBatches + 4);
}

// RocksDB keeps such a log, because it could read nothing in it.
TEST_F(DamageTest, ATornWriteThatIsAloneInItsLogIsGoneAfterTheStart) {
  const std::string torn = temporary_.path("torn"), later = temporary_.path("later");
  {
    OpenLog log(options_for(killed_));
    const std::string acknowledged = read_file(killed_ + "/" + kAcknowledgedFileName);
    log.append(kBatches + 1, kBatches + 1);
    copy_directory(killed_, torn);
    write_file(torn + "/" + kAcknowledgedFileName, acknowledged);
  }
  const std::string wal = newest_write_ahead_log(torn);
  write_file(wal, read_file(wal).substr(0, read_file(wal).size() - 9));
  {
    OpenLog log(options_for(torn));
    ASSERT_EQ(log.position.batch, kBatches);
    EXPECT_FALSE(std::filesystem::exists(wal));
    log.append(kBatches + 1, kBatches + 2);
    copy_directory(torn, later);
  }
  EXPECT_EQ(OpenLog(options_for(later)).transcript.lines, sample_lines(1, kBatches + 2));
}

TEST_F(DamageTest, OtherFilesInTheDirectoryAreNotLookedAt) {
  write_file(killed_ + "/000server.log", "started\n");
  write_file(killed_ + "/server.log", "started\n");
  OpenLog log(options_for(killed_));
  EXPECT_EQ(log.position.batch, kBatches);
}

// A database that was never started again has everything in its write-ahead log, the format too.
TEST_F(DamageTest, AMissingWriteAheadLogIsALoss) {
  std::filesystem::remove(wal_);
  const Status status = open_status(options_for(killed_));
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("the format number is missing"), std::string::npos) << status.message();
}

TEST_F(DamageTest, AMissingWriteAheadLogAfterARestartIsALoss) {
  const std::string later = temporary_.path("later");
  {
    OpenLog log(options_for(killed_));
    log.append(kBatches + 1, kBatches + 2);
    copy_directory(killed_, later);
  }
  std::filesystem::remove(newest_write_ahead_log(later));
  const Status status = open_status(options_for(later));
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("it ends at batch 12, but batch 14 was acknowledged"), std::string::npos)
      << status.message();
}

TEST_F(DamageTest, MissingFilesOfTheDatabaseAreALossAndNeverANewDatabase) {
  std::filesystem::remove(killed_ + "/CURRENT");
  const Status status = open_status(options_for(killed_));
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("CURRENT"), std::string::npos) << status.message();
}

TEST_F(DamageTest, AMissingManifestIsALossAndOneThatCannotBeReadIsNot) {
  std::filesystem::path manifest;
  for (const auto& entry : std::filesystem::directory_iterator(killed_)) {
    if (entry.path().filename().string().starts_with("MANIFEST-")) manifest = entry.path();
  }
  const std::string content = read_file(manifest);
  std::filesystem::remove(manifest);
  Status status = open_status(options_for(killed_));
  EXPECT_EQ(status.code(), StatusCode::data_loss) << status.message();
  EXPECT_NE(status.message().find("the manifest cannot be read"), std::string::npos) << status.message();

  std::filesystem::create_symlink(manifest.filename(), manifest);  // the file system refuses to follow it
  status = open_status(options_for(killed_));
  EXPECT_EQ(status.code(), StatusCode::internal) << status.message();
  EXPECT_NE(status.message().find("the manifest cannot be read"), std::string::npos) << status.message();

  std::filesystem::remove(manifest);
  write_file(manifest, content.substr(0, content.size() / 2));
  EXPECT_EQ(open_status(options_for(killed_)).code(), StatusCode::data_loss);
  write_file(manifest, content);
  EXPECT_EQ(OpenLog(options_for(killed_)).position.batch, kBatches);
}

// RocksDB would remove a table file that the manifest does not name, and the logs and the manifest that it has read.
TEST_F(DamageTest, AFailedStartRemovesNothing) {
  {
    OpenLog log(options_for(killed_));
    ASSERT_TRUE(checkpoint(log.log.get(), kBatches, kBatches, 3).ok());
    log.append(kBatches + 1, kBatches + 4);
    copy_directory(killed_, directory_ + "-copy");
  }
  const std::string whole = directory_ + "-copy", copy = temporary_.path("copy");
  const std::string manifest = newest_manifest(whole), content = read_file(whole + "/" + manifest);
  int failed = 0;
  for (std::size_t size = 0; size < content.size(); size += 13) {
    copy_directory(whole, copy);
    write_file(copy + "/" + manifest, content.substr(0, size));
    for (int start = 0; start < 2; ++start) {
      if (open_status(options_for(copy)).ok()) break;
      ++failed;
      for (const auto& entry : std::filesystem::directory_iterator(whole)) {
        const std::string name = entry.path().filename().string();
        if (!name.ends_with(".sst") && !name.ends_with(".log") && name != manifest) continue;
        const std::string before = name == manifest ? content.substr(0, size) : read_file(entry.path().string());
        ASSERT_TRUE(std::filesystem::exists(copy + "/" + name)) << name << " after a cut at " << size;
        ASSERT_EQ(read_file(copy + "/" + name), before) << name << " after a cut at " << size;
      }
    }
  }
  EXPECT_GT(failed, 10);
}

// Failed starts leave files, which the next whole one removes.
TEST_F(DamageTest, AStartThatSucceedsRemovesWhatIsNotNeeded) {
  const auto files_of = [this](const std::string& suffix) {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(killed_)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with(suffix) || name.starts_with(suffix)) names.insert(name);
    }
    return names;
  };
  for (int start = 0; start < 3; ++start) {  // each ends before the end of the recovery
    auto log = open_rocksdb_log(options_for(killed_));
    ASSERT_TRUE(log.ok()) << log.status().message();
    Transcript transcript;
    ASSERT_TRUE((*log)->recover(&transcript).ok());
  }
  EXPECT_GT(files_of("MANIFEST-").size(), 2u);
  write_file(killed_ + "/000099.sst", "the begin of a table");
  OpenLog log(options_for(killed_));
  EXPECT_EQ(log.transcript.lines, sample_lines(1, kBatches));
  EXPECT_EQ(files_of("MANIFEST-").size(), 1u);
  EXPECT_EQ(files_of(".log").size(), 1u);
  EXPECT_FALSE(files_of(".sst").contains("000099.sst"));
}

TEST_F(DamageTest, AMalformedAcknowledgementIsALoss) {
  write_file(killed_ + "/" + kAcknowledgedFileName, "0123456789abcdef");
  EXPECT_EQ(open_status(options_for(killed_)).code(), StatusCode::data_loss);
}

// The same after a start, which moved the records into a table file.
TEST_F(DamageTest, AFlippedByteInATableFileIsALossThatNamesTheFile) {
  { OpenLog log(options_for(killed_)); }
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(killed_)) {
    if (entry.path().extension() != ".sst") continue;
    const std::string content = read_file(entry.path().string());
    for (std::size_t i = 0; i < content.size(); i += 211) {
      const std::string copy = temporary_.path("copy");
      copy_directory(killed_, copy);
      std::string damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ 1);
      write_file(copy + "/" + entry.path().filename().string(), damaged);
      Transcript transcript;
      const Status status = open_status(options_for(copy), &transcript);
      if (status.ok()) {  // a byte of the file's properties that nobody reads
        ASSERT_EQ(transcript.lines, sample_lines(1, kBatches));
        continue;
      }
      ASSERT_EQ(status.code(), StatusCode::data_loss) << "byte " << i << ": " << status.message();
      ASSERT_NE(status.message().find(entry.path().filename().string()), std::string::npos) << status.message();
      ++found;
    }
  }
  EXPECT_GT(found, 5u);
}

// No checksum protects the footer, which says where the blocks are and how large.
TEST_F(DamageTest, ADamagedFooterOfATableFileIsALossThatNamesTheFile) {
  { OpenLog log(options_for(killed_)); }
  constexpr std::size_t kFooterBytes = 53;
  for (const auto& entry : std::filesystem::directory_iterator(killed_)) {
    if (entry.path().extension() != ".sst") continue;
    const std::string name = entry.path().filename().string(), content = read_file(entry.path().string());
    const auto status_with = [&](const std::string& damaged) {
      const std::string copy = temporary_.path("copy");
      copy_directory(killed_, copy);
      write_file(copy + "/" + name, damaged);
      return open_status(options_for(copy));
    };
    for (std::size_t i = content.size() - kFooterBytes; i < content.size(); ++i) {
      std::string damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x80);  // a varint gets longer, and so a block far too large
      const Status status = status_with(damaged);
      if (status.ok()) continue;  // a byte that only fills up
      ASSERT_EQ(status.code(), StatusCode::data_loss) << "byte " << i << ": " << status.message();
      ASSERT_NE(status.message().find(name), std::string::npos) << "byte " << i << ": " << status.message();
    }
    // A block of 2^60 bytes, for which nobody has memory.
    std::string huge = content;
    const std::string handle = std::string(1, '\0') + std::string(8, '\x80') + '\x10';
    huge.replace(content.size() - kFooterBytes + 1, handle.size(), handle);
    const Status of_huge = status_with(huge);
    ASSERT_EQ(of_huge.code(), StatusCode::data_loss) << of_huge.message();
    ASSERT_NE(of_huge.message().find(name), std::string::npos) << of_huge.message();
    ASSERT_NE(of_huge.message().find("footer"), std::string::npos) << of_huge.message();
    for (const std::size_t size : {std::size_t{0}, kFooterBytes - 1, content.size() - 1}) {
      const Status status = status_with(content.substr(0, size));
      ASSERT_EQ(status.code(), StatusCode::data_loss) << size << " bytes: " << status.message();
      ASSERT_NE(status.message().find(name), std::string::npos) << size << " bytes: " << status.message();
    }
  }
}

TEST_F(DamageTest, ATableFileUnderTheNameOfAnotherIsNamed) {
  { OpenLog log(options_for(killed_)); }
  std::vector<std::filesystem::path> tables;
  for (const auto& entry : std::filesystem::directory_iterator(killed_)) {
    if (entry.path().extension() == ".sst") tables.push_back(entry.path());
  }
  ASSERT_GE(tables.size(), 2u);
  for (int first = 0; first < 2; ++first) {
    const std::string copy = temporary_.path("copy"),
                      name = tables[static_cast<std::size_t>(first)].filename().string();
    copy_directory(killed_, copy);
    write_file(copy + "/" + name, read_file(tables[static_cast<std::size_t>(1 - first)].string()));
    Status status = open_status(options_for(copy));
    EXPECT_EQ(status.code(), StatusCode::data_loss) << status.message();
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
    std::filesystem::remove(copy + "/" + name);
    status = open_status(options_for(copy));
    EXPECT_EQ(status.code(), StatusCode::data_loss) << status.message();
    EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
}

// Changes that no checksum of RocksDB sees: records removed, doubled, exchanged, of another database.
class TamperTest : public DamageTest {
 protected:
  void tamper(const std::function<void(Store*)>& change) {
    auto store = Store::open(options_for(killed_), nullptr);
    ASSERT_TRUE(store.ok()) << store.status().message();
    change(store->get());
  }

  static std::string get(Store* store, BatchNumber batch) {
    std::string value;
    EXPECT_TRUE(store->db()->Get({}, store->family(Family::log), ordered_key(batch), &value).ok());
    return value;
  }

  void expect_loss(const std::string& part) {
    const Status status = open_status(options_for(killed_));
    EXPECT_EQ(status.code(), StatusCode::data_loss) << status.message();
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  }
};

TEST_F(TamperTest, AMissingBatchIsNamed) {
  tamper([](Store* store) { ASSERT_TRUE(store->db()->Delete({}, store->family(Family::log), ordered_key(5)).ok()); });
  expect_loss("batch 5 is missing");
}

TEST_F(TamperTest, AMissingEndIsNamed) {
  tamper([](Store* store) {
    ASSERT_TRUE(store->db()->Delete({}, store->family(Family::log), ordered_key(kBatches)).ok());
  });
  expect_loss("ends at batch 11, but batch 12 was acknowledged");
}

TEST_F(TamperTest, AnExchangedBatchIsNamed) {
  tamper([](Store* store) {
    ASSERT_TRUE(store->db()->Put({}, store->family(Family::log), ordered_key(5), get(store, 6)).ok());
  });
  expect_loss("log at batch 5: holds another batch's record");
}

TEST_F(TamperTest, AFlippedByteInARecordIsNamed) {
  tamper([](Store* store) {
    std::string value = get(store, 8);
    value[100] = static_cast<char>(value[100] ^ 1);
    ASSERT_TRUE(store->db()->Put({}, store->family(Family::log), ordered_key(8), value).ok());
  });
  expect_loss("log at batch 8: log record: checksum mismatch");
}

TEST_F(TamperTest, ABatchOfAnotherDatabaseDoesNotFit) {
  const std::string other = temporary_.path("other");
  {
    OpenLog log(options_for(other));
    log.append(1, 3);
  }
  std::string foreign;
  {
    auto store = Store::open(options_for(other), nullptr);
    ASSERT_TRUE(store.ok());
    foreign = get(store->get(), 1);
  }
  tamper([&](Store* store) {
    ASSERT_TRUE(store->db()->Put({}, store->family(Family::log), ordered_key(1), foreign).ok());
  });
  expect_loss("log at batch 1: does not follow the record before it");
}

TEST_F(TamperTest, AMalformedStateRecordIsNamed) {
  tamper([](Store* store) { ASSERT_TRUE(store->db()->Put({}, store->family(Family::state), "ab", "\x01\x09").ok()); });
  expect_loss("state of key #");  // its hash: keys are data, and the error goes to the log
}

TEST_F(TamperTest, AMalformedSessionKeyIsNamed) {
  for (const std::size_t length : {0, 7, 8, 16, 23, 25, 31, 33}) {
    const std::string key(length, '\1');
    tamper([&](Store* store) { ASSERT_TRUE(store->db()->Put({}, store->family(Family::sessions), key, "").ok()); });
    expect_loss("sessions: session key is malformed");
    tamper([&](Store* store) { ASSERT_TRUE(store->db()->Delete({}, store->family(Family::sessions), key).ok()); });
  }
}

TEST_F(TamperTest, AMissingIdentityIsNamed) {
  tamper(
      [](Store* store) { ASSERT_TRUE(store->db()->Delete({}, store->family(Family::metadata), kIdentityKey).ok()); });
  expect_loss("identity");
}

TEST_F(TamperTest, AMissingFormatIsNamedAndNeverANewDatabase) {
  tamper([](Store* store) { ASSERT_TRUE(store->db()->Delete({}, store->family(Family::metadata), kFormatKey).ok()); });
  expect_loss("the format number is missing");
}

}  // namespace
}  // namespace kilokv::server::storage
