// Seeded schedules of the simulator, for the tests of what runs in it: that so many hold, or that a planted bug is
// found. A failure prints the command that replays it, and the decisions that make it fail.
//
// A family of runs has run_seed(), a RunSeed: some batches that follow from the seed, each under a schedule of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>

#include "engine/exec/run/execution_report.hpp"
#include "engine/sim/lanes.hpp"
#include "engine/sim/shrink.hpp"
#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {

// Where a sanitizer makes each step slow, a tenth of the schedules; and no planted bugs, each of which is a protocol to
// compile, and none of them what is to be looked at.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t schedules_to_run(std::uint64_t schedules) { return schedules / 10; }
#define PLANTED_TEST(name, expectation) static_assert(true);
#else
constexpr std::uint64_t schedules_to_run(std::uint64_t schedules) { return schedules; }
#define PLANTED_TEST(name, expectation) \
  TEST(name) { expectation; }
#endif

// What a family's runs did.
struct SimTotals {
  static constexpr std::uint64_t kPreemptionsMin = 5;  // of a schedule that counts
  std::uint64_t schedules = 0, few_preemptions = 0, batches = 0, steps = 0, preemptions = 0, stale_loads = 0,
                walked = 0;
  std::set<std::uint64_t> traces;
  std::array<std::uint64_t, kProbes> probes{};
  ExecutionReport last;
  Schedule schedule;  // of the last batch
  RunReport report;

  void count(const RunReport& run);
  // A batch.
  void count(const RunReport& run, const ExecutionReport& execution);
};

// The workload `mixed` over so many keys, without ranges: a batch with one runs on `serial`.
Result<Workload> mixed_workload(std::uint64_t seed, std::uint64_t keys);

// The schedule of the batch with this seed: as usual, or the one that is given, if it is that batch's. Returns which.
bool set_schedule(const Schedule& usual, std::uint64_t seed, const Schedule* given, Schedule* schedule);

// If `given` has the seed of a batch, then it is that batch's schedule, and that batch the last.
using RunSeed = Status (*)(std::uint64_t seed, SimTotals* totals, const Schedule* given);

// From here on seeds are of runs in which memory is weak (sim/weak_memory.hpp).
inline constexpr std::uint64_t kWeakSeeds = std::uint64_t{1} << 32;

// The same seeds in weak memory.
template <class Family>
struct InWeakMemory {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    return Family::run_seed(kWeakSeeds + seed, totals, given);
  }
};

// Whether the batch that was executed is as the referee has it. One that was given up is not: an error of the run.
Status judge(const RefereeScenario& scenario, RefereeMode mode);

template <class Probe>
struct NamedProbe {
  Probe probe;
  const char* name;
};
// A rare place was reached.
void expect_probe(const SimTotals& totals, std::uint32_t number, const char* name);

// KILOKV_TEST_SEED of the environment; null: all seeds are to be run.
const char* replayed_seed();
void print_replay(const char* program, const char* test, std::uint64_t seed, const Status& status);

// What of the failing schedule makes it fail.
ShrunkSchedule shrink_seed(RunSeed run_seed, std::uint64_t seed, const Schedule& failing);

// So many schedules hold. Returns what they did.
SimTotals expect_to_hold(RunSeed run_seed, const char* program, const char* test, std::uint64_t schedules);
template <class Family>
SimTotals expect_to_hold(const char* program, const char* test, std::uint64_t schedules) {
  return expect_to_hold(&Family::run_seed, program, test, schedules);
}

struct FailedSeed {
  std::uint64_t seed = 0;
  Schedule schedule;
};
// A seed whose schedule fails, with the command that replays it; then that it does so again. None: the test has failed.
std::optional<FailedSeed> expect_to_fail(RunSeed run_seed, const char* program, const char* test,
                                         std::uint64_t seeds_max = 6000);
template <class Family>
std::optional<FailedSeed> expect_to_fail(const char* program, const char* test, std::uint64_t seeds_max = 6000) {
  return expect_to_fail(&Family::run_seed, program, test, seeds_max);
}

}  // namespace kilokv::engine
