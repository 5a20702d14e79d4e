#include "server/core/time_text.hpp"

#include <cstdio>
#include <ctime>

namespace kilokv::server {

std::string format_duration(DurationUs duration_us) {
  if (duration_us == 0) return "0";
  const UnitName* best = &kDurationUnits[0];
  for (const UnitName& unit : kDurationUnits) {
    if (duration_us % static_cast<DurationUs>(unit.factor) == 0) best = &unit;
  }
  return std::to_string(duration_us / static_cast<DurationUs>(best->factor)).append(best->name);
}

std::string format_utc(TimeUs time_us) {
  constexpr TimeUs kSecond = 1000000;
  const std::time_t seconds = time_us / kSecond;
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  char text[80];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, static_cast<int>(time_us % kSecond));
  return text;
}

}  // namespace kilokv::server
