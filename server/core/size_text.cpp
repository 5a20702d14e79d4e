#include "server/core/size_text.hpp"

namespace kilokv::server {

std::string format_size(std::uint64_t bytes) {
  const UnitName* best = &kSizeUnits[0];
  for (const UnitName& unit : kSizeUnits) {
    if (bytes != 0 && bytes % unit.factor == 0) best = &unit;
  }
  return std::to_string(bytes / best->factor).append(best->name);
}

}  // namespace kilokv::server
