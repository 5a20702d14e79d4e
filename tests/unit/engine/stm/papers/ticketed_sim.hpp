// Batches of the strategies with tickets in the simulator, for their tests. The referee checks each result, and so does
// the simulator itself (races, progress, barriers). Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/engine.hpp"
#include "engine/sim/ticketed_sim.hpp"
#include "engine/stm/papers/lock_word.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/sim/sim_seeds.hpp"

namespace kilokv::engine {

// Generates transactions over very few keys, for conflicts that only a full validation finds: reads of one key and
// writes of another, sums over two keys that every transaction keeps, double reads and writes, waits, and some
// precedence.
void generate_conflicts(Random* random, std::uint64_t keys, std::size_t transactions, ColumnsBuilder* builder);

// How a batch runs: the number of lanes in a group, and a protocol on that platform.
struct TicketedKind {
  std::uint32_t width;
  std::unique_ptr<Executor> (*make)(TicketedSimRuns* runs);
  bool has_claims;
};

// 8 to 16 transactions on 2 to 4 keys, on 4 to 16 lanes; one lockstep schedule for two interleaved ones.
TicketedSimRuns ticketed_runs_of(std::uint32_t width, std::uint64_t seed);

// An engine that runs its batches in this way. `runs` outlives it.
std::unique_ptr<Engine> make_simulated(const TicketedKind& kind, TicketedSimRuns* runs);

// A RunSeed with one more argument, its kind.
Status run_ticketed_seed(const TicketedKind& kind, std::uint64_t seed, SimTotals* totals, const Schedule* given);

// Runs one batch of its own scenario, with this many transactions. `add` adds the guards and operations of the i-th.
Status run_ticketed_batch(const TicketedKind& kind, TicketedSimRuns* runs, std::uint64_t transactions,
                          SimTotals* totals, const Schedule* given,
                          const std::function<void(ColumnsBuilder*, std::uint64_t)>& add);

// Runs transactions on two keys that every writer keeps equal, and transactions that wait for them to be equal. These
// never have to wait.
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

// Checks that each of a protocol's rare places was reached.
template <class Probe, std::size_t Size>
void expect_probes(const SimTotals& totals, const NamedProbe<Probe> (&names)[Size]) {
  static_assert(Size == static_cast<std::size_t>(Probe::probes));
  for (const auto& [probe, name] : names) {
    expect_probe(totals, kProtocolProbes + static_cast<std::uint32_t>(probe), name);
  }
}

}  // namespace kilokv::engine
