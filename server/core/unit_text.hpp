// Sizes and durations as people write them: a number and a unit.
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
inline constexpr UnitName kSizeUnits[] = {{"B", 1},
                                          {"KiB", std::uint64_t{1} << 10},
                                          {"MiB", std::uint64_t{1} << 20},
                                          {"GiB", std::uint64_t{1} << 30},
                                          {"TiB", std::uint64_t{1} << 40}};

// As settings read them (server/config_value.hpp): in the largest unit that leaves a whole number, such as "90s" or
// "1500us"; "0" without a unit.
std::string format_duration(DurationUs duration_us);

// The same for bytes, such as "4MiB" or "1000B".
std::string format_size(std::uint64_t bytes);

}  // namespace kilokv::server
