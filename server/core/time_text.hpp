// Durations and times as people write them.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/types.hpp"

namespace kilokv::server {

struct UnitName {
  std::string_view name;
  std::uint64_t factor;
};
// From the smallest unit to the largest.
inline constexpr UnitName kDurationUnits[] = {
    {"us", 1}, {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", 3600000000}};

// As settings read them (server/config_value.hpp): in the largest unit that leaves a whole number, such as "90s" or
// "1500us"; "0" without a unit.
std::string format_duration(DurationUs duration_us);

// In UTC, such as "2026-01-31T12:00:00.500000Z". `kilokv restore --to-time` reads it.
std::string format_utc(TimeUs time_us);

}  // namespace kilokv::server
