#include "engine/exec/run/host_strategies.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/exec/strategy.hpp"

namespace kilokv::engine {

HostStrategies::HostStrategies(std::vector<std::string> strategies, std::uint32_t threads, const SettingTexts& settings)
    : names_(std::move(strategies)) {
  for (const std::string& name : names_) {
    const Strategy* const strategy = find_strategy(name);
    KILOKV_CHECK(strategy != nullptr && strategy->make_host != nullptr);
    executors_.push_back(strategy->make_host(threads, settings));
  }
  use(0);
}

std::size_t HostStrategies::transactions_max() const {
  std::size_t least = executors_.front()->transactions_max();
  for (const auto& executor : executors_) least = std::min(least, executor->transactions_max());
  return least;
}

std::size_t HostStrategies::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& executor : executors_) bytes += executor->memory_bytes();
  return bytes;
}

}  // namespace kilokv::engine
