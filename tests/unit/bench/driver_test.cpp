// What a driver measures of an answer.
#include "client/bench/driver.hpp"

#include <gtest/gtest.h>

#include "client/bench/clock.hpp"

namespace kilokv::bench {
namespace {

class Answers : public Driver {
 public:
  explicit Answers(const Window& window)
      : Driver({}, std::move(*engine::Workload::create({})), window, 0, 1) {}
  void run() override {}
  void answer(std::int64_t start_us) {
    Counts counts;
    counts.outcomes[static_cast<std::size_t>(client::Outcome::committed)] = 1;
    count(counts, start_us);
  }
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
