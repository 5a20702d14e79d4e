#include "client/bank/amount.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace kilokv::bank {
namespace {

TEST(Amount, Parses) {
  EXPECT_EQ(parse_amount("0"), 0);
  EXPECT_EQ(parse_amount("12"), 1'200);
  EXPECT_EQ(parse_amount("12.3"), 1'230);
  EXPECT_EQ(parse_amount("12.34"), 1'234);
  EXPECT_EQ(parse_amount("0.07"), 7);
  EXPECT_EQ(parse_amount("1,000.00"), 100'000);
  EXPECT_EQ(parse_amount("12,345,678.90"), 1'234'567'890);
  EXPECT_EQ(parse_amount("0.29"), 29);  // 0.29 * 100 is 28.999... in floating point
  EXPECT_EQ(parse_amount("92233720368547758.07"), std::numeric_limits<Cents>::max());
}

TEST(Amount, Refuses) {
  for (const char* bad : {"",
                          ".",
                          ".5",
                          "5.",
                          "1.234",
                          "-1",
                          "+1",
                          " 1",
                          "1 ",
                          "1e3",
                          "0x10",
                          "12,34",
                          "1,0000",
                          ",100",
                          "1,,000",
                          "1.2.3",
                          "1.,0",
                          "12.3x",
                          "92233720368547758.08",
                          "99999999999999999999"}) {
    EXPECT_FALSE(parse_amount(bad)) << bad;
  }
}

TEST(Amount, SaysWhatIsWrong) {
  EXPECT_EQ(amount_problem("92233720368547758.08"), "is more than the largest amount, 92,233,720,368,547,758.07");
  EXPECT_EQ(amount_problem("-1"), "is negative: an amount is 0.00 or more");
  for (const char* bad : {"", "-", "--1", "1.234", "abc", "+1"}) {
    EXPECT_EQ(amount_problem(bad), "is not an amount such as 12.34") << bad;
  }
}

TEST(Amount, Formats) {
  EXPECT_EQ(format_amount(0), "0.00");
  EXPECT_EQ(format_amount(7), "0.07");
  EXPECT_EQ(format_amount(-7), "-0.07");
  EXPECT_EQ(format_amount(123'456'789), "1,234,567.89");
  EXPECT_EQ(format_amount(std::numeric_limits<Cents>::min()), "-92,233,720,368,547,758.08");
}

TEST(Amount, WhatIsPrintedCanBeRead) {
  for (const Cents amount :
       {Cents{0}, Cents{1}, Cents{99}, Cents{100}, Cents{123'456'789}, std::numeric_limits<Cents>::max()}) {
    EXPECT_EQ(parse_amount(format_amount(amount)), amount);
  }
}

}  // namespace
}  // namespace kilokv::bank
