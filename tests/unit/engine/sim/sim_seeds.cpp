#include "tests/unit/engine/sim/sim_seeds.hpp"

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"
#include "tests/unit/engine/sim/shrink_batch.hpp"

namespace kilokv::engine {
namespace {

std::uint64_t first_seed() { return replayed_seed() != nullptr ? std::strtoull(replayed_seed(), nullptr, 10) : 1; }

void print(const SimTotals& totals) {
  std::printf(
      "  %llu schedules with at least %llu preemptions (%llu with fewer), %zu different traces, %llu batches, "
      "%llu steps, %llu preemptions, %llu loads of older values\n",
      static_cast<unsigned long long>(totals.schedules), static_cast<unsigned long long>(SimTotals::kPreemptionsMin),
      static_cast<unsigned long long>(totals.few_preemptions), totals.traces.size(),
      static_cast<unsigned long long>(totals.batches), static_cast<unsigned long long>(totals.steps),
      static_cast<unsigned long long>(totals.preemptions), static_cast<unsigned long long>(totals.stale_loads));
}

}  // namespace

void SimTotals::count(const RunReport& run) {
  ++batches;
  steps += run.steps;
  preemptions += run.preemptions;
  stale_loads += run.stale_loads;
  for (std::uint32_t i = 0; i < kProbes; ++i) probes[i] += run.probes[i];
  if (run.preemptions < kPreemptionsMin) {
    ++few_preemptions;
  } else {
    ++schedules;
    traces.insert(run.trace);
  }
}

void SimTotals::count(const RunReport& run, const ExecutionReport& execution) {
  count(run);
  walked += execution.counter("walked");
  last = execution;
}

Result<Workload> mixed_workload(std::uint64_t seed, std::uint64_t keys) {
  WorkloadOptions options;
  options.name = "mixed";
  options.keys = keys;
  options.seed = seed;
  options.mixed.ranges = false;
  return Workload::create(options);
}

Status load_with_edges(const Workload& workload, std::uint64_t keys, Engine* engine) {
  Status status;
  workload.for_each_initial([&](const InitialRecord& record) {
    if (status.ok()) status = engine->load(record.key, 1, record.type, record.integer, record.bytes);
  });
  constexpr std::int64_t kEdge = std::numeric_limits<std::int64_t>::max() - 2;
  for (std::uint64_t key = 0; status.ok() && key < keys; ++key) {
    status = engine->load("edge" + std::to_string(key), 1, ValueType::integer, kEdge, {});
  }
  return status;
}

void generate_mixed(Workload* workload, std::size_t transactions, ColumnsBuilder* builder) {
  workload->generate(builder, transactions);
}

bool set_schedule(const Schedule& usual, std::uint64_t seed, const Schedule* given, Schedule* schedule) {
  const bool is_given = given != nullptr && given->seed == seed;
  *schedule = is_given ? *given : usual;
  schedule->seed = seed;
  return is_given;
}

Status judge(const RefereeScenario& scenario, RefereeMode mode) {
  if (const std::string reason = scenario.engine->device().reason; !reason.empty()) {
    return Status(StatusCode::internal, reason);
  }
  ModelState after;
  const Status status = scenario.check(mode, &after);
  return status.ok() ? check_state(after, *scenario.engine) : status;
}

void expect_probe(const SimTotals& totals, std::uint32_t number, const char* name) {
  std::printf("  %8llu times %s\n", static_cast<unsigned long long>(totals.probes[number]), name);
  if (totals.probes[number] == 0) FAIL(std::string("never reached: ") + name);
}

const char* replayed_seed() { return std::getenv("KILOKV_TEST_SEED"); }

void print_replay(const char* program, const char* test, std::uint64_t seed, const Status& status) {
  std::printf("  seed %llu: %s\n  replay: KILOKV_TEST_SEED=%llu %s %s\n", static_cast<unsigned long long>(seed),
              status.message().c_str(), static_cast<unsigned long long>(seed), program, test);
}

ShrunkSchedule shrink_seed(RunSeed run_seed, std::uint64_t seed, const Schedule& failing) {
  return shrink_batch(failing, [&](const Schedule& schedule, RunReport* report) {
    SimTotals totals;
    const Status status = run_seed(seed, &totals, &schedule);
    *report = totals.report;
    return status;
  });
}

SimTotals expect_to_hold(RunSeed run_seed, const char* program, const char* test, std::uint64_t schedules) {
  SimTotals totals;
  for (std::uint64_t seed = first_seed(); totals.schedules < schedules; ++seed) {
    if (const Status status = run_seed(seed, &totals, nullptr); !status.ok()) {
      print_replay(program, test, seed, status);
      shrink_seed(run_seed, seed, totals.schedule);
      FAIL(status.message());
      return totals;
    }
    if (replayed_seed() != nullptr) return totals;
  }
  print(totals);
  EXPECT_TRUE(totals.traces.size() > schedules * 9 / 10);
  return totals;
}

std::optional<FailedSeed> expect_to_fail(RunSeed run_seed, const char* program, const char* test,
                                         std::uint64_t seeds_max) {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed <= first + seeds_max; ++seed) {
    SimTotals totals;
    const Status status = run_seed(seed, &totals, nullptr);
    if (!status.ok()) {
      print_replay(program, test, seed, status);
      EXPECT_EQ(run_seed(seed, &totals, nullptr).message(), status.message());
      return FailedSeed{seed, totals.schedule};
    }
    if (replayed_seed() != nullptr) break;
  }
  FAIL("the planted bug is not found");
  return {};
}

}  // namespace kilokv::engine
