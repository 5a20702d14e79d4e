// Sizes in bytes as people write them.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "server/core/time_text.hpp"

namespace kilokv::server {

// From the smallest unit to the largest.
inline constexpr UnitName kSizeUnits[] = {{"B", 1},
                                          {"KiB", std::uint64_t{1} << 10},
                                          {"MiB", std::uint64_t{1} << 20},
                                          {"GiB", std::uint64_t{1} << 30},
                                          {"TiB", std::uint64_t{1} << 40}};

// As settings read them (server/config_value.hpp): in the largest unit that leaves a whole number, such as "4MiB" or
// "1000B".
std::string format_size(std::uint64_t bytes);

}  // namespace kilokv::server
