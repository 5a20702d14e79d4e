#include "server/core/time_text.hpp"

#include <cstdio>
#include <ctime>
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
