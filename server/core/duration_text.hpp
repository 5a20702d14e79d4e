// Durations as people write them in settings, and as the settings read them (server/config_value.hpp).
//
// Thread safety: a pure function.
#pragma once

#include <string>

#include "engine/base/types.hpp"

namespace kilokv::server {

// In the largest unit that leaves a whole number, such as "90s" or "1500us"; "0" without a unit.
std::string format_duration(DurationUs duration_us);

}  // namespace kilokv::server
