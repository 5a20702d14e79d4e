#include "server/core/time_text.hpp"

#include <cstdio>
#include <ctime>

namespace kilokv::server {

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
