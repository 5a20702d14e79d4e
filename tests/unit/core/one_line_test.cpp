#include "server/core/one_line.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kilokv::server {
namespace {

TEST(OneLine, LeavesNothingThatEndsALineOrAValue) {
  EXPECT_EQ(one_line("plain text, 100%"), "plain text, 100%");
  EXPECT_EQ(one_line("a\nb\r\tc"), "a\\nb\\r\\tc");
  EXPECT_EQ(one_line("say \"no\" \\n"), "say \\\"no\\\" \\\\n");
  EXPECT_EQ(one_line(std::string_view("\0\x1b[31m\x7f", 7)), "\\x00\\x1b[31m\\x7f");
  EXPECT_EQ(one_line("\xc3\xa9"), "\xc3\xa9");
}

TEST(OneLine, LeavesNoControlThatATerminalObeys) {
  for (const std::string letters : {"\xc5\x9b", "\xe2\x82\x9b", "\xf0\x9f\x98\x80", "\xc3\x80\xc3\x9f"}) {
    EXPECT_EQ(one_line(letters), letters);
  }
  EXPECT_EQ(one_line("\x9b"
                     "31m"),
            "\\x9b31m");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "31m"),
            "\\xc2\\x9b31m")
      << "the same in UTF-8";
  EXPECT_EQ(one_line("\xc2\xa9"), "\xc2\xa9");
  for (const std::string before : {"a", "\xff", "\xc3\xa9", "\xe2\x82\x82", "\x9b\x9b\x9b\x9b"}) {
    EXPECT_TRUE(one_line(before + "\x90").ends_with("\\x90")) << one_line(before + "\x90");
  }
}

}  // namespace
}  // namespace kilokv::server
