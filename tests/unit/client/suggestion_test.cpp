#include "client/command_line/suggestion.hpp"

#include <gtest/gtest.h>

namespace kilokv::client {
namespace {

TEST(EditDistance, CountsLettersPutInLeftOutReplacedAndSwapped) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("get", "get"), 0u);
  EXPECT_EQ(edit_distance("", "get"), 3u);
  EXPECT_EQ(edit_distance("get", ""), 3u);
  EXPECT_EQ(edit_distance("gett", "get"), 1u);
  EXPECT_EQ(edit_distance("gt", "get"), 1u);
  EXPECT_EQ(edit_distance("got", "get"), 1u);
  EXPECT_EQ(edit_distance("egt", "get"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u) << "no letter is touched twice";
}

TEST(Nearest, IsWhatAPersonMayHaveMeant) {
  const std::vector<std::string> commands = {"put", "get", "del", "add", "scan", "parked", "txn", "status"};
  EXPECT_EQ(nearest("gett", commands), "get");
  EXPECT_EQ(nearest("statsu", commands), "status");
  EXPECT_EQ(nearest("stat", commands), "status") << "its beginning";
  EXPECT_EQ(nearest("prked", commands), "parked");
  EXPECT_EQ(nearest("pit", commands), "put");
  EXPECT_EQ(nearest("jump", commands), std::nullopt);
  EXPECT_EQ(nearest("x", commands), std::nullopt);
  EXPECT_EQ(nearest("", commands), std::nullopt);
  EXPECT_EQ(nearest("delete-it", commands), std::nullopt);
  EXPECT_EQ(nearest("--wait", {"--wat", "--wait-for-server"}), "--wat") << "the first of equals";
}

}  // namespace
}  // namespace kilokv::client
