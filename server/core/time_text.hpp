// Times as people write them.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "engine/base/types.hpp"

namespace kilokv::server {

// In UTC, such as "2026-01-31T12:00:00.500000Z". `kilokv restore --to-time` reads it.
std::string format_utc(TimeUs time_us);

}  // namespace kilokv::server
