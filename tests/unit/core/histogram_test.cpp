#include "server/core/histogram.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "server/core/metrics.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kBounds[] = {1, 10, 100};

TEST(Histogram, AValueCountsForTheFirstBoundThatIsNotLess) {
  Histogram histogram(kBounds);
  for (const std::uint64_t value : {0, 1, 2, 10, 11, 100, 101, 5000}) histogram.add(value);
  const Histogram::Snapshot values = histogram.snapshot();
  EXPECT_EQ(values.counts[0], 2u);
  EXPECT_EQ(values.counts[1], 2u);
  EXPECT_EQ(values.counts[2], 2u);
  EXPECT_EQ(values.counts[3], 2u) << "beyond the last bound";
  EXPECT_EQ(values.count, 8u);
  EXPECT_EQ(values.sum, 5225u);
}

TEST(Histogram, AClockThatGoesBackCountsAsNoTime) {
  Histogram histogram(kBounds);
  histogram.add_time(50, 40);
  histogram.add_time(40, 50);
  EXPECT_EQ(histogram.snapshot().counts[0], 1u);
  EXPECT_EQ(histogram.snapshot().counts[1], 1u);
  EXPECT_EQ(histogram.snapshot().sum, 10u);
}

TEST(Histogram, NothingIsLostBetweenThreads) {
  constexpr int kThreads = 4, kValues = 20000;
  Histogram histogram(kBounds);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kValues; ++i) histogram.add(i % 200);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.snapshot().count, kThreads * kValues);
  EXPECT_EQ(histogram.snapshot().sum, kThreads * kValues / 200 * (199 * 200 / 2));
}

TEST(Histogram, TheBoundsOfTheMetricsAscendAndFit) {
  const CoreMetrics core;
  const LogMetrics log;
  for (const Histogram* histogram : {&core.queue_wait, &core.batch_transactions, &core.execution, &core.append,
                                     &core.group_batches, &core.checkpoint, &log.sync}) {
    const auto bounds = histogram->snapshot().bounds;
    ASSERT_FALSE(bounds.empty());
    ASSERT_LE(bounds.size(), Histogram::kBoundsMax);
    for (std::size_t i = 1; i < bounds.size(); ++i) EXPECT_LT(bounds[i - 1], bounds[i]);
  }
}

TEST(RunningSince, TellsTheTimeOnlyWhileSomethingRuns) {
  RunningSince running;
  EXPECT_EQ(running.seconds(5000000), 0);
  running.begin(0);
  EXPECT_EQ(running.seconds(0), 0);
  EXPECT_EQ(running.seconds(1500000), 1.5);
  running.begin(1000000);
  EXPECT_EQ(running.seconds(1500000), 0.5);
  EXPECT_EQ(running.seconds(900000), 0) << "the clock of the reader was read before";
  running.end();
  EXPECT_EQ(running.seconds(9000000), 0);
}

}  // namespace
}  // namespace kilokv::server
