// Whether a start makes a database: --create, and the database that is made once for starts that make none.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "server/storage/data_directory.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {
namespace {

namespace fs = std::filesystem;

class CreateTest : public testing::Test {
 protected:
  StorageOptions with(const std::string& create) {
    StorageOptions options = options_for(path_);
    options.create = create;
    options.on_created = [this](const std::string& directory) { created_.push_back(directory); };
    return options;
  }
  void expect_refused(const std::string& why) {
    const Status status = open_status(with("never"));
    EXPECT_EQ(status.code(), StatusCode::failed_precondition);
    for (const std::string& part : {path_, why, std::string("--create never"), std::string("--data-dir"),
                                    std::string("kilokvd --create-database")}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    }
  }

  const test::TestFolder temporary_;
  const std::string path_ = temporary_.path("data");
  std::vector<std::string> created_;
};

TEST_F(CreateTest, AutoMakesADatabaseAndTellsOnce) {
  { OpenLog log(with("auto")); }
  EXPECT_EQ(created_, std::vector<std::string>{path_});
  { OpenLog log(with("auto")); }
  EXPECT_EQ(created_.size(), 1u) << "the second start finds it";
}

TEST_F(CreateTest, NeverMakesNoDirectory) {
  expect_refused("does not exist");
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(CreateTest, NeverLeavesAnEmptyDirectoryEmpty) {
  fs::create_directory(path_);
  expect_refused("has no database");
  EXPECT_TRUE(fs::is_empty(path_)) << "also no file LOCK";
  write_file(path_ + "/notes.txt", "of somebody");
  expect_refused("has no database");
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
}

TEST_F(CreateTest, NeverOpensADatabaseThatIsThere) {
  {
    OpenLog log(with("auto"));
    log.append(1, 3);
  }
  OpenLog log(with("never"));
  EXPECT_EQ(log.position.batch, 3u);
  EXPECT_EQ(created_.size(), 1u);
}

TEST_F(CreateTest, NeverDoesNotFinishACreationThatHasBegun) {
  fs::create_directory(path_);
  write_file(path_ + "/" + kCreationFileName, "");
  expect_refused("has a database whose creation did not end");
  EXPECT_TRUE(fs::exists(path_ + "/" + kCreationFileName));
  EXPECT_TRUE(*create_rocksdb_database(with("never")));
  OpenLog log(with("never"));
  EXPECT_EQ(log.position.batch, 0u);
}

TEST_F(CreateTest, ADamagedDatabaseIsNoMissingOne) {
  { OpenLog log(with("auto")); }
  fs::remove(path_ + "/CURRENT");
  EXPECT_EQ(open_status(with("never")).code(), StatusCode::data_loss);
}

TEST_F(CreateTest, ADatabaseIsMadeOnceAndThenLeftAlone) {
  const Result<bool> made = create_rocksdb_database(with("never"));
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(*made);
  {
    OpenLog log(with("never"));
    log.append(1, 3);
    EXPECT_TRUE(*create_rocksdb_database(with("never")) == false) << "also while a server has it";
  }
  EXPECT_FALSE(*create_rocksdb_database(with("never")));
  EXPECT_EQ(OpenLog(with("never")).position.batch, 3u);
}

TEST_F(CreateTest, WhereNoDatabaseCanBeMadeTheErrorSaysSo) {
  StorageOptions elsewhere = with("never");
  elsewhere.data_dir = temporary_.path("none") + "/data";
  const Result<bool> made = create_rocksdb_database(elsewhere);
  EXPECT_EQ(made.status().code(), StatusCode::failed_precondition);
  EXPECT_NE(made.status().message().find("cannot be created"), std::string::npos) << made.status().message();
}

TEST_F(CreateTest, OtherWordsAreRefused) {
  const Status status = with("sometimes").validate();
  ASSERT_NE(status.violation(), nullptr);
  EXPECT_EQ(status.violation()->setting, "--create");
  EXPECT_EQ(status.violation()->limit, "auto or never");
}

}  // namespace
}  // namespace kilokv::server::storage
