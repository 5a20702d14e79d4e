#include "server/core/duration_text.hpp"

#include <utility>

namespace kilokv::server {

std::string format_duration(DurationUs duration_us) {
  if (duration_us == 0) return "0";
  constexpr std::pair<const char*, DurationUs> kUnits[] = {
      {"h", 3600000000}, {"m", 60000000}, {"s", 1000000}, {"ms", 1000}};
  for (const auto& [name, factor] : kUnits) {
    if (duration_us % factor == 0) return std::to_string(duration_us / factor) + name;
  }
  return std::to_string(duration_us) + "us";
}

}  // namespace kilokv::server
