// What the demo remembers, and what it prints of it.
#include "client/bank/demo_books.hpp"

#include <gtest/gtest.h>

#include "client/bank/demo_report.hpp"
#include "tests/support/json.hpp"

namespace kilokv::bank {
namespace {

TEST(DemoBooks, EndingsThatMustNotBe) {
  EXPECT_TRUE(expected(Activity::transfer, Ending::refused));
  EXPECT_TRUE(expected(Activity::salary, Ending::refused));
  EXPECT_FALSE(expected(Activity::salary, Ending::expired));
  EXPECT_FALSE(expected(Activity::deposit, Ending::refused));
  EXPECT_FALSE(expected(Activity::overdraft, Ending::made));
  EXPECT_FALSE(expected(Activity::hopeless_wait, Ending::made));
  EXPECT_FALSE(expected(Activity::early_withdrawal, Ending::expired));
  for (std::size_t i = 0; i < kActivities; ++i) EXPECT_FALSE(expected(static_cast<Activity>(i), Ending::unknown));
}

TEST(DemoBooks, Merge) {
  Books all(2), one(2);
  one.of(Activity::transfer).endings[static_cast<std::size_t>(Ending::made)] = 3;
  one.change = {-5, 5};
  one.paid_in = 7;
  one.first_surprise = "surprise";
  all.merge(one);
  all.merge(one);
  EXPECT_EQ(all.total(Ending::made), 6u);
  EXPECT_EQ(all.change, (std::vector<Cents>{-10, 10}));
  EXPECT_EQ(all.paid_in, 14);
  EXPECT_EQ(all.first_surprise, "surprise");
}

TEST(DemoBooks, TheLongestSilence) {
  Clipboard clipboard;
  for (const std::int64_t now_us : {1'000, 1'500, 9'000, 9'100}) clipboard.answered(now_us, 2);
  EXPECT_EQ(clipboard.answers(), 8u);
  EXPECT_EQ(clipboard.longest_silence_us(), 7'500);
}

TEST(DemoReport, IsProvenOnlyIfAllChecksHold) {
  DemoReport report;
  EXPECT_FALSE(report.proven());  // nothing was checked
  report.checks = {{"one", "", true}, {"two", "detail", false}};
  EXPECT_FALSE(report.proven());
  EXPECT_NE(to_text(report).find("[FAIL] two  detail"), std::string::npos);
  EXPECT_NE(to_text(report).find("NOT PROVEN"), std::string::npos);
  EXPECT_EQ(Json::parse(json_text(report))["proven"], false);
  report.checks.back().holds = true;
  EXPECT_TRUE(report.proven());
  EXPECT_EQ(to_text(report).find("NOT PROVEN"), std::string::npos);
}

}  // namespace
}  // namespace kilokv::bank
