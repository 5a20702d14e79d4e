#include "engine/exec/run/strategy_choice.hpp"

#include <cmath>

namespace kilokv::engine {

std::string StrategyChoice::Reason::text(const std::vector<std::string>& names) const {
  std::string text = names[chosen] + (tries ? ", a try" : "") + ": a transaction took ";
  const auto nanoseconds = [](double seconds) { return std::to_string(std::llround(seconds * 1e9)) + " ns"; };
  bool has_helpers = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Time& time = times[i];
    text += (i == 0 ? "" : ", ") + names[i] + " " + (time.wall == 0 ? "not timed yet" : nanoseconds(time.wall));
    if (time.helpers == 0) continue;
    text += " and " + nanoseconds(time.helpers) + " of helpers";
    has_helpers = true;
  }
  const std::size_t least = std::bit_floor(transactions);
  text += " in batches of " + std::to_string(least) + " to " + std::to_string(2 * least - 1) + ", " +
          to_string(contention) + " contention";
  if (has_helpers) text += "; work waits for a core " + std::to_string(std::llround(busy * 100)) + "% of the time";
  return text;
}

}  // namespace kilokv::engine
