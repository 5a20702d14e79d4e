#include "server/core/unit_text.hpp"

#include <span>

namespace kilokv::server {
namespace {

// In the largest unit that leaves a whole number.
std::string with_unit(std::uint64_t value, std::span<const UnitName> units) {
  const UnitName* best = &units[0];
  for (const UnitName& unit : units) {
    if (value != 0 && value % unit.factor == 0) best = &unit;
  }
  return std::to_string(value / best->factor).append(best->name);
}

}  // namespace

std::string format_duration(DurationUs duration_us) {
  if (duration_us == 0) return "0";
  const std::string sign = duration_us < 0 ? "-" : "";
  return sign + with_unit(static_cast<std::uint64_t>(duration_us < 0 ? -duration_us : duration_us), kDurationUnits);
}

std::string format_size(std::uint64_t bytes) { return with_unit(bytes, kSizeUnits); }

}  // namespace kilokv::server
