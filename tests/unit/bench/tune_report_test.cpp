// What a tune says, and the order of its runs.
#include "client/bench/tune_report.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/json.hpp"

namespace kilokv::bench {
namespace {

// Runs that committed so many transactions in a second, each of them after so many microseconds.
struct Speed {
  std::uint32_t size;
  std::vector<std::uint64_t> per_s;
  std::int64_t latency_us = 1000;
};

TuneReport sample(const std::vector<Speed>& speeds, std::uint32_t rounds) {
  TuneReport report;
  report.options.rounds = report.rounds = rounds;
  for (const Speed& speed : speeds) {
    RunOptions point;
    point.batch_size = speed.size;
    report.options.points.push_back(point);
    for (std::uint32_t round = 1; round <= speed.per_s.size(); ++round) {
      RunReport run;
      run.options = point;
      run.repeat = round;
      run.measured_us = 1'000'000;
      const std::uint64_t count = speed.per_s[round - 1];
      run.measured.counts.outcomes[static_cast<std::size_t>(client::Outcome::committed)] = count;
      run.measured.latency_us.record(speed.latency_us, count);
      report.runs.push_back(std::move(run));
    }
  }
  return report;
}

std::string all(const Advice& advice) {
  std::string text;
  for (const std::string& sentence : advice.sentences) text += sentence + "\n";
  return text;
}

TEST(TuneReport, TheSentencesSayWhatIsRecommended) {
  TuneReport report = sample({{1, {100, 100, 100}}, {64, {9700, 9700, 9700}}, {1024, {10000, 10000, 10000}}}, 3);
  EXPECT_EQ(
      all(advise(report)),
      "The smallest --batch-size within 5% of the best is 64: 9,700 committed/s, 97% of the 10,000 committed/s of "
      "1,024.\nThe runs of one size differ by up to 0.0%, so another tune should choose the same.\n");
  EXPECT_TRUE(advise(report).complete);
  const Json json = Json::parse(json_text(report));
  EXPECT_EQ(json["recommended"]["size"], 64);
  EXPECT_EQ(json["recommended"]["best_size"], 1024);
  EXPECT_TRUE(json["recommended_under_goal"].is_null());
  EXPECT_EQ(json["runs"].size(), 9u);
  EXPECT_EQ(json["sizes"][1]["committed_per_s"], 9700);
}

TEST(TuneReport, TheLargestSizeMayNotBeTheEnd) {
  const std::string text = all(advise(sample({{1, {100, 100, 100}}, {64, {9700, 9700, 9700}}}, 3)));
  EXPECT_NE(text.find("9,700 committed/s, the most of all sizes."), std::string::npos) << text;
  EXPECT_NE(text.find("64 is the largest size that was tried. A larger one may be faster."), std::string::npos) << text;
}

TEST(TuneReport, ABusyMachineGetsNoRecommendation) {
  const TuneReport report = sample({{1, {100, 100, 100}}, {64, {9000, 10000, 10600}}}, 3);
  const Advice advice = advise(report);
  EXPECT_EQ(all(advice),
            "The machine is too busy to recommend a --batch-size: the runs of 64 differ by 16.0%, and 15% is the most "
            "that is good enough.\n");
  EXPECT_FALSE(advice.choice);
  EXPECT_FALSE(advice.complete);
  EXPECT_TRUE(Json::parse(json_text(report))["recommended"].is_null());
}

TEST(TuneReport, TheGoalOfTheP99) {
  TuneReport report =
      sample({{1, {8700, 8700, 8700}, 500}, {64, {9000, 9000, 9000}, 3000}, {1024, {10000, 10000, 10000}, 7000}}, 3);
  report.options.p99_goal_us = 5000;
  Advice advice = advise(report);
  EXPECT_NE(all(advice).find("With a p99 of at most 5.00 ms, the best --batch-size is 64: 9,000 committed/s, and a p99 "
                             "of 3.00 ms (3 of 3 runs met the goal)."),
            std::string::npos)
      << all(advice);
  EXPECT_TRUE(advice.complete);
  EXPECT_EQ(advice.choice->size, 1024u);
  EXPECT_EQ(Json::parse(json_text(report))["recommended_under_goal"]["size"], 64);
  report.options.p99_goal_us = 400;
  advice = advise(report);
  EXPECT_NE(all(advice).find("No --batch-size meets the goal of a p99 of 400 us: the lowest p99 is 500 us, of 1."),
            std::string::npos)
      << all(advice);
  EXPECT_FALSE(advice.complete);
  EXPECT_TRUE(advice.choice);
}

TEST(TuneReport, TooFewRounds) {
  const TuneReport report = sample({{1, {100, 100}}, {64, {9000, 9000}}}, 2);
  EXPECT_EQ(all(advise(report)), "No --batch-size is recommended: 2 complete rounds, and 3 are needed.\n");
  EXPECT_FALSE(advise(report).complete);
}

TEST(TuneReport, ARoundThatIsNotCompleteDoesNotCount) {
  TuneReport report = sample({{1, {100, 100, 100, 5000}}, {64, {9000, 9000, 9000}}}, 3);
  const std::vector<SizeResults> sizes = results_by_size(report);
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[0].per_s.size(), 3u);
  EXPECT_EQ(sizes[1].per_s.size(), 3u);
}

TEST(TuneReport, TheFlagOfTheServerIsNamed) {
  TuneReport report = sample({{1, {100, 100, 100}}, {64, {9000, 9000, 9000}}}, 3);
  report.options.varies_server = true;
  for (RunOptions& point : report.options.points) point.server_batch_max = point.batch_size;
  for (RunReport& run : report.runs) run.options.server_batch_max = run.options.batch_size;
  EXPECT_EQ(all(advise(report)).rfind("The smallest --batch-max-transactions within 5% of the best is 64", 0), 0u);
}

TEST(Tune, EachRoundHasEachSizeOnceInAnOrderOfItsOwn) {
  std::set<std::vector<std::size_t>> orders;
  for (std::uint32_t round = 1; round <= 5; ++round) {
    std::vector<std::size_t> order = order_of_round(7, 1, round);
    EXPECT_EQ(order, order_of_round(7, 1, round)) << "the same seed gives the same order";
    orders.insert(order);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6}));
  }
  EXPECT_EQ(orders.size(), 5u);
  EXPECT_NE(order_of_round(7, 1, 1), order_of_round(7, 2, 1));
}

TEST(Tune, TheEstimateCoversAllRuns) {
  TuneOptions options;
  options.points.resize(7);
  options.rounds = 5;
  for (RunOptions& point : options.points) {
    point.duration_us = 2'000'000;
    point.warmup_us = 500'000;
  }
  EXPECT_GT(estimated_us(options), 35 * 2'500'000);
  EXPECT_LT(estimated_us(options), 35 * 5'000'000);
  EXPECT_GT(time_limit_of(options), estimated_us(options));
  options.time_limit_us = 7;
  EXPECT_EQ(time_limit_of(options), 7);
  EXPECT_NE(plan_text(options).find("5 rounds, 35 runs of 2.5 s; takes about "), std::string::npos);
}

}  // namespace
}  // namespace kilokv::bench
