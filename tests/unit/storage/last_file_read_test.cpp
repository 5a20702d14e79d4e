// The file that RocksDB read last, which is in the last line of the log when RocksDB ends the process.
#include "server/storage/last_file_read.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "server/last_words.hpp"
#include "server/storage/store.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {
namespace {

class LastFileReadTest : public testing::Test {
 protected:
  // Reads all records of the log, and returns the iterator, which is after the last one.
  std::unique_ptr<rocksdb::Iterator> read_log() {
    std::unique_ptr<rocksdb::Iterator> it(
        store_->db()->NewIterator(rocksdb::ReadOptions(), store_->family(Family::log)));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
    }
    return it;
  }

  void SetUp() override {
    {
      OpenLog log(options_for(directory_));
      log.append(1, 3);
    }
    auto store = Store::open(options_for(directory_), nullptr);  // moves the log into a table file
    ASSERT_TRUE(store.ok()) << store.status().message();
    store_ = std::move(*store);
    rocksdb::ColumnFamilyMetaData family;
    store_->db()->GetColumnFamilyMetaData(store_->family(Family::log), &family);
    ASSERT_EQ(family.levels[0].files.size(), 1u);
    table_ = family.levels[0].files[0].name.substr(1);
  }

  test::TestFolder temporary_;
  const std::string directory_ = temporary_.path("data");
  std::unique_ptr<Store> store_;
  std::string table_;  // of the log
};

TEST_F(LastFileReadTest, IsOfTheThread) {
  note_file_read("/folder/another");
  EXPECT_EQ(last_file_read(), "another");
  std::thread([] { EXPECT_EQ(last_file_read(), ""); }).join();
  read_log();
  EXPECT_EQ(last_file_read(), table_);
  note_file_read(std::string(300, 'a'));
  EXPECT_EQ(last_file_read(), std::string(63, 'a'));
}

TEST_F(LastFileReadTest, AFailedAssertionNamesIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the child begins anew, in a folder of its own
  EXPECT_EXIT(
      {
        spdlog::set_default_logger(spdlog::stderr_logger_mt("last words"));
        log_last_words(directory_);
        read_log()->Next();  // RocksDB asserts that there is a record
      },
      testing::ExitedWithCode(kExitDataLoss), "code=DATA_LOSS .*data directory .*after it read " + table_);
}

}  // namespace
}  // namespace kilokv::server::storage
