#include "engine/exec/strategy_choice.hpp"

#include <cstdio>

namespace kilokv::engine {

std::string StrategyChoice::Reason::text(const std::array<const char*, 2>& names) const {
  const auto nanoseconds = [&](std::size_t strategy) {
    if (seconds_each[strategy] == 0) return std::string(names[strategy]) + " not timed yet";
    char text[64];
    std::snprintf(text, sizeof text, "%s %.0f ns", names[strategy], seconds_each[strategy] * 1e9);
    return std::string(text);
  };
  const std::size_t least = std::bit_floor(transactions);
  return std::string(names[chosen]) + (tries ? ", a try" : "") + ": a transaction took " + nanoseconds(0) + ", " +
         nanoseconds(1) + " in batches of " + std::to_string(least) + " to " + std::to_string(2 * least - 1) + ", " +
         to_string(contention) + " contention";
}

}  // namespace kilokv::engine
