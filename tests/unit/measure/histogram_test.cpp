// The histogram against exact quantiles of the same values.
#include "client/measure/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace kilokv::bench {
namespace {

std::int64_t exact_quantile(std::vector<std::int64_t> values, double fraction) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

void expect_three_digits(std::int64_t got, std::int64_t exact) {
  EXPECT_GE(got, exact);
  EXPECT_LE(static_cast<double>(got), static_cast<double>(exact) * 1.001 + 1);
}

TEST(Histogram, QuantilesHaveThreeDigits) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> spread(8, 3);
  Histogram histogram;
  std::vector<std::int64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(std::min(Histogram::kValueMax, static_cast<std::int64_t>(spread(random))));
    histogram.record(values.back());
  }
  for (const double fraction : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    expect_three_digits(histogram.quantile(fraction), exact_quantile(values, fraction));
  }
  EXPECT_EQ(histogram.max(), *std::max_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.count(), values.size());
}

TEST(Histogram, EveryPowerOfTwoBoundary) {
  for (std::int64_t value = 1; value <= Histogram::kValueMax / 2; value *= 2) {
    for (const std::int64_t near : {value - 1, value, value + 1}) {
      Histogram histogram;
      histogram.record(near);
      histogram.record(Histogram::kValueMax);  // so that the maximum does not cut the answer
      expect_three_digits(histogram.quantile(0.5), near);
    }
  }
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::int64_t value = 0; value < 2048; ++value) histogram.record(value);
  EXPECT_EQ(histogram.quantile(0.5), 1023);
  EXPECT_EQ(histogram.quantile(0.25), 511);
  EXPECT_EQ(histogram.quantile(1), 2047);
}

TEST(Histogram, MergeIsTheSameAsRecordingAll) {
  Histogram all, left, right;
  for (std::int64_t i = 0; i < 1000; ++i) {
    all.record(i * i);
    (i % 3 == 0 ? left : right).record(i * i);
  }
  left.merge(right);
  EXPECT_EQ(left.count(), all.count());
  EXPECT_EQ(left.max(), all.max());
  EXPECT_DOUBLE_EQ(left.mean(), all.mean());
  for (const double fraction : {0.1, 0.5, 0.99}) EXPECT_EQ(left.quantile(fraction), all.quantile(fraction));
}

TEST(Histogram, CountsWeigh) {
  Histogram histogram;
  histogram.record(10, 99);
  histogram.record(1000, 1);
  EXPECT_EQ(histogram.quantile(0.99), 10);
  EXPECT_EQ(histogram.quantile(0.991), 1000);
}

TEST(Histogram, OutOfRangeIsClamped) {
  Histogram histogram;
  histogram.record(-5);
  EXPECT_EQ(histogram.quantile(1), 0);
  histogram.record(Histogram::kValueMax + 100);
  EXPECT_EQ(histogram.max(), Histogram::kValueMax);
}

TEST(Histogram, EmptyAndCleared) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile(0.5), 0);
  histogram.record(7);
  histogram.clear();
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_EQ(histogram.quantile(0.5), 0);
}

TEST(Histogram, StepsOfALogarithmicScaleHaveAllValues) {
  Histogram histogram;
  EXPECT_TRUE(histogram.counts_by_step(8).empty());
  histogram.record(0, 2);
  histogram.record(1, 3);
  histogram.record(1024, 5);
  histogram.record(1025, 7);
  histogram.record(2'000'000, 11);
  const std::map<int, std::uint64_t> counts = histogram.counts_by_step(8);
  EXPECT_EQ(counts, (std::map<int, std::uint64_t>{{0, 5}, {80, 5}, {81, 7}, {168, 11}}));
}

}  // namespace
}  // namespace kilokv::bench
