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
