#include "server/core/pipeline/counters.hpp"

#include <array>
#include <string_view>

namespace kilokv::server {

constexpr auto relaxed = std::memory_order_relaxed;

void Counters::add_batch(const engine::ExecutionReport& execution) {
  const bool serial = std::string_view(execution.strategy) == "serial";
  std::atomic<std::uint64_t>& of_its_kind = execution.on_device ? batches_on_device
                                            : serial            ? batches_serial
                                                                : batches_parallel;
  of_its_kind.fetch_add(1, relaxed);
  batches.fetch_add(1, relaxed);
}

std::uint64_t Counters::add_outcomes(const engine::BatchResults& results) {
  std::array<std::uint64_t, 8> counts{};
  for (const std::uint8_t outcome : results.outcome) ++counts[outcome & 7];
  const auto of = [&counts](engine::Outcome outcome) { return counts[static_cast<std::size_t>(outcome)]; };
  const std::uint64_t postponed = of(engine::Outcome::postponed);
  transactions.fetch_add(results.outcome.size() - postponed, relaxed);
  committed.fetch_add(of(engine::Outcome::committed), relaxed);
  guard_failed.fetch_add(of(engine::Outcome::guard_failed), relaxed);
  wait_expired.fetch_add(of(engine::Outcome::wait_expired), relaxed);
  overflow.fetch_add(of(engine::Outcome::overflow), relaxed);
  type_mismatch.fetch_add(of(engine::Outcome::type_mismatch), relaxed);
  return postponed;
}

}  // namespace kilokv::server
