// `ordered` under thousands of seeded schedules of the simulator: every batch equals the referee's replay, nobody waits
// for ever, and no two threads race. Then the same with one rule taken away at a time: each such bug is found. A
// failure prints the command that replays its schedule, and the few decisions that make it fail.

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <set>
#include <string>

#include "engine/engine_with.hpp"
#include "engine/exec/ordered_sim.hpp"
#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee_scenario.hpp"
#include "tests/unit/engine/shrink_batch.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint64_t kSchedules = 14000;   // that count: see kPreemptionsMin
constexpr std::uint64_t kPreemptionsMin = 5;  // of a schedule that counts
constexpr std::uint64_t kPlantedSchedulesMax = 4000;
constexpr std::size_t kShrunkDecisionsMax = 10;               // of a planted bug
constexpr std::uint64_t kWeakSeeds = std::uint64_t{1} << 32;  // from here on memory is weak
constexpr std::uint64_t kBatches = 2;  // each in a row on one state: reservations of earlier ones are there

struct NoOlderReader : OrderedRules {
  static constexpr bool kOlderReader = false;
};
struct UntaggedReads : OrderedRules {
  static constexpr bool kTagsReads = false;
};
struct NoBarrierBeforeDecide : OrderedRules {
  static constexpr bool kBarrierBeforeDecide = false;
};
struct NoBarrierBehindRound : OrderedRules {
  static constexpr bool kBarrierBehindRound = false;
};
struct OneSet : OrderedRules {
  static constexpr bool kTwoSets = false;
};
struct RunsUnreserved : OrderedRules {
  static constexpr bool kJoinsFirst = false;
};
struct PlacesWithoutPass : OrderedRules {
  static constexpr bool kPlacesByPass = false;
};
struct ReadersWalkAlone : OrderedRules {
  static constexpr bool kReadersJoin = false;
};
struct AddersWalkAlone : OrderedRules {
  static constexpr bool kAddersJoin = false;
};
struct ChainsAfterOneSweep : OrderedRules {
  static constexpr bool kJoinsUntilStill = false;
};
struct WalksAcrossPasses : OrderedRules {
  static constexpr bool kWalksByPass = false;
};
struct UnboundedDeltas : OrderedRules {
  static constexpr bool kBoundsDeltas = false;
};

// 8 to 16 transactions on 2 to 4 keys, on 4 to 16 lanes; one lockstep schedule for two interleaved ones.
template <std::uint32_t Width>
SimRuns runs_of(std::uint64_t seed) {
  Random random(seed);
  SimRuns runs;
  runs.shape = {.blocks = static_cast<std::uint32_t>(1 + random.below(2)), .group_width = Width};
  runs.shape.block_threads = static_cast<std::uint32_t>(4 * (1 + random.below(2)));
  if (random.chance(0.35)) runs.tuning = {.decided_min = 1, .divisor = 4, .walks = random.chance(0.8)};
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

struct Totals {
  Schedule schedule;  // of the last batch
  RunReport report;
  std::uint64_t schedules = 0, batches = 0, steps = 0, preemptions = 0, few_preemptions = 0, stale_loads = 0,
                walked = 0;
  std::set<std::uint64_t> traces;
};

// A scenario of this seed, each batch under a schedule of its own, unless `given` has its seed: then that one
// is the last.
template <std::uint32_t Width, class Rules>
Status run_seed(std::uint64_t seed, Totals* totals, const Schedule* given = nullptr) {
  SimRuns runs = runs_of<Width>(seed);
  const Schedule usual = runs.schedule;
  Random random(seed ^ 0x5EED);
  WorkloadOptions options;
  options.name = "mixed";
  options.keys = 2 + random.below(3);
  options.seed = seed;
  options.mixed.ranges = false;
  auto workload = Workload::create(options);
  const bool adds = random.chance(0.25);
  const bool waits = !adds && random.chance(0.25);
  EngineOptions engine_options;
  engine_options.strategy = "ordered";
  engine_options.threads = 1;
  engine_options.secret = RefereeScenario::kSecret;
  RefereeScenario scenario;
  scenario.engine = create_engine_with(engine_options, std::make_unique<OrderedSim<Width, Rules>>(&runs));
  Status status;
  workload->for_each_initial([&](const InitialRecord& record) {
    if (status.ok()) status = scenario.engine->load(record.key, 1, record.type, record.integer, record.bytes);
  });
  for (std::uint64_t key = 0; status.ok() && key < options.keys; ++key) {
    status = scenario.engine->load("edge" + std::to_string(key), 1, ValueType::integer,
                                   std::numeric_limits<std::int64_t>::max() - 2, {});
  }
  scenario.header.first_version = 2;
  for (std::uint64_t i = 0; status.ok() && i < kBatches; ++i) {
    runs.schedule = usual;
    runs.schedule.seed = seed * kBatches + i;
    if (given != nullptr && given->seed == runs.schedule.seed) runs.schedule = *given;
    const std::size_t transactions = 8 + random.below(9);
    if (adds) {
      generate_adds(&random, options.keys, transactions, &scenario.builder);
    } else if (waits) {
      generate_waits(&random, options.keys, transactions, &scenario.builder);
    } else {
      workload->generate(&scenario.builder, transactions);
    }
    scenario.execute();
    totals->schedule = runs.schedule;
    totals->report = runs.report;
    const std::string reason =
        scenario.engine->device().reason;  // why it was given up: an error of the run, or of its results
    if (!reason.empty()) return Status(StatusCode::internal, reason);
    ModelState after;
    status = scenario.check(RefereeMode::deterministic, &after);
    if (status.ok()) status = check_state(after, *scenario.engine);
    ++totals->batches;
    totals->steps += runs.report.steps;
    totals->preemptions += runs.report.preemptions;
    totals->stale_loads += runs.report.stale_loads;
    totals->walked += scenario.engine->execution().walked;
    if (runs.report.preemptions < kPreemptionsMin) {
      ++totals->few_preemptions;
    } else {
      ++totals->schedules;
      totals->traces.insert(runs.report.trace);
    }
    if (given != nullptr && given->seed == runs.schedule.seed) return status;
    scenario.next_batch();
  }
  return status;
}

void print_replay(const char* test, std::uint64_t seed, const Status& status) {
  std::printf("  seed %llu: %s\n  replay: KILOKV_TEST_SEED=%llu engine_ordered_sim_test %s\n",
              static_cast<unsigned long long>(seed), status.message().c_str(), static_cast<unsigned long long>(seed),
              test);
}

// What of the failing schedule makes it fail.
template <std::uint32_t Width, class Rules>
ShrunkSchedule shrink_seed(std::uint64_t seed, const Schedule& failing) {
  return shrink_batch(failing, [seed](const Schedule& schedule, RunReport* report) {
    Totals totals;
    const Status status = run_seed<Width, Rules>(seed, &totals, &schedule);
    *report = totals.report;
    return status;
  });
}

const char* replayed_seed() { return std::getenv("KILOKV_TEST_SEED"); }

template <std::uint32_t Width>
void expect_to_hold(const char* test, std::uint64_t schedules, std::uint64_t first_seed = 1) {
  Totals totals;
  const std::uint64_t first = replayed_seed() != nullptr ? std::strtoull(replayed_seed(), nullptr, 10) : first_seed;
  for (std::uint64_t seed = first; totals.schedules < schedules; ++seed) {
    if (const Status status = run_seed<Width, OrderedRules>(seed, &totals); !status.ok()) {
      print_replay(test, seed, status);
      shrink_seed<Width, OrderedRules>(seed, totals.schedule);
      return FAIL(status.message());
    }
    if (replayed_seed() != nullptr) return;
  }
  std::printf(
      "  groups of %u: %llu schedules with at least %llu preemptions (%llu with fewer), %zu different traces, "
      "%llu batches, %llu steps, %llu preemptions, %llu loads of older values, %llu transactions in chains\n",
      Width, static_cast<unsigned long long>(totals.schedules), static_cast<unsigned long long>(kPreemptionsMin),
      static_cast<unsigned long long>(totals.few_preemptions), totals.traces.size(),
      static_cast<unsigned long long>(totals.batches), static_cast<unsigned long long>(totals.steps),
      static_cast<unsigned long long>(totals.preemptions), static_cast<unsigned long long>(totals.stale_loads),
      static_cast<unsigned long long>(totals.walked));
  EXPECT_TRUE(totals.walked > schedules / 10);
  EXPECT_TRUE(totals.traces.size() > schedules * 9 / 10);
  EXPECT_EQ(totals.stale_loads > schedules, first_seed >= kWeakSeeds);
}

// A seed whose schedule fails, with the command that replays it; then that it does so again.
template <class Rules>
void expect_to_fail(const char* test, std::size_t decisions_max = kShrunkDecisionsMax) {
  const std::uint64_t first = replayed_seed() != nullptr ? std::strtoull(replayed_seed(), nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed <= first + kPlantedSchedulesMax; ++seed) {
    Totals totals;
    const Status status = run_seed<4, Rules>(seed, &totals);
    if (!status.ok()) {
      print_replay(test, seed, status);
      EXPECT_EQ((run_seed<4, Rules>(seed, &totals).message()), status.message());
      const ShrunkSchedule shrunk = shrink_seed<4, Rules>(seed, totals.schedule);
      EXPECT_TRUE(shrunk.fails && shrunk.schedule.decisions.size() <= decisions_max);
      return;
    }
    if (replayed_seed() != nullptr) break;
  }
  FAIL("the planted bug is not found");
}

TEST(ordered_holds_in_groups_of_4) { expect_to_hold<4>("ordered_holds_in_groups_of_4", kSchedules); }
TEST(ordered_holds_in_groups_of_32) { expect_to_hold<32>("ordered_holds_in_groups_of_32", kSchedules / 12); }
TEST(ordered_holds_in_weak_memory) { expect_to_hold<4>("ordered_holds_in_weak_memory", kSchedules / 7, kWeakSeeds); }

// Gap 10 of the design.
TEST(a_missing_rule_of_the_older_reader_is_found) {
  expect_to_fail<NoOlderReader>("a_missing_rule_of_the_older_reader_is_found");
}
TEST(a_reservation_without_its_epoch_is_found) {
  expect_to_fail<UntaggedReads>("a_reservation_without_its_epoch_is_found");
}
TEST(a_missing_first_barrier_is_found) { expect_to_fail<NoBarrierBeforeDecide>("a_missing_first_barrier_is_found"); }
TEST(a_missing_barrier_of_a_round_is_found) {
  expect_to_fail<NoBarrierBehindRound>("a_missing_barrier_of_a_round_is_found");
}
TEST(reservations_in_words_that_decide_are_found) {
  expect_to_fail<OneSet>("reservations_in_words_that_decide_are_found");
}
TEST(a_pass_that_opens_without_reservations_is_found) {
  expect_to_fail<RunsUnreserved>("a_pass_that_opens_without_reservations_is_found");
}
TEST(a_postponed_one_at_its_old_place_is_found) {
  expect_to_fail<PlacesWithoutPass>("a_postponed_one_at_its_old_place_is_found");
}
TEST(readers_in_a_chain_of_their_own_are_found) {
  expect_to_fail<ReadersWalkAlone>("readers_in_a_chain_of_their_own_are_found");
}
TEST(adders_that_do_not_commute_in_chains_of_their_own_are_found) {
  // The lanes have to decide little in a round, and then to meet in a certain order.
  expect_to_fail<AddersWalkAlone>("adders_that_do_not_commute_in_chains_of_their_own_are_found", 40);
}
TEST(chains_that_were_not_joined_to_the_end_are_found) {
  expect_to_fail<ChainsAfterOneSweep>("chains_that_were_not_joined_to_the_end_are_found");
}
TEST(a_walk_that_mixes_passes_is_found) { expect_to_fail<WalksAcrossPasses>("a_walk_that_mixes_passes_is_found"); }
TEST(deltas_without_a_bound_are_found) { expect_to_fail<UnboundedDeltas>("deltas_without_a_bound_are_found"); }

}  // namespace
}  // namespace kilokv::engine
