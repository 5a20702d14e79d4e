// Seeded schedules of the simulator, for the tests of code that runs in it. A test checks that a number of schedules
// succeed, or that a mutation is found. A failure prints the command that replays it, and the decisions that make it
// fail.
//
// A family of runs has run_seed(), a RunSeed. It runs some batches that follow from the seed, each under its own
// schedule. Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "engine/base/status.hpp"
#include "engine/exec/run/execution_report.hpp"
#include "engine/sim/lanes.hpp"
#include "engine/sim/shrink.hpp"
#include "tests/unit/engine/harness.hpp"

namespace kilokv::engine {

class ColumnsBuilder;
class Engine;
class Workload;
enum class RefereeMode : std::uint8_t;
struct RefereeScenario;

// If a sanitizer makes each step slow, a tenth of the schedules run. Mutations are then left out, because the sanitizer
// is not there to check mutations.
constexpr std::uint64_t schedules_to_run(std::uint64_t schedules) {
  return test::kSanitized ? schedules / 10 : schedules;
}
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLANTED_TEST(name, ...) static_assert(true);
#else
#define PLANTED_TEST(name, ...) \
  TEST(name) { __VA_ARGS__; }
#endif

// The counts over a family's runs.
struct SimTotals {
  static constexpr std::uint64_t kPreemptionsMin = 5;  // a schedule with fewer does not count
  std::uint64_t schedules = 0, few_preemptions = 0, batches = 0, steps = 0, preemptions = 0, stale_loads = 0,
                walked = 0;
  std::set<std::uint64_t> traces;
  std::array<std::uint64_t, kProbes> probes{};
  ExecutionReport last;
  Schedule schedule;  // of the last batch
  RunReport report;

  void count(const RunReport& run);
  // Counts a batch.
  void count(const RunReport& run, const ExecutionReport& execution);
};

// The workload `mixed` over this many keys, without ranges, because a batch with a range runs on `serial`.
Result<Workload> mixed_workload(std::uint64_t seed, std::uint64_t keys);
// Appends that workload's next transactions. It is not in this header, because it compiles the generators of all
// workloads.
void generate_mixed(Workload* workload, std::size_t transactions, ColumnsBuilder* builder);

// Loads the records that the workload begins with, and the keys "edge0", "edge1", ... up to `keys` of them. An edge key
// holds an integer near the end of 64 bits.
Status load_with_edges(const Workload& workload, std::uint64_t keys, Engine* engine);

// Sets the schedule of the batch with this seed: `given` if it belongs to that batch, else `usual`. Returns whether it
// is `given`.
bool set_schedule(const Schedule& usual, std::uint64_t seed, const Schedule* given, Schedule* schedule);

// If `given` has the seed of a batch, it is that batch's schedule, and that batch is the last one.
using RunSeed = Status (*)(std::uint64_t seed, SimTotals* totals, const Schedule* given);

// Seeds from here on belong to runs with weak memory (sim/weak_memory.hpp).
inline constexpr std::uint64_t kWeakSeeds = std::uint64_t{1} << 32;

// The same seeds, in weak memory.
template <class Family>
struct InWeakMemory {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    return Family::run_seed(kWeakSeeds + seed, totals, given);
  }
};

// Checks the executed batch with the referee. A batch that was given up is an error of the run.
Status judge(const RefereeScenario& scenario, RefereeMode mode);

template <class Probe>
struct NamedProbe {
  Probe probe;
  const char* name;
};
// Fails the test if this rare place was not reached.
void expect_probe(const SimTotals& totals, std::uint32_t number, const char* name);

// The value of KILOKV_TEST_SEED in the environment. Null: all seeds run.
const char* replayed_seed();
void print_replay(const char* program, const char* test, std::uint64_t seed, const Status& status);

// Finds the decisions of the failing schedule that make it fail.
ShrunkSchedule shrink_seed(RunSeed run_seed, std::uint64_t seed, const Schedule& failing);

// Runs this many schedules, all of which must succeed. Returns their counts.
SimTotals expect_to_hold(RunSeed run_seed, const char* program, const char* test, std::uint64_t schedules);
template <class Family>
SimTotals expect_to_hold(const char* program, const char* test, std::uint64_t schedules) {
  return expect_to_hold(&Family::run_seed, program, test, schedules);
}

struct FailedSeed {
  std::uint64_t seed = 0;
  Schedule schedule;
};
// Finds a seed whose schedule fails, prints the command that replays it, and checks that the replay fails too. Returns
// nothing if the test has failed.
std::optional<FailedSeed> expect_to_fail(RunSeed run_seed, const char* program, const char* test,
                                         std::uint64_t seeds_max = 6000);
template <class Family>
std::optional<FailedSeed> expect_to_fail(const char* program, const char* test, std::uint64_t seeds_max = 6000) {
  return expect_to_fail(&Family::run_seed, program, test, seeds_max);
}

}  // namespace kilokv::engine
