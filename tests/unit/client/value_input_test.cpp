// What `put` reads from standard input, and no more than its bound.
#include "client/cli/value_input.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/support/test_folder.hpp"

namespace kilokv::client {
namespace {

class ValueInput : public testing::Test {
 protected:
  Expected<std::string> read(const std::string& path, std::size_t bytes_max) {
    const int descriptor = ::open(path.c_str(), O_RDONLY);
    auto value = read_value(descriptor, bytes_max);
    ::close(descriptor);
    return value;
  }

  const test::TestFolder folder_;
};

TEST_F(ValueInput, ReadsUpToTheBound) {
  const std::string long_value(1'000'000, 'v');
  for (const std::string& value : {std::string(), std::string("a\n"), std::string("\0\xff", 2), long_value}) {
    const std::string path = folder_.write("in", value);
    EXPECT_EQ(*read(path, 1'000'000), value);
    EXPECT_EQ(*read(path, value.size()), value) << "exactly the bound";
  }
}

TEST_F(ValueInput, RefusesMore) {
  for (const std::string& path : {folder_.write("in", std::string(1'000'001, 'v')), std::string("/dev/zero")}) {
    const auto value = read(path, 1'000'000);
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(value.error().limit, "1000000 bytes");
    EXPECT_EQ(value.error().message, "standard input has more than 1000000 bytes, and no server takes a value so long");
  }
}

TEST_F(ValueInput, WhatCannotBeReadIsNoEmptyValue) {
  const auto value = read(folder_.path(""), 10);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(value.error().message, "cannot read standard input: Is a directory");
}

TEST_F(ValueInput, APipeThatBlocksIsReadToItsEnd) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK), 0);
  std::thread writer([&ends] {
    for (const char* part : {"a", "b", "c"}) {
      std::this_thread::yield();
      EXPECT_EQ(::write(ends[1], part, 1), 1);
    }
    ::close(ends[1]);
  });
  EXPECT_EQ(*read_value(ends[0], 10), "abc");
  writer.join();
  ::close(ends[0]);
}

}  // namespace
}  // namespace kilokv::client
