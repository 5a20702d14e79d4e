#include "engine/exec/run/strategy_choice.hpp"

#include <cstdio>

namespace kilokv::engine {

std::string StrategyChoice::Reason::text(const std::vector<std::string>& names) const {
  std::string times;
  for (std::size_t i = 0; i < names.size(); ++i) {
    char time[64] = "not timed yet";
    if (seconds_each[i] != 0) std::snprintf(time, sizeof time, "%.0f ns", seconds_each[i] * 1e9);
    times += (i == 0 ? "" : ", ") + names[i] + " " + time;
  }
  const std::size_t least = std::bit_floor(transactions);
  return names[chosen] + (tries ? ", a try" : "") + ": a transaction took " + times + " in batches of " +
         std::to_string(least) + " to " + std::to_string(2 * least - 1) + ", " + to_string(contention) + " contention";
}

}  // namespace kilokv::engine
