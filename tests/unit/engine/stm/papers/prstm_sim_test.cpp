// `prstm` under thousands of seeded schedules of the simulator. The runs must come through all its rare places
// (probes). Then the same with mutations, each of which takes one rule away. Each must be found. The gaps of the
// printed algorithms are among them.

#include "engine/stm/papers/prstm.hpp"

#include <algorithm>

#include "tests/unit/engine/referee/referee_scenario.hpp"
#include "tests/unit/engine/stm/papers/ticketed_sim.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_prstm_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(60000);

using Rules = PlantedPrstmRules<PrstmRules>;
template <std::uint32_t Width>
using Family = TicketedFamily<Width, Prstm<SimPlatformOf<Width>, Rules>>;

constexpr NamedProbe<PrstmProbe> kNames[] = {
    {PrstmProbe::prelock_stolen, "a pre-lock stolen"},
    {PrstmProbe::prelock_refused, "a pre-lock refused to a lower priority"},
    {PrstmProbe::prelock_kept, "a pre-lock kept from an earlier attempt"},
    {PrstmProbe::claim_refused, "a lock refused that a higher priority claimed"},
    {PrstmProbe::claim_taken_over, "a claim taken over from a lower priority"},
    {PrstmProbe::lock_held_by_lower, "a lock found held by a lower priority"},
    {PrstmProbe::lock_found_stolen, "a pre-lock found stolen when it was to be locked"},
    {PrstmProbe::release_found_stolen, "a release that found its lock stolen"},
    {PrstmProbe::read_found_locked, "a locked record read"},
    {PrstmProbe::reread_other_version, "a second record of a lock at another version"},
    {PrstmProbe::early_validation_failed, "a read invalidated before the ticket"},
    {PrstmProbe::late_validation_failed, "a read invalidated between validation and commit"},
};

TEST(prstm_holds_in_groups_of_4) {
  const SimTotals totals = expect_to_hold<Family<4>>(kProgram, "prstm_holds_in_groups_of_4", kSchedules);
  if (replayed_seed() != nullptr) return;
  expect_probes(totals, kNames);
  expect_probe(totals, static_cast<std::uint32_t>(TicketedProbe::class_boundary), "a precedence class behind another");
  expect_probe(totals, static_cast<std::uint32_t>(TicketedProbe::range_exhausted), "a pass gone on in the next range");
}
TEST(prstm_holds_in_groups_of_32) {
  expect_to_hold<Family<32>>(kProgram, "prstm_holds_in_groups_of_32", kSchedules / 30);
}

// Gives the lock words another form for the lifetime of the object.
template <class Form>
class PlantedForm {
  using Word = Rules::Word;

  const Planted<std::uint64_t> owner_max_{&Word::kOwnerMax, Form::kOwnerMax};
  const Planted<std::uint64_t (*)(std::uint64_t)> free_{&Word::free, Form::free},
      version_{&Word::version, Form::version}, owner_{&Word::owner, Form::owner};
  const Planted<std::uint64_t (*)(std::uint64_t, std::uint64_t)> prelocked_{&Word::prelocked, Form::prelocked},
      locked_{&Word::locked, Form::locked};
  const Planted<bool (*)(std::uint64_t)> is_prelocked_{&Word::is_prelocked, Form::is_prelocked},
      is_locked_{&Word::is_locked, Form::is_locked};
};

// One transaction over all keys, of the highest priority, among many over one key each: how often a conflict ends it.
std::uint32_t conflicts_of_the_first(std::uint64_t seed) {
  Random random(seed);
  TicketedSimRuns runs = Family<32>::runs_of(seed);
  runs.shape = {.blocks = 1, .block_threads = 32, .group_width = 32};
  runs.schedule.kind = Schedule::Kind::lockstep;
  runs.tuning.records_per_lock = 1;
  runs.tuning.optimistic_tries = 0;
  runs.schedule.seed = seed;
  RefereeScenario scenario;
  scenario.engine = make_simulated(Family<32>::kKind, &runs);
  constexpr std::uint64_t kKeys = 4, kOthers = 124;
  for (std::uint64_t i = 0; i <= kOthers; ++i) {
    scenario.builder.begin();
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      if (i > 0 && random.below(kKeys) != key) continue;
      scenario.builder.op(OpKind::add, scenario.builder.key("key" + std::to_string(key)), Operand::integer, 1);
    }
    scenario.builder.end();
  }
  scenario.execute();
  return runs.first_conflicts;
}
// All threads in lockstep: two tries for each of its four locks. In one it finds the lock held, and claims it; in
// another, perhaps, held still, or again by somebody that had looked before the claim. There is one such at most here,
// for whoever has the lock leaves another version, which makes the swaps of the others fail.
constexpr std::uint32_t kFirstConflictsMax = 8;
constexpr std::uint64_t kStarvingSeedsMax = 1000;
TEST(the_highest_priority_gets_on_in_bounded_steps) {
  std::uint32_t most = 0;
  for (std::uint64_t seed = 1; seed <= kStarvingSeedsMax; ++seed) {
    most = std::max(most, conflicts_of_the_first(seed));
  }
  std::printf("  a conflict ended the first transaction up to %u times\n", most);
  EXPECT_TRUE(most <= kFirstConflictsMax);
}
void expect_to_starve() {
  for (std::uint64_t seed = 1; seed <= kStarvingSeedsMax; ++seed) {
    const std::uint32_t conflicts = conflicts_of_the_first(seed);
    if (conflicts <= kFirstConflictsMax) continue;
    std::printf("  seed %llu: a conflict ended the first transaction %u times\n", static_cast<unsigned long long>(seed),
                conflicts);
    return;
  }
  FAIL("the planted bug is not found");
}
void expect_to_starve_without(bool* rule) {
  const Planted planted(rule, false);
  expect_to_starve();
}
TEST(missing_priorities_are_found) { expect_to_starve_without(&Rules::kHasPriorities); }
TEST(gap_3_short_owners_are_found) {
  const PlantedForm<LockWordOf<38, 1>> short_owners;
  expect_to_starve();
}
TEST(missing_claims_are_found) { expect_to_starve_without(&Rules::kClaims); }
TEST(claims_that_are_ignored_are_found) { expect_to_starve_without(&Rules::kRespectsClaims); }
TEST(claims_that_lower_priorities_replace_are_found) { expect_to_starve_without(&Rules::kClaimsByPriority); }

// A bug that lets nobody get on: the watchdog gives the batch up, and nobody hangs.
TEST(the_watchdog_ends_what_nobody_can_end) {
  const Planted locks_twice(&Rules::kLocksOnce, false);
  TicketedSimRuns runs = Family<4>::runs_of(1);
  runs.tuning.records_per_lock = 4096;
  runs.tuning.optimistic_tries = 0;
  runs.tuning.idle_sweeps_max = 100;
  RefereeScenario scenario;
  scenario.engine = make_simulated(Family<4>::kKind, &runs);
  for (int i = 0; i < 8; ++i) {
    scenario.builder.begin();
    for (const char* key : {"a", "b", "c"}) scenario.builder.op(OpKind::add, scenario.builder.key(key));
    scenario.builder.end();
  }
  scenario.execute();
  EXPECT_EQ(scenario.engine->device().reason, std::string("given up: no thread got on"));
  EXPECT_EQ(scenario.check().message(), std::string());  // the batch ran on the CPU
}

// Every optimistic ticket is wasted, until the last range is reached: there all locks come first.
Status run_into_the_last_range(std::uint64_t seed) {
  const Planted wasteful(&Rules::kWastesTickets, true);
  TicketedSimRuns runs = Family<4>::runs_of(seed);
  runs.shape = {.blocks = 1, .block_threads = 4, .group_width = 4};
  runs.tuning.optimistic_tries = 254;
  runs.schedule.seed = seed;
  RefereeScenario scenario;
  scenario.engine = make_simulated(Family<4>::kKind, &runs);
  Random random(seed);
  generate_conflicts(&random, 3, 16, &scenario.builder);
  scenario.execute();
  if (!scenario.engine->device().reason.empty()) return {StatusCode::internal, scenario.engine->device().reason};
  EXPECT_EQ(scenario.results.passes, kWaitPassesMax);
  return scenario.check(referee_mode(scenario.engine->execution()));
}
TEST(the_last_range_is_enough) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) EXPECT_EQ(run_into_the_last_range(seed).message(), "");
}
TEST(tickets_wasted_in_the_last_range_are_found) {
  const Planted in_the_last_range(&Rules::kLastRangeLocks, false);
  EXPECT_EQ(run_into_the_last_range(1).message(), "given up: no thread got on");
}

// A chain of waits in the wrong order, and one that nothing ends: as many passes as the specification has.
std::uint32_t passes_of_a_chain() {
  TicketedSimRuns runs = Family<4>::runs_of(1);
  runs.shape = {.blocks = 1, .block_threads = 1, .group_width = 4};
  RefereeScenario scenario;
  scenario.engine = make_simulated(Family<4>::kKind, &runs);
  for (int i = 0; i < 5; ++i) {
    scenario.builder.begin();
    const std::uint32_t awaited = scenario.builder.key("link" + std::to_string(i == 0 ? 9 : i + 1));
    if (i < 4) scenario.builder.guard(GuardKind::exists, OnFalse::wait, awaited, 0);
    scenario.builder.op(OpKind::put, scenario.builder.key("link" + std::to_string(i)));
    scenario.builder.end();
  }
  scenario.execute();
  EXPECT_EQ(scenario.check(RefereeMode::any_order).message(), "");
  return scenario.results.passes;
}
TEST(a_pass_that_finishes_none_is_the_last) { EXPECT_EQ(passes_of_a_chain(), 5u); }
TEST(gap_11_passes_that_go_on_are_found) {
  const Planted passes_on(&Rules::kStopsWhenIdle, false);
  EXPECT_EQ(passes_of_a_chain(), kWaitPassesMax);
}

#define PLANTED(test, rule) PLANTED_RULE(test, Rules::rule, false, expect_to_fail<Family<4>>(kProgram, #test))

// The gaps of docs/papers.md, section 1.
PLANTED(gap_1_value_before_version_is_found, kLockFirst)
PLANTED(gap_2_locked_read_ignored_is_found, kLockedReadConflicts)
PLANTED(gap_2_no_validation_behind_ticket_is_found, kValidatesBehindTicket)
PLANTED_TEST(gap_3_short_versions_are_found, const PlantedForm<LockWordOf<1, 24>> short_versions;
             expect_to_fail<Family<4>>(kProgram, "gap_3_short_versions_are_found"))
PLANTED(gap_4_own_writes_not_found_is_found, kFindsOwnWrites)
PLANTED(gap_4_reads_not_logged_is_found, kLogsReads)
PLANTED(gap_5_outcomes_not_validated_is_found, kValidatesEveryOutcome)
PLANTED(gap_6_run_twice_is_found, kRunsOnce)
PLANTED(gap_7_locks_taken_twice_is_found, kLocksOnce)
PLANTED_RULE(blindness_to_the_end_of_a_range_is_found, Rules::kSeesEndOfRange, false,
             expect_to_fail<Family<4>>(kProgram, "blindness_to_the_end_of_a_range_is_found", 60000))
PLANTED(freeing_what_is_stolen_is_found, kFreesBySwap)
PLANTED(stealing_what_is_locked_is_found, kStealsPrelocksOnly)
PLANTED(claims_that_stay_are_found, kDropsClaims)
// Nobody is stopped by them.
PLANTED_TEST(claims_that_are_left_are_found, const Planted kept(&Rules::kDropsClaims, false);
             const Planted ignored(&Rules::kRespectsClaims, false);
             expect_to_fail<Family<4>>(kProgram, "claims_that_are_left_are_found"))

}  // namespace
}  // namespace kilokv::engine
