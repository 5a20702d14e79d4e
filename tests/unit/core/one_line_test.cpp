#include "server/core/one_line.hpp"

#include <gtest/gtest.h>

namespace kilokv::server {
namespace {

TEST(OneLine, LeavesNothingThatEndsALineOrAValue) {
  EXPECT_EQ(one_line("plain text, 100%"), "plain text, 100%");
  EXPECT_EQ(one_line("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(one_line("say \"no\" \\n"), "say \\\"no\\\" \\\\n");
  EXPECT_EQ(one_line(std::string_view("\0\x1b[31m\x7f", 7)), "\\x00\\x1b[31m\\x7f");
  EXPECT_EQ(one_line("\xc3\xa9"), "\xc3\xa9");
}

}  // namespace
}  // namespace kilokv::server
