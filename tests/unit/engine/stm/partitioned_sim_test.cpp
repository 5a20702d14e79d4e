// `partitioned` under thousands of seeded schedules of the simulator: every batch equals the referee's replay, and no
// two threads race. (Weak memory would show nothing: barriers order all that the threads share.) Then the same with
// mutations, each of which takes one rule away. Each must be found. A failure prints the command that replays its
// schedule, and the few decisions that make it fail.

#include <cstdio>
#include <memory>
#include <string>

#include "engine/engine_for_tests.hpp"
#include "engine/sim/partitioned_sim.hpp"
#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"
#include "tests/unit/engine/sim/sim_seeds.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_partitioned_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(14000);
constexpr std::uint64_t kPlantedSchedulesMax = 4000;
constexpr std::size_t kShrunkDecisionsMax = 12;  // of a mutation
constexpr std::uint64_t kBatches = 2;            // each in a row on one state

// 12 to 30 transactions on 2 to 4 keys, on 2 to 5 lanes, in windows of 3 to 10.
PartitionedSimRuns runs_of(std::uint64_t seed) {
  Random random(seed);
  PartitionedSimRuns runs;
  runs.shape = {.blocks = 1, .block_threads = static_cast<std::uint32_t>(2 + random.below(4)), .group_width = 1};
  runs.tuning = {.window = static_cast<std::uint32_t>(3 + random.below(8)),
                 .tile = static_cast<std::uint32_t>(1 + random.below(3)),
                 .partition_bits = static_cast<std::uint32_t>(1 + random.below(2)),
                 .adders_min = static_cast<std::uint32_t>(2 + random.below(2)),
                 .left_max = static_cast<std::uint32_t>(4 + random.below(12)),
                 .few = static_cast<std::uint32_t>(random.below(4)),
                 .more_rounds = static_cast<std::uint32_t>(random.below(6))};
  runs.schedule.kind = Schedule::Kind::interleaved;
  runs.schedule.preempt_probability = random.chance(0.5) ? 0.5 : 0.1;
  runs.schedule.steps_max = 400'000;
  return runs;
}

// ADDs that hit the same few records, from transactions that also use records of their own. So some adders of a record
// are blocked while younger ones run.
void generate_adds(Random* random, std::uint64_t keys, std::size_t transactions, ColumnsBuilder* builder) {
  const auto draw_key = [&](const char* name, std::uint64_t of) {
    return builder->key(name + std::to_string(random->below(of)));
  };
  for (std::size_t i = 0; i < transactions; ++i) {
    builder->begin();
    if (random->chance(0.1)) builder->guard(GuardKind::greater, OnFalse::fail, draw_key("edge", keys), 0);
    if (random->chance(0.15)) builder->op(OpKind::get, draw_key("edge", keys));
    if (random->chance(0.5)) builder->op(OpKind::put, draw_key("own", 2 * keys), Operand::integer, 1);
    const bool unknown = random->chance(0.1);  // an operand that is known only when the ADD runs
    const char* const name = random->chance(0.7) ? "hot" : "edge";
    builder->op(OpKind::add, draw_key(name, 1 + keys / 2), unknown ? Operand::commit_version : Operand::integer,
                unknown ? 0 : random->between(-4, 4));
    builder->end();
  }
}

// Mutations change these rules.
using Rules = PlantedPartitionedRules<PartitionedRules>;

struct Family {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    PartitionedSimRuns runs = runs_of(seed);
    const Schedule usual = runs.schedule;
    Random random(seed ^ 0x5EED);
    const std::uint64_t keys = 2 + random.below(3);
    auto workload = mixed_workload(seed, keys);
    const bool adds = random.chance(0.5);
    EngineOptions engine_options;
    engine_options.strategy = "ordered";
    engine_options.threads = 1;
    engine_options.secret = RefereeScenario::kSecret;
    RefereeScenario scenario;
    scenario.engine = create_engine_with(engine_options, std::make_unique<PartitionedSim<Rules>>(&runs));
    Status status = load_with_edges(*workload, keys, scenario.engine.get());
    scenario.header.first_version = 2;
    for (std::uint64_t i = 0; status.ok() && i < kBatches; ++i) {
      const bool is_given = set_schedule(usual, seed * kBatches + i, given, &runs.schedule);
      const std::size_t transactions = 12 + random.below(19);
      if (adds) {
        generate_adds(&random, keys, transactions, &scenario.builder);
      } else {
        generate_mixed(&*workload, transactions, &scenario.builder);
      }
      scenario.execute();
      totals->schedule = runs.schedule;
      totals->report = runs.report;
      totals->count(runs.report, scenario.engine->execution());
      status = judge(scenario, RefereeMode::deterministic);
      if (is_given) return status;
      scenario.next_batch();
    }
    return status;
  }
};

// And it takes few decisions. A build with a sanitizer has no mutations, and does not use it.
[[maybe_unused]] void expect_to_fail_soon(const char* test, std::size_t decisions_max = kShrunkDecisionsMax) {
  const auto failed = expect_to_fail<Family>(kProgram, test, kPlantedSchedulesMax);
  if (!failed) return;
  const ShrunkSchedule shrunk = shrink_seed(&Family::run_seed, failed->seed, failed->schedule);
  EXPECT_TRUE(shrunk.fails && shrunk.schedule.decisions.size() <= decisions_max);
}

TEST(partitioned_holds) { expect_to_hold<Family>(kProgram, "partitioned_holds", kSchedules); }
#define PLANTED(test, rule, ...) \
  PLANTED_RULE(test, Rules::rule, false, expect_to_fail_soon(#test __VA_OPT__(, ) __VA_ARGS__))

PLANTED(a_writer_that_overtakes_an_older_reader_is_found, kOlderReader)
PLANTED(a_use_that_overtakes_an_older_writer_is_found, kOlderWriter)
PLANTED(a_reader_that_overtakes_an_older_adder_is_found, kReadersWaitForAdds)
PLANTED(deltas_without_a_bound_are_found, kBoundsDeltas)
PLANTED(a_decision_before_all_have_listed_is_found, kBarrierBeforeDecide)
PLANTED(a_run_before_all_have_decided_is_found, kBarrierBeforeRun)
PLANTED(marks_that_the_next_round_replaces_are_found, kTwoSets)
PLANTED(adders_that_are_not_settled_are_found, kSettles)

}  // namespace
}  // namespace kilokv::engine
