// `local` under thousands of seeded schedules of the simulator. The runs must come through all its rare places
// (probes). Then the same with mutations, each of which takes one rule away. Each must be found. In weak memory
// (sim/weak_memory.hpp), mutations take one memory order away at a time.

#include "engine/stm/papers/local.hpp"

#include "tests/unit/engine/stm/papers/ticketed_sim.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_local_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(15000);

// Mutations change these rules, in groups of 4. Other groups have the rules of the product.
using Rules = PlantedLocalRules<LocalRules>;
template <std::uint32_t Width, class R>
using FamilyOf = TicketedFamily<Width, Local<SimPlatformOf<Width>, R>>;
using Family = FamilyOf<4, Rules>;

constexpr NamedProbe<LocalProbe> kNames[] = {
    {LocalProbe::lane_restarted, "a lane that began again"},
    {LocalProbe::warp_serialized, "a lane alone in its group"},
    {LocalProbe::block_serialized, "a lane alone in its block"},
    {LocalProbe::held_back_by_token, "one held back for another group's lane"},
    {LocalProbe::alias_met, "a conflict with another record's bit"},
    {LocalProbe::wrote_alias, "a record under a bit that was its own already"},
    {LocalProbe::restored, "a write taken back"},
    {LocalProbe::staged_commit, "a transaction on the stage"},
    {LocalProbe::behind_stage, "one behind the stage"},
    {LocalProbe::beside_stage, "one beside it"},
};

void expect_local_probes(const SimTotals& totals) {
  for (const auto& [probe, name] : kNames) {
    expect_probe(totals, kProtocolProbes + static_cast<std::uint32_t>(probe), name);
  }
}

TEST(local_holds_in_groups_of_4) {
  const SimTotals totals = expect_to_hold<Family>(kProgram, "local_holds_in_groups_of_4", kSchedules);
  if (replayed_seed() != nullptr) return;
  expect_local_probes(totals);
  expect_probe(totals, static_cast<std::uint32_t>(TicketedProbe::range_exhausted), "a pass in a further range");
  expect_probe(totals, static_cast<std::uint32_t>(TicketedProbe::ranks_together), "ranks of several lanes at once");
  expect_probe(totals, static_cast<std::uint32_t>(TicketedProbe::class_boundary), "a further half of a class");
}
TEST(local_holds_in_groups_of_32) {
  expect_to_hold<FamilyOf<32, LocalRules>>(kProgram, "local_holds_in_groups_of_32", kSchedules / 12);
}
TEST(local_holds_in_groups_of_1) {
  expect_to_hold<FamilyOf<1, LocalRules>>(kProgram, "local_holds_in_groups_of_1", kSchedules / 12);
}

using Weak = InWeakMemory<Family>;
TEST(local_holds_in_weak_memory) {
  const SimTotals totals = expect_to_hold<Weak>(kProgram, "local_holds_in_weak_memory", kSchedules / 6);
  if (replayed_seed() == nullptr) EXPECT_TRUE(totals.stale_loads > 10 * kSchedules / 6);
}

// Two keys that every writer keeps equal, and transactions that wait for that: they never have to.
struct EqualKeys {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    TicketedSimRuns runs = Family::runs_of(seed);
    runs.tuning.local = {.staged_records = 2, .signature_bits = seed % 2 == 0 ? 2u : 1u};
    runs.schedule.seed = seed;
    if (seed % 6 != 0) runs.schedule.kind = Schedule::Kind::interleaved;
    const Status status = run_equal_keys(Family::kKind, runs, totals, given);
    if (!status.ok() || totals->last.counter("staged") == 16) return status;
    return Status(StatusCode::internal, "not all of it was staged");
  }
};
TEST(nobody_is_postponed_on_a_state_that_never_was) {
  expect_to_hold<EqualKeys>(kProgram, "nobody_is_postponed_on_a_state_that_never_was", kSchedules / 15);
}

// One group has a transaction over all keys, in the order in which the others come along; all of theirs, of which there
// are many, are over one each. It meets a conflict as long as they go on: but not more often than serialization allows.
struct OneAgainstMany {
  // Two make the mask the same twice; one more, alone in the group, takes the token; then attempts that had begun can
  // be in the way, and other groups' lanes can have the token first. 8 at most were seen; with a rule missing, up
  // to 32.
  static constexpr std::uint32_t kConflictsMax = 12;

  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    TicketedSimRuns runs = Family::runs_of(seed);
    runs.shape = {.blocks = 1, .block_threads = 16, .group_width = 4};
    runs.tuning.local = {.staged_records = 8, .signature_bits = 8};
    runs.tuning.transactions_per_thread = 0;
    runs.schedule.kind = Schedule::Kind::lockstep;
    runs.schedule.seed = seed;
    Random random(seed);
    const Status status =
        run_ticketed_batch(Family::kKind, &runs, 16 * 24, totals, given, [&](ColumnsBuilder* builder, std::uint64_t i) {
          if (i % 16 >= 1 && i % 16 < 4) return;
          const auto key = [&](std::uint64_t k) { return builder->key("key" + std::to_string(k)); };
          if (i % 16 == 0 && i > 0) return;
          for (std::uint64_t k = 0; k < 8; ++k) {
            if (i == 0 || k == i % 8) builder->op(OpKind::add, key(k), Operand::integer, 1);
          }
        });
    if (!status.ok()) return status;
    if (runs.first_conflicts <= kConflictsMax) return {};
    return Status(StatusCode::internal, "a conflict across groups went on");
  }
};
TEST(who_conflicts_with_all_gets_on) {
  expect_to_hold<OneAgainstMany>(kProgram, "who_conflicts_with_all_gets_on", kSchedules / 90);
}

// Where the time of the stage's lanes goes, in steps of the simulator: serialized where somebody was, and nowhere else.
template <class F>
struct Timed {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    TicketedSimRuns runs = F::runs_of(seed);
    runs.tuning.local.times = true;
    runs.schedule.seed = seed;
    const std::uint64_t keys = seed % 3 == 0 ? 40 : 3;
    const Status status =
        run_ticketed_batch(F::kKind, &runs, 24, totals, given, [&](ColumnsBuilder* builder, std::uint64_t i) {
          const auto key = [&](std::uint64_t k) { return builder->key("key" + std::to_string(k % keys)); };
          builder->op(OpKind::add, key(i), Operand::integer, 1);
          builder->op(OpKind::add, key(3 * i + 1), Operand::integer, 1);
        });
    return status.ok() ? check(totals->last, runs) : status;
  }

  static Status check(const ExecutionReport& execution, const TicketedSimRuns& runs) {
    const auto of = [&](LocalTime time) { return execution.counter(counter_name_of(time)); };
    std::uint64_t all = 0;
    for (std::uint32_t i = 0; i < kLocalTimes; ++i) all += of(static_cast<LocalTime>(i));
    const auto wrong = [](const std::string& what) { return Status(StatusCode::internal, what); };
    // From its start to the end of the stage, each lane that shares it.
    if (all == 0 || all > runs.report.steps * runs.shape.lanes()) return wrong("times that are not those of the run");
    const std::uint64_t serialized = of(LocalTime::in_group) + of(LocalTime::in_block);
    if ((serialized > 0) != (execution.counter("warp_serialized") > 0))
      return wrong("time of serialized lanes, or none, wrongly");
    if ((of(LocalTime::in_block) > 0) != (execution.counter("block_serialized") > 0))
      return wrong("time of a token, or none, wrongly");
    if (execution.counter("staged") == 0 && of(LocalTime::running) > 0)
      return wrong("time of transactions that did not run there");
    if (execution.counter("staged") < 24 || execution.counter("warp_serialized") > 0) return {};
    for (const LocalTime time :
         {LocalTime::moving, LocalTime::running, LocalTime::claiming, LocalTime::shadowing, LocalTime::ending}) {
      if (of(time) == 0) return wrong(std::string("no time of ") + counter_name_of(time));
    }
    return of(LocalTime::unstaged) == 0 ? Status() : wrong("time beside the stage");
  }
};
TEST(times_are_those_of_the_run) {
  const SimTotals totals =
      expect_to_hold<Timed<FamilyOf<4, TimedLocalRules>>>(kProgram, "times_are_those_of_the_run", kSchedules / 10);
  if (replayed_seed() == nullptr) expect_local_probes(totals);
}
TEST(times_that_nobody_takes_are_missed) {
  expect_to_fail<Timed<Family>>(kProgram, "times_that_nobody_takes_are_missed");
}

#define PLANTED_IN(Scenario, test, rule, as) \
  PLANTED_RULE(test, Rules::rule, as, expect_to_fail<Scenario>(kProgram, #test))
#define PLANTED(test, rule) PLANTED_IN(Family, test, rule, false)
#define RELAXED(test, order, as) PLANTED_IN(Weak, test, order, as)

PLANTED_IN(OneAgainstMany, gap_8_warp_serialization_alone_is_found, kSerializesBlock, false)
PLANTED_IN(OneAgainstMany, no_serialization_at_all_is_found, kSerializesWarps, false)
PLANTED_IN(OneAgainstMany, a_token_that_is_not_respected_is_found, kRespectsToken, false)
PLANTED(a_token_that_is_not_given_back_is_found, kGivesTokenBack)
PLANTED(a_signature_that_forgets_is_found, kSetsBits)
PLANTED(reads_that_are_not_claimed_are_found, kClaimsReads)
PLANTED_IN(EqualKeys, gap_5_a_postponement_without_claims_is_found, kClaimsReads, false)
PLANTED(other_groups_not_looked_at_are_found, kLooksAtOtherGroups)
PLANTED(an_owner_that_is_not_checked_is_found, kChecksOwner)
PLANTED(a_shadow_that_is_not_restored_is_found, kRestores)
PLANTED(a_missing_write_back_is_found, kWritesBack)
PLANTED(an_early_write_back_is_found, kWritesBackAtEnd)
PLANTED(a_write_back_not_waited_for_is_found, kWaitsForWriteBack)
PLANTED(a_stage_not_waited_for_is_found, kWaitsForStage)
PLANTED(a_straddler_treated_as_hot_is_found, kStraddlersBehind)
PLANTED(parts_of_a_stage_that_are_one_are_found, kTellsPartsApart)

RELAXED(a_claim_whose_fence_is_not_sequential_is_found, kClaimFence, Order::acquire_release)
RELAXED(a_claim_whose_fence_does_not_acquire_is_found, kClaimFence, Order::release)
RELAXED(a_look_that_does_not_acquire_is_found, kLookOrder, Order::relaxed)
RELAXED(a_release_that_is_relaxed_is_found, kReleaseOrder, Order::relaxed)

}  // namespace
}  // namespace kilokv::engine
