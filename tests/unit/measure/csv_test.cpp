// Cells of CSV, as a reader of RFC 4180 wants them.
#include "client/measure/csv.hpp"

#include <gtest/gtest.h>

namespace kilokv::bench {
namespace {

std::string cell(std::string_view text, char separator = ',') {
  std::string out;
  append_csv_cell(text, separator, &out);
  return out;
}

TEST(Csv, ACellIsQuotedWhereItMustBe) {
  EXPECT_EQ(cell("plain text"), "plain text");
  EXPECT_EQ(cell("a,b"), "\"a,b\"");
  EXPECT_EQ(cell("a,b", ';'), "a,b");
  EXPECT_EQ(cell("a;b", ';'), "\"a;b\"");
  EXPECT_EQ(cell("say \"no\""), "\"say \"\"no\"\"\"");
  EXPECT_EQ(cell("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(cell("two\rlines"), "\"two\rlines\"");
  EXPECT_EQ(cell(" blank"), "\" blank\"");
  EXPECT_EQ(cell("blank\t"), "\"blank\t\"");
  EXPECT_EQ(cell(""), "\"\"");
}

TEST(Csv, ARowHasItsCellsAndANewline) {
  std::string out;
  append_csv_row({"a", "", "b,c"}, &out);
  append_csv_row({"1"}, &out);
  EXPECT_EQ(out, "a,,\"b,c\"\n1\n");
}

}  // namespace
}  // namespace kilokv::bench
