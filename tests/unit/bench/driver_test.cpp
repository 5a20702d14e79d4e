// What a driver measures of an answer.
#include "client/bench/driver.hpp"

#include <gtest/gtest.h>

#include "client/measure/clock.hpp"

namespace kilokv::bench {
namespace {

class Answers : public Driver {
 public:
  explicit Answers(const Window& window, const RunOptions& options = {})
      : Driver(options, std::move(*engine::Workload::create({})), window, 0, 1) {}
  void run() override {}
  void answer(std::int64_t start_us) {
    Counts counts;
    counts.outcomes[static_cast<std::size_t>(client::Outcome::committed)] = 1;
    count(counts, start_us);
  }
  using Driver::count_not_sent;
};

constexpr std::int64_t kSecond = 1'000'000;

TEST(Driver, AnswersOfRequestsThatStartedInTimeAreTimedHoweverLateTheyCome) {
  const std::int64_t now_us = steady_now_us();
  Answers over({now_us - 30 * kSecond, now_us - 20 * kSecond, now_us - 10 * kSecond});
  over.answer(now_us - 11 * kSecond);  // a stall at the end
  over.answer(now_us - 9 * kSecond);
  over.answer(now_us - 21 * kSecond);  // due in the warm-up
  EXPECT_EQ(over.measured().latency_us.count(), 1u);
  EXPECT_GE(over.measured().latency_us.max(), 11 * kSecond);
  EXPECT_EQ(over.measured().counts.answered(), 0u);
  EXPECT_EQ(over.whole().answered(), 3u);
}

TEST(Driver, WhatWasDueAndNeverSentIsAsSlowAsTheStall) {
  RunOptions options;
  options.rate_per_s = 100;
  options.batch_size = 10;
  const std::int64_t now_us = steady_now_us();
  Answers stalled({now_us - 11 * kSecond, now_us - 10 * kSecond, now_us - 8 * kSecond}, options);
  stalled.count_not_sent();
  EXPECT_EQ(stalled.whole().not_sent, 300u);
  EXPECT_EQ(stalled.whole().due, 300u);
  const Histogram latency_us = stalled.measured().latency_us;
  EXPECT_EQ(latency_us.count(), 200u) << "what was due in the warm-up is not measured";
  EXPECT_GE(latency_us.quantile(0), 8 * kSecond - kSecond / 10);
  EXPECT_GE(latency_us.max(), 9 * kSecond);
  EXPECT_EQ(stalled.measured().counts.answered(), 0u);
}

TEST(Driver, AfterAnEarlyEndNothingIsMeasuredOrDue) {
  RunOptions options;
  options.rate_per_s = 100;
  options.batch_size = 10;
  const std::int64_t now_us = steady_now_us();
  Answers ended({now_us - 11 * kSecond, now_us - 10 * kSecond, now_us + 3600 * kSecond}, options);
  ended.answer(now_us - 9 * kSecond);
  ended.end_at(now_us - 8 * kSecond);
  ended.answer(now_us - 9 * kSecond);  // comes too late for the rate, and is timed
  ended.answer(now_us - 7 * kSecond);
  ended.end_at(now_us);  // an end is never put off again
  ended.count_not_sent();
  EXPECT_EQ(ended.measured().counts.answered(), 1u);
  EXPECT_EQ(ended.whole().answered(), 3u);
  EXPECT_EQ(ended.whole().not_sent, 300u);
  EXPECT_EQ(ended.measured().latency_us.count(), 2u + 200u);
}

TEST(Driver, TheLongestGapIsFromTheBeginToTheEndOfTheMeasuredPart) {
  const std::int64_t now_us = steady_now_us();
  Answers running({now_us - 30 * kSecond, now_us - 20 * kSecond, now_us + 3600 * kSecond});
  running.answer(now_us - 21 * kSecond);  // comes now: nothing came since the begin
  const std::int64_t first_us = running.measured().longest_gap_us;
  EXPECT_GE(first_us, 20 * kSecond);
  EXPECT_LT(first_us, 25 * kSecond);
  running.answer(now_us);
  EXPECT_EQ(running.measured().longest_gap_us, first_us);

  Answers silent({now_us - 30 * kSecond, now_us - 20 * kSecond, now_us - 5 * kSecond});
  silent.answer(now_us - 10 * kSecond);  // comes after the end
  EXPECT_EQ(silent.measured().longest_gap_us, 15 * kSecond);
  Tally all = running.measured();
  all.merge(silent.measured());
  EXPECT_EQ(all.longest_gap_us, first_us);
}

TEST(Driver, AnswersInTimeCountTowardsTheRate) {
  const std::int64_t now_us = steady_now_us();
  Answers running({now_us - 30 * kSecond, now_us - 20 * kSecond, now_us + 3600 * kSecond});
  running.answer(now_us - 21 * kSecond);  // due in the warm-up
  running.answer(now_us - 1 * kSecond);
  EXPECT_EQ(running.measured().counts.answered(), 2u);
  EXPECT_EQ(running.measured().latency_us.count(), 1u);
  EXPECT_LT(running.measured().latency_us.max(), 20 * kSecond);
}

}  // namespace
}  // namespace kilokv::bench
