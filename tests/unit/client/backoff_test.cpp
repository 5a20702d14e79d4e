// The delays between retries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "client/lib/src/connection.hpp"

namespace kilokv::client {
namespace {

ClientOptions options() {
  ClientOptions options;
  options.backoff_us_min = 10'000;
  options.backoff_us_max = 80'000;
  return options;
}

TEST(Backoff, DoublesUpToTheMaximumAndBeginsAgain) {
  Backoff backoff(options());
  for (int round = 0; round < 100; ++round) {
    for (const std::int64_t bound_us : {10'000, 20'000, 40'000, 80'000, 80'000}) {
      const std::int64_t delay_us = backoff.next().count();
      EXPECT_GE(delay_us, bound_us / 2);
      EXPECT_LE(delay_us, bound_us);
    }
    backoff.reset();
  }
}

// Also where the client's own delay would be about as long.
TEST(Backoff, IsNeverShorterThanWhatTheServerAskedFor) {
  for (std::uint64_t asked_us = 1'000; asked_us < 200'000; asked_us += 1'000) {
    Backoff backoff(options());
    for (int retry = 0; retry < 20; ++retry) {
      const auto delay_us = static_cast<std::uint64_t>(backoff.next(asked_us).count());
      EXPECT_GE(delay_us, asked_us);
      EXPECT_LE(delay_us, std::max<std::uint64_t>({80'000, asked_us * 3 / 2, asked_us + 40'000}));
    }
  }
}

}  // namespace
}  // namespace kilokv::client
