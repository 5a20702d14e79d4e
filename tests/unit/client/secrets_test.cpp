// Secrets from a file and from the environment.
#include "client/command_line/secrets.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "client/command_line/exit_code.hpp"
#include "tests/support/test_folder.hpp"

namespace kilokv::client {
namespace {

constexpr SecretSource kSource = {"--word-file", "KILOKV_TEST_WORD_FILE", "KILOKV_TEST_WORD", "a word"};

class SecretsTest : public testing::Test {
 protected:
  SecretsTest() { unset(); }
  ~SecretsTest() override { unset(); }
  static void unset() {
    unsetenv(kSource.file_variable);
    unsetenv(kSource.variable);
  }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_.path(name)) << content;
    return folder_.path(name);
  }
  static std::string read(const std::string& path) {
    std::string secret;
    const Error error = read_secret(kSource, path, &secret);
    return error ? "error: " + error.message : secret;
  }

  const test::TestFolder folder_;
};

TEST_F(SecretsTest, TheFileOfTheFlagComesFirst) {
  EXPECT_EQ(read(""), "") << "there is none";
  setenv(kSource.variable, "of the variable", 1);
  EXPECT_EQ(read(""), "of the variable");
  setenv(kSource.file_variable, file("named", "of the named file\r\n\n").c_str(), 1);
  EXPECT_EQ(read(""), "of the named file");
  EXPECT_EQ(read(file("given", " of the flag  \n")), " of the flag");
}

TEST_F(SecretsTest, AnErrorNamesWhereTheFileCameFrom) {
  const std::string missing = folder_.path("missing"), empty = file("empty", "\n");
  EXPECT_EQ(read(missing), "error: --word-file: cannot read " + missing + ": No such file or directory");
  EXPECT_EQ(read(empty), "error: --word-file: " + empty + " is empty, and should hold a word");
  setenv(kSource.file_variable, missing.c_str(), 1);
  EXPECT_EQ(read(""), "error: the environment variable KILOKV_TEST_WORD_FILE: cannot read " + missing +
                          ": No such file or directory");
}

TEST_F(SecretsTest, AFileThatCannotBeReadIsAnotherErrorThanAWrongOne) {
  std::string secret;
  const ErrorCode missing = read_secret(kSource, folder_.path("missing"), &secret).code;
  const ErrorCode empty = read_secret(kSource, file("empty", "\n"), &secret).code;
  EXPECT_EQ(exit_code_before_sending(missing), ExitCode::other);
  EXPECT_EQ(exit_code_before_sending(empty), ExitCode::usage);
}

TEST_F(SecretsTest, OnlyItsUserReadsANewFile) {
  const std::string path = folder_.path("new");
  ASSERT_TRUE(write_secret(path, "word\n"));
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(read(path), "word");
  EXPECT_FALSE(write_secret(path, "other\n")) << "it is there";
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(read(path), "word");
}

// A part of a secret would be in the way of the next try.
TEST_F(SecretsTest, AFileThatCannotBeWrittenDoesNotStay) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit nothing = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &nothing), 0);
  const bool written = write_secret(folder_.path("full"), "word\n");
  const int why = errno;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(written);
  EXPECT_EQ(why, EFBIG);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("full")));
  EXPECT_TRUE(write_secret(folder_.path("full"), "word\n"));
}

}  // namespace
}  // namespace kilokv::client
