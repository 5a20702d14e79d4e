// How long the address of a flood has to pause.
#include "server/edge/flood_pauses.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace kilokv::server {
namespace {

constexpr std::int64_t kNow = 1000000;

TEST(FloodPausesTest, EachFloodDoublesThePauseUpToAMinute) {
  FloodPauses pauses;
  std::int64_t now = kNow;
  for (const std::int64_t lasts : {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000}) {
    pauses.add("192.0.2.1", "headers without an end", now);
    pauses.add("192.0.2.1", "headers without an end", now);  // of the same moment
    EXPECT_EQ(pauses.refusal("192.0.2.1", now + lasts - 1), "a flood came from this address; it may connect once in " +
                                                                std::to_string(lasts) +
                                                                " ms. The last one: headers without an end");
    EXPECT_FALSE(pauses.refusal("192.0.2.1", now + lasts));
    EXPECT_FALSE(pauses.refusal("192.0.2.2", now));
    now += lasts;
  }
}

TEST(FloodPausesTest, EachConnectionIsFollowedByAPause) {
  FloodPauses pauses;
  pauses.connected("192.0.2.1", kNow);
  EXPECT_FALSE(pauses.refusal("192.0.2.1", kNow)) << "no flood came from it";
  pauses.add("192.0.2.1", "a flood", kNow);
  pauses.connected("192.0.2.1", kNow + 1500);
  EXPECT_TRUE(pauses.refusal("192.0.2.1", kNow + 2499));
  EXPECT_FALSE(pauses.refusal("192.0.2.1", kNow + 2500));
}

TEST(FloodPausesTest, AQuietAddressIsForgotten) {
  FloodPauses pauses;
  for (int i = 0; i < 7; ++i) pauses.add("192.0.2.1", "a flood", kNow + i * 60000);
  const std::int64_t last = kNow + 6 * 60000;
  pauses.forget_quiet_ones(last + FloodPauses::kForgottenMs - 1);
  pauses.connected("192.0.2.1", last + FloodPauses::kForgottenMs);
  EXPECT_TRUE(pauses.refusal("192.0.2.1", last + FloodPauses::kForgottenMs));
  pauses.forget_quiet_ones(last + FloodPauses::kForgottenMs);
  EXPECT_FALSE(pauses.refusal("192.0.2.1", last + FloodPauses::kForgottenMs));
  pauses.add("192.0.2.1", "a flood", last + FloodPauses::kForgottenMs);
  EXPECT_FALSE(pauses.refusal("192.0.2.1", last + FloodPauses::kForgottenMs + FloodPauses::kPauseMs))
      << "the pause is short again";
}

TEST(FloodPausesTest, TheNumberOfAddressesIsBounded) {
  FloodPauses pauses;
  for (std::size_t i = 0; i <= FloodPauses::kAddressesMax; ++i) pauses.add("address " + std::to_string(i), "", kNow);
  EXPECT_TRUE(pauses.refusal("address " + std::to_string(FloodPauses::kAddressesMax - 1), kNow));
  EXPECT_FALSE(pauses.refusal("address " + std::to_string(FloodPauses::kAddressesMax), kNow));
  pauses.add("address 0", "again", kNow + 1000);
  EXPECT_TRUE(pauses.refusal("address 0", kNow + 2999)) << "a known address pauses twice as long";
}

}  // namespace
}  // namespace kilokv::server
