#include "client/measure/text.hpp"

#include <gtest/gtest.h>

namespace kilokv::bench {
namespace {

TEST(Text, Grouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000), "1,000");
  EXPECT_EQ(grouped(12'345'678), "12,345,678");
  EXPECT_EQ(grouped(18'446'744'073'709'551'615u), "18,446,744,073,709,551,615");
}

TEST(Text, ShortDuration) {
  EXPECT_EQ(short_duration(0), "0 us");
  EXPECT_EQ(short_duration(999), "999 us");
  EXPECT_EQ(short_duration(1'000), "1.00 ms");
  EXPECT_EQ(short_duration(9'996), "10.0 ms");
  EXPECT_EQ(short_duration(99'960), "100 ms");
  EXPECT_EQ(short_duration(999'499), "999 ms");
  EXPECT_EQ(short_duration(999'500), "1.00 s");
  EXPECT_EQ(short_duration(61'000'000), "61.0 s");
}

TEST(Text, LongDuration) {
  EXPECT_EQ(long_duration(59'900'000), "59.9 s");
  EXPECT_EQ(long_duration(60'000'000), "1m 0s");
  EXPECT_EQ(long_duration(200'900'000), "3m 20s");
  EXPECT_EQ(long_duration(std::int64_t{3599} * 1'000'000), "59m 59s");
  EXPECT_EQ(long_duration(std::int64_t{3600} * 1'000'000), "1h 0m");
  EXPECT_EQ(long_duration(std::int64_t{86'400} * 1'000'000 - 1), "23h 59m");
  EXPECT_EQ(long_duration(std::int64_t{97'200} * 1'000'000), "1d 3h");
}

TEST(Text, ShortSize) {
  EXPECT_EQ(short_size(0), "0 B");
  EXPECT_EQ(short_size(1023), "1023 B");
  EXPECT_EQ(short_size(1536), "1.50 KiB");
  EXPECT_EQ(short_size(10'240), "10.0 KiB");
  EXPECT_EQ(short_size(1'048'575), "1.00 MiB");
  EXPECT_EQ(short_size(std::uint64_t{123} << 30), "123 GiB");
  EXPECT_EQ(short_size(18'446'744'073'709'551'615u), "16.0 EiB");
}

TEST(Text, WrappedLinesKeepTheirItemsWhole) {
  EXPECT_EQ(wrapped("now: ", {}, 20), "now: \n");
  EXPECT_EQ(wrapped("now: ", {"1 a", "22 bb", "333 ccc", "4"}, 20), "now: 1 a, 22 bb,\n     333 ccc, 4\n");
  EXPECT_EQ(wrapped("x: ", {"longer than a line", "b"}, 8), "x: longer than a line,\n   b\n");
}

TEST(Text, TableDropsWhatIsEmptyForEverybody) {
  Table table({"name", "user", "holder", "age", "kept"});
  table.row({"a", "-", "0", "1 s", "0"});
  table.row({"b", "", "0", "2 s", "3"});
  table.drop_empty_columns();
  EXPECT_EQ(table.render(),
            "name  age  kept\n"
            "---------------\n"
            "a     1 s     0\n"
            "b     2 s     3\n");
}

TEST(Text, TableWithALongTextAtTheEnd) {
  Table table({"rate", "key"});
  table.row({"10", "a"});
  table.row({"2", "longer"});
  table.text_last();
  EXPECT_EQ(table.render(),
            "rate  key\n"
            "------------\n"
            "  10  a\n"
            "   2  longer\n");
}

TEST(Text, TableAlignsAndEndsWithoutBlanks) {
  Table table({"name", "count", "p50"});
  table.row({"a", "1,234"});
  table.rule();
  table.row({"longer", "5", "1.00 ms"});
  EXPECT_EQ(table.render(" "),
            " name    count      p50\n"
            " ----------------------\n"
            " a       1,234\n"
            " ----------------------\n"
            " longer      5  1.00 ms\n");
}

}  // namespace
}  // namespace kilokv::bench
