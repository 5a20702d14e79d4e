// The time of day, for tokens that expire. Thread safety: pure but for the clock.
#pragma once

#include <chrono>

#include "engine/base/types.hpp"

namespace kilokv::server {

inline TimeUs unix_us_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace kilokv::server
