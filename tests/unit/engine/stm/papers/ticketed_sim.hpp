// Batches of the strategies with tickets in the simulator, for their tests: each result is judged by the referee, and
// by the simulator itself (races, progress, barriers).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/sim/ticketed_sim.hpp"
#include "engine/stm/papers/lock_word.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/sim/sim_seeds.hpp"

namespace kilokv::engine {

// Transactions over very few keys, chosen for conflicts that only a full validation finds: reads of one key and writes
// of another, sums over two keys that every transaction keeps, double reads and writes, waits, and some precedence.
void generate_conflicts(Random* random, std::uint64_t keys, std::size_t transactions, ColumnsBuilder* builder);

// How a batch is run: so many lanes in a group, and a protocol on that platform.
struct TicketedKind {
  std::uint32_t width;
  std::unique_ptr<Executor> (*make)(TicketedSimRuns* runs);
  bool has_claims;
};

// 8 to 16 transactions on 2 to 4 keys, on 4 to 16 lanes; one lockstep schedule for two interleaved ones.
TicketedSimRuns ticketed_runs_of(std::uint32_t width, std::uint64_t seed);

// An engine that runs its batches so. `runs` outlives it.
std::unique_ptr<Engine> make_simulated(const TicketedKind& kind, TicketedSimRuns* runs);

// A RunSeed, but for its kind.
Status run_ticketed_seed(const TicketedKind& kind, std::uint64_t seed, SimTotals* totals, const Schedule* given);

// One batch of a scenario of its own, of so many transactions: `add` adds the guards and operations of the i-th.
Status run_ticketed_batch(const TicketedKind& kind, TicketedSimRuns* runs, std::uint64_t transactions,
                          SimTotals* totals, const Schedule* given,
                          const std::function<void(ColumnsBuilder*, std::uint64_t)>& add);

// Two keys that every writer keeps equal, and transactions that wait for that: they never have to.
Status run_equal_keys(const TicketedKind& kind, TicketedSimRuns runs, SimTotals* totals, const Schedule* given);

template <class Rules>
constexpr bool kHasClaims = requires {
  typename Rules::Word;
};

// A family of runs.
template <std::uint32_t Width, class Protocol>
struct TicketedFamily {
  static std::unique_ptr<Executor> make(TicketedSimRuns* runs) {
    return std::make_unique<TicketedSim<Width, Protocol>>(runs);
  }
  static constexpr TicketedKind kKind{Width, &make, kHasClaims<typename Protocol::Rules>};

  static TicketedSimRuns runs_of(std::uint64_t seed) { return ticketed_runs_of(Width, seed); }
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    return run_ticketed_seed(kKind, seed, totals, given);
  }
};

// All of a protocol's: each was reached.
template <class Probe, std::size_t Size>
void expect_probes(const SimTotals& totals, const NamedProbe<Probe> (&names)[Size]) {
  static_assert(Size == static_cast<std::size_t>(Probe::probes));
  for (const auto& [probe, name] : names) {
    expect_probe(totals, kProtocolProbes + static_cast<std::uint32_t>(probe), name);
  }
}

}  // namespace kilokv::engine
