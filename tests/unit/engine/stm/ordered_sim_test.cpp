// `ordered` under thousands of seeded schedules of the simulator: every batch equals the referee's replay, every
// transaction is decided or postponed, and no two threads race. Then the same with mutations, each of which takes one
// rule away. Each must be found. A failure prints the command that replays its schedule, and the few decisions that
// make it fail.

#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "engine/engine_for_tests.hpp"
#include "engine/sim/ordered_sim.hpp"
#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"
#include "tests/unit/engine/sim/sim_seeds.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_ordered_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(14000);
constexpr std::uint64_t kPlantedSchedulesMax = 4000;
constexpr std::size_t kShrunkDecisionsMax = 10;  // of a mutation
constexpr std::uint64_t kBatches = 2;            // each in a row on one state: reservations of earlier ones are there

// 8 to 16 transactions on 2 to 4 keys, on 4 to 16 lanes; one lockstep schedule for two interleaved ones.
SimRuns runs_of(std::uint32_t width, std::uint64_t seed) {
  Random random(seed);
  SimRuns runs;
  runs.shape = {.blocks = static_cast<std::uint32_t>(1 + random.below(2)), .group_width = width};
  runs.shape.block_threads = static_cast<std::uint32_t>(4 * (1 + random.below(2)));
  if (random.chance(0.35)) runs.tuning = {.decided_min = 1, .divisor = 4, .walks = random.chance(0.8)};
  if (seed % 4 == 0) {
    runs.tuning.decided_min = 5;
    runs.tuning.few_of_max = 8;
  }
  runs.tuning.idle_rounds_max = 0;  // no round may stand still
  runs.schedule.kind = seed % 3 == 0 ? Schedule::Kind::lockstep : Schedule::Kind::interleaved;
  runs.schedule.preempt_probability = random.chance(0.5) ? 0.5 : 0.1;
  runs.schedule.steps_max = 200'000;
  if (seed >= kWeakSeeds) runs.schedule.stale_probability = 0.3;
  return runs;
}

// Small ADDs, most without a guard, on few records at the edge of 64 bits; some read or set them.
void generate_adds(Random* random, std::uint64_t keys, std::size_t transactions, ColumnsBuilder* builder) {
  const auto draw_key = [&] { return builder->key("edge" + std::to_string(random->below(keys))); };
  for (std::size_t i = 0; i < transactions; ++i) {
    builder->begin();
    if (random->chance(0.1)) {
      builder->guard(GuardKind::greater, OnFalse::fail, draw_key(), 0);
    }
    if (random->chance(0.15)) builder->op(OpKind::get, draw_key());
    if (random->chance(0.1)) {
      builder->op(OpKind::put, draw_key(), Operand::integer, std::numeric_limits<std::int64_t>::max() - 2);
    }
    for (std::uint64_t adds = 1 + random->below(2); adds > 0; --adds) {
      const bool unknown = random->chance(0.1);  // an operand that is known only when the ADD runs
      const Operand operand = random->chance(0.5) ? Operand::commit_version : Operand::batch_time;
      builder->op(OpKind::add, draw_key(), unknown ? operand : Operand::integer, unknown ? 0 : random->between(-4, 4));
    }
    builder->end();
  }
}

// Nearly all wait for a record that another one sets: passes in which few are decided, or late.
void generate_waits(Random* random, std::uint64_t keys, std::size_t transactions, ColumnsBuilder* builder) {
  const auto draw_key = [&] { return builder->key("wait" + std::to_string(random->below(keys))); };
  for (std::size_t i = 0; i < transactions; ++i) {
    builder->begin();
    if (i + 1 < transactions) builder->guard(GuardKind::greater, OnFalse::wait, draw_key(), random->between(0, 3));
    builder->op(OpKind::put, draw_key(), Operand::integer, random->between(0, 5));
    builder->end();
  }
}

using MakeExecutor = std::unique_ptr<Executor> (*)(SimRuns* runs);

Status run_ordered_seed(SimRuns runs, MakeExecutor make, std::uint64_t seed, SimTotals* totals, const Schedule* given) {
  const Schedule usual = runs.schedule;
  Random random(seed ^ 0x5EED);
  const std::uint64_t keys = 2 + random.below(3);
  auto workload = mixed_workload(seed, keys);
  const bool adds = random.chance(0.25);
  const bool waits = !adds && random.chance(0.25);
  EngineOptions engine_options;
  engine_options.strategy = "ordered";
  engine_options.threads = 1;
  engine_options.secret = RefereeScenario::kSecret;
  RefereeScenario scenario;
  scenario.engine = create_engine_with(engine_options, make(&runs));
  Status status = load_with_edges(*workload, keys, scenario.engine.get());
  scenario.header.first_version = 2;
  for (std::uint64_t i = 0; status.ok() && i < kBatches; ++i) {
    const bool is_given = set_schedule(usual, seed * kBatches + i, given, &runs.schedule);
    const std::size_t transactions = 8 + random.below(9);
    if (adds) {
      generate_adds(&random, keys, transactions, &scenario.builder);
    } else if (waits) {
      generate_waits(&random, keys, transactions, &scenario.builder);
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

// Mutations change these rules, in groups of 4. Other groups have the rules of the product.
using Rules = PlantedOrderedRules<OrderedRules>;
template <std::uint32_t Width, class R>
struct FamilyOf {
  static std::unique_ptr<Executor> make(SimRuns* runs) { return std::make_unique<OrderedSim<Width, R>>(runs); }
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    return run_ordered_seed(runs_of(Width, seed), &make, seed, totals, given);
  }
};
using Family = FamilyOf<4, Rules>;

template <class F>
void expect_chains_to_hold(const char* test, std::uint64_t schedules, bool is_weak = false) {
  const SimTotals totals = expect_to_hold<F>(kProgram, test, schedules);
  if (replayed_seed() != nullptr || kilokv::test::has_failed()) return;
  std::printf("  %llu transactions in chains\n", static_cast<unsigned long long>(totals.walked));
  EXPECT_TRUE(totals.walked > schedules / 10);
  EXPECT_EQ(totals.stale_loads > schedules, is_weak);
}

// And it takes few decisions. A build with a sanitizer has no mutations, and does not use it.
[[maybe_unused]] void expect_to_fail_soon(const char* test, std::size_t decisions_max = kShrunkDecisionsMax) {
  const auto failed = expect_to_fail<Family>(kProgram, test, kPlantedSchedulesMax);
  if (!failed) return;
  const ShrunkSchedule shrunk = shrink_seed(&Family::run_seed, failed->seed, failed->schedule);
  EXPECT_TRUE(shrunk.fails && shrunk.schedule.decisions.size() <= decisions_max);
}

TEST(ordered_holds_in_groups_of_4) { expect_chains_to_hold<Family>("ordered_holds_in_groups_of_4", kSchedules); }
TEST(ordered_holds_in_groups_of_32) {
  expect_chains_to_hold<FamilyOf<32, OrderedRules>>("ordered_holds_in_groups_of_32", kSchedules / 12);
}
TEST(ordered_holds_in_weak_memory) {
  expect_chains_to_hold<InWeakMemory<Family>>("ordered_holds_in_weak_memory", kSchedules / 7, true);
}

#define PLANTED(test, rule, ...) \
  PLANTED_RULE(test, Rules::rule, false, expect_to_fail_soon(#test __VA_OPT__(, ) __VA_ARGS__))

// docs/papers.md, gap 10.
PLANTED(a_missing_rule_of_the_older_reader_is_found, kOlderReader)
PLANTED(a_reservation_without_its_epoch_is_found, kTagsReads)
PLANTED(a_missing_first_barrier_is_found, kBarrierBeforeDecide)
PLANTED(a_missing_barrier_of_a_round_is_found, kBarrierBehindRound)
PLANTED(reservations_in_words_that_decide_are_found, kTwoSets)
PLANTED(a_pass_that_opens_without_reservations_is_found, kJoinsFirst)
PLANTED(a_postponed_one_at_its_old_place_is_found, kPlacesByPass)
PLANTED(readers_in_a_chain_of_their_own_are_found, kReadersJoin)
// The lanes have to decide little in a round, and then to meet in a certain order.
PLANTED(adders_that_do_not_commute_in_chains_of_their_own_are_found, kAddersJoin, 40)
PLANTED(chains_that_were_not_joined_to_the_end_are_found, kJoinsUntilStill)
PLANTED(a_walk_that_mixes_passes_is_found, kWalksByPass)
PLANTED(a_walk_before_all_have_looked_is_found, kMeetsBeforeWalk)
PLANTED(a_look_before_the_walk_has_ended_is_found, kMeetsBehindWalk)
PLANTED(deltas_without_a_bound_are_found, kBoundsDeltas)

}  // namespace
}  // namespace kilokv::engine
