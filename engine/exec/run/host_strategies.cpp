#include "engine/exec/run/host_strategies.hpp"

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/exec/papers/ticketed_host.hpp"
#include "engine/exec/run/ordered_host.hpp"

namespace kilokv::engine {

HostStrategies::HostStrategies(std::vector<std::string> strategies, std::uint32_t threads, const TicketedTuning& tuning)
    : names_(std::move(strategies)) {
  for (const std::string& name : names_) {
    executors_.push_back(name == "ordered" ? std::make_unique<OrderedHost>(threads)
                                           : make_ticketed_host(name, threads, tuning));
    KILOKV_CHECK(executors_.back() != nullptr);
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
