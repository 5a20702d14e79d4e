// Arrivals on a clock of the test's own.
#include "client/bench/pacer.hpp"

#include <gtest/gtest.h>

#include "client/measure/histogram.hpp"

namespace kilokv::bench {
namespace {

TEST(Pacer, IsEvenAndDoesNotDrift) {
  Pacer pacer(1'000, 3);  // a third of a second is not a whole number of microseconds
  std::int64_t due = 0;
  for (int i = 0; i < 3'000'000; ++i) due = pacer.take();
  EXPECT_EQ(due, 1'000 + 999'999'666'666);
  EXPECT_EQ(pacer.due_us(), 1'000 + 1'000'000'000'000);
}

TEST(Pacer, StaysDueUntilTaken) {
  Pacer pacer(0, 1'000);
  EXPECT_EQ(pacer.due_us(), 0);
  EXPECT_EQ(pacer.due_us(), 0);
  EXPECT_EQ(pacer.take(), 0);
  EXPECT_EQ(pacer.due_us(), 1'000);
}

// A server that stalls for a second is charged for the thousand requests that were due meanwhile, not for one.
TEST(Pacer, AStallCostsEveryRequestThatWasDue) {
  Pacer pacer(0, 1'000);
  Histogram latency_us;
  std::int64_t now_us = 0;
  for (int i = 0; i < 2'000; ++i) {
    now_us = std::max(now_us, pacer.due_us());
    const std::int64_t start_us = pacer.take();
    if (i == 500) now_us += 1'000'000;  // the stall
    now_us += 100;                      // the service
    latency_us.record(now_us - start_us);
  }
  EXPECT_GT(latency_us.quantile(0.5), 100'000);
  EXPECT_GE(latency_us.max(), 1'000'000);
}

}  // namespace
}  // namespace kilokv::bench
