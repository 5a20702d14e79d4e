// `kilo` under thousands of seeded schedules of the simulator. The runs must come through all its rare places (probes).
// Then the same with mutations, each of which takes one rule away. Each must be found. In weak memory
// (sim/weak_memory.hpp), mutations take one memory order away at a time.

#include "engine/stm/papers/kilo.hpp"

#include "tests/unit/engine/stm/papers/ticketed_sim.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_kilo_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(15000);

// Mutations change these rules, in groups of 4. Other groups have the rules of the product.
using Rules = PlantedKiloRules<KiloRules>;
template <std::uint32_t Width, class R>
using FamilyOf = TicketedFamily<Width, Kilo<SimPlatformOf<Width>, R>>;
using Family = FamilyOf<4, Rules>;

constexpr NamedProbe<KiloProbe> kNames[] = {
    {KiloProbe::hazard_deferred, "a possible earlier writer that had not ended"},
    {KiloProbe::revalidation_failed, "a read that had changed behind the hazard"},
    {KiloProbe::early_validation_failed, "a read that had changed before there was an ID"},
    {KiloProbe::table_evicted, "a live entry evicted into the filter"},
    {KiloProbe::filter_answered, "a possible writer told by the filter"},
    {KiloProbe::filter_aliased, "buckets that differ"},
    {KiloProbe::unit_taken, "a unit that another thread was at"},
    {KiloProbe::entered_for_another, "another one's ID entered"},
    {KiloProbe::log_spilled, "a transaction larger than the buffer"},
    {KiloProbe::limit_reached, "one held back by the concurrency limit"},
    {KiloProbe::limit_lowered, "the concurrency limit lowered"},
    {KiloProbe::limit_raised, "the concurrency limit raised"},
    {KiloProbe::read_only_commit, "a commit that wrote nothing"},
    {KiloProbe::claimed_all, "a transaction that claimed everything first"},
};

TEST(kilo_holds_in_groups_of_4) {
  const SimTotals totals = expect_to_hold<Family>(kProgram, "kilo_holds_in_groups_of_4", kSchedules);
  if (replayed_seed() != nullptr) return;
  expect_probes(totals, kNames);
  expect_probe(totals, static_cast<std::uint32_t>(TicketedProbe::range_exhausted), "a pass in a further range");
  expect_probe(totals, static_cast<std::uint32_t>(TicketedProbe::ranks_together), "ranks of several lanes at once");
}
TEST(kilo_holds_in_groups_of_32) {
  expect_to_hold<FamilyOf<32, KiloRules>>(kProgram, "kilo_holds_in_groups_of_32", kSchedules / 12);
}
// As on the host: nobody has a group, and what is announced is laid out by ticket.
TEST(kilo_holds_without_groups) {
  expect_to_hold<FamilyOf<1, KiloRules>>(kProgram, "kilo_holds_without_groups", kSchedules / 12);
}

using Weak = InWeakMemory<Family>;
TEST(kilo_holds_in_weak_memory) {
  const SimTotals totals = expect_to_hold<Weak>(kProgram, "kilo_holds_in_weak_memory", kSchedules / 6);
  if (replayed_seed() == nullptr) EXPECT_TRUE(totals.stale_loads > 10 * kSchedules / 6);
}

// Sets of one entry, and many in flight, so that the filter is given stamps that are not in their order.
struct ManyInFlight {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    const Planted sets_of_one(&Rules::kWays, 1);
    TicketedSimRuns runs = Family::runs_of(seed);
    runs.shape = {.blocks = 2, .block_threads = 8, .group_width = 4};
    runs.tuning.optimistic_tries = 100;
    runs.tuning.kilo = {
        .units = 1, .history_entries = 3, .filter_buckets = 8, .concurrency_limit = 1000, .buffered = 8};
    runs.schedule.seed = seed;
    Random random(seed);
    return run_ticketed_batch(Family::kKind, &runs, 32, totals, given, [&](ColumnsBuilder* builder, std::uint64_t) {
      const auto draw_key = [&] { return builder->key("key" + std::to_string(random.below(6))); };
      builder->op(OpKind::get, draw_key());
      builder->op(OpKind::put, draw_key(), Operand::integer, random.between(-3, 3));
    });
  }
};
TEST(kilo_holds_with_sets_of_one) {
  expect_to_hold<ManyInFlight>(kProgram, "kilo_holds_with_sets_of_one", kSchedules / 12);
}

// A limit of one: nobody meets anybody.
template <bool IsWeak>
struct OneAtOnce {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    const std::uint64_t first = IsWeak ? kWeakSeeds : 0;
    TicketedSimRuns runs = Family::runs_of(first + seed);
    runs.tuning.kilo.concurrency_limit = 1;
    runs.schedule.seed = seed;
    runs.schedule.kind = Schedule::Kind::interleaved;
    const Status status =
        run_ticketed_batch(Family::kKind, &runs, 16, totals, given, [](ColumnsBuilder* builder, std::uint64_t) {
          for (const char* key : {"a", "b"}) builder->op(OpKind::add, builder->key(key), Operand::integer, 1);
        });
    if (!status.ok() || totals->last.counter("conflicts") + totals->last.counter("hazards") == 0) return status;
    return Status(StatusCode::internal, "two were at it at once");
  }
};
TEST(a_concurrency_limit_is_kept) {
  expect_to_hold<OneAtOnce<false>>(kProgram, "a_concurrency_limit_is_kept", kSchedules / 30);
  expect_to_hold<OneAtOnce<true>>(kProgram, "a_concurrency_limit_is_kept", kSchedules / 30);
}

// Two keys that every writer keeps equal, and transactions that wait for that: they never have to.
struct EqualKeys {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    TicketedSimRuns runs = Family::runs_of(seed);
    runs.tuning.optimistic_tries = 100;
    runs.schedule.seed = seed;
    if (seed % 6 != 0) runs.schedule.kind = Schedule::Kind::interleaved;
    return run_equal_keys(Family::kKind, runs, totals, given);
  }
};
TEST(nobody_is_postponed_on_a_state_that_never_was) {
  expect_to_hold<EqualKeys>(kProgram, "nobody_is_postponed_on_a_state_that_never_was", kSchedules / 15);
}

// Values that come back. A reader that has the word of one write with the tag of the next must not pass because the
// write after that puts an equal word there while it validates.
struct ValuesThatComeBack {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    TicketedSimRuns runs = Family::runs_of(kWeakSeeds + seed);
    runs.shape = {.blocks = 1, .block_threads = 16, .group_width = 4};
    runs.tuning.optimistic_tries = 100;
    runs.tuning.kilo.concurrency_limit = 1000;
    runs.schedule.seed = seed;
    runs.schedule.kind = Schedule::Kind::interleaved;
    Random random(seed);
    return run_ticketed_batch(Family::kKind, &runs, 48, totals, given, [&](ColumnsBuilder* builder, std::uint64_t) {
      const std::uint32_t key = builder->key("key" + std::to_string(random.below(4)));
      if (random.below(2) == 0) return builder->op(OpKind::get, key);
      builder->op(OpKind::put, key, Operand::integer, random.below(2) == 0 ? 5 : 7);
    });
  }
};
TEST(a_value_that_comes_back_hides_no_torn_read) {
  expect_to_hold<ValuesThatComeBack>(kProgram, "a_value_that_comes_back_hides_no_torn_read", kSchedules / 5);
}

// One over all keys among many over one each, in lockstep: it fails as often as it is tried without claiming them.
TEST(who_conflicts_with_all_gets_on) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    TicketedSimRuns runs = Family::runs_of(seed);
    runs.shape = {.blocks = 1, .block_threads = 16, .group_width = 4};
    runs.tuning.optimistic_tries = 3;
    runs.schedule.kind = Schedule::Kind::lockstep;
    runs.schedule.seed = seed;
    Random random(seed);
    SimTotals totals;
    const Status status =
        run_ticketed_batch(Family::kKind, &runs, 64, &totals, nullptr, [&](ColumnsBuilder* builder, std::uint64_t i) {
          for (std::uint64_t key = 0; key < 4; ++key) {
            if (i > 0 && random.below(4) != key) continue;
            builder->op(OpKind::add, builder->key("key" + std::to_string(key)), Operand::integer, 1);
          }
        });
    EXPECT_EQ(status.message(), "");
    EXPECT_TRUE(runs.first_conflicts <= runs.tuning.optimistic_tries);
  }
}

// The watchdog is for batches in which nobody gets on, not for who waits long for his turn.
TEST(waiting_for_many_others_gives_nothing_up) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TicketedSimRuns runs = Family::runs_of(seed);
    runs.shape = {.blocks = 1, .block_threads = 16, .group_width = 4};
    runs.tuning.idle_sweeps_max = 200;
    runs.tuning.kilo.concurrency_limit = 1;
    runs.schedule.seed = seed;
    runs.schedule.steps_max = 2'000'000;
    SimTotals totals;
    const Status status =
        run_ticketed_batch(Family::kKind, &runs, 256, &totals, nullptr, [](ColumnsBuilder* builder, std::uint64_t) {
          builder->op(OpKind::add, builder->key("a"), Operand::integer, 1);
        });
    EXPECT_EQ(status.message(), "");
  }
}

// Every ticket of one that could fail is wasted, until the last range is reached: there nobody can.
Status run_into_the_last_range(std::uint64_t seed) {
  const Planted wasteful(&Rules::kWastesTickets, true);
  TicketedSimRuns runs = Family::runs_of(seed);
  runs.tuning.optimistic_tries = 254;
  runs.schedule.seed = seed;
  runs.schedule.steps_max = 2'000'000;
  SimTotals totals;
  return run_ticketed_batch(Family::kKind, &runs, 16, &totals, nullptr, [](ColumnsBuilder* builder, std::uint64_t) {
    for (const char* key : {"a", "b"}) builder->op(OpKind::add, builder->key(key), Operand::integer, 1);
  });
}
TEST(the_last_range_is_enough) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) EXPECT_EQ(run_into_the_last_range(seed).message(), "");
}
TEST(tickets_wasted_in_the_last_range_are_found) {
  const Planted in_the_last_range(&Rules::kLastRangeLocks, false);
  EXPECT_EQ(run_into_the_last_range(1).message(), "given up: no thread got on");
}

#define PLANTED_IN(Scenario, test, rule, as) \
  PLANTED_RULE(test, Rules::rule, as, expect_to_fail<Scenario>(kProgram, #test))
#define PLANTED(test, rule) PLANTED_IN(Family, test, rule, false)
#define RELAXED(test, order) PLANTED_IN(Weak, test, order, Order::relaxed)

PLANTED(gap_9_aliases_that_are_nobody_are_found, kAliasesDelay)
PLANTED(a_table_that_drops_what_it_evicts_is_found, kEvictsToFilter)
PLANTED_IN(ManyInFlight, a_filter_that_forgets_is_found, kFilterKeepsYoungest, false)
PLANTED(entering_out_of_order_is_found, kInOrderOfRanks)
PLANTED(no_wait_for_a_hazard_is_found, kWaitsForHazard)
PLANTED(no_validation_behind_a_hazard_is_found, kValidatesBehindHazard)
PLANTED(tags_validated_alone_are_found, kValidatesWords)
PLANTED(reads_that_are_not_claimed_are_found, kClaimsReads)
PLANTED(own_writes_not_found_are_found, kFindsOwnWrites)
PLANTED(leaving_a_range_in_flight_is_found, kInFlightStays)
PLANTED_IN(EqualKeys, gap_5_a_postponement_that_is_not_committed_is_found, kCommitsEveryOutcome, false)
PLANTED_IN(OneAtOnce<false>, a_limit_that_is_not_kept_is_found, kKeepsLimit, false)

RELAXED(an_announcement_that_does_not_release_is_found, kAnnounceOrder)
RELAXED(a_slot_that_is_not_acquired_is_found, kSlotOrder)
RELAXED(a_unit_that_is_not_acquired_is_found, kTakeOrder)
RELAXED(a_unit_that_is_not_released_is_found, kLeaveOrder)
RELAXED(a_relaxed_look_at_a_unit_is_found, kPassedOrder)
RELAXED(an_end_that_does_not_release_is_found, kEndOrder)
RELAXED(an_end_that_is_not_acquired_is_found, kEndedOrder)
RELAXED(a_retirement_that_does_not_release_is_found, kRetireOrder)
RELAXED(a_retirement_that_is_not_acquired_is_found, kRetiredOrder)
PLANTED_IN(ValuesThatComeBack, words_validated_in_no_order_are_found, kReadFence, Order::relaxed)
PLANTED_IN(ValuesThatComeBack, words_written_in_no_order_are_found, kWriteFence, Order::relaxed)
PLANTED_IN(OneAtOnce<true>, a_limit_that_does_not_acquire_is_found, kBeginOrder, Order::relaxed)
PLANTED_IN(OneAtOnce<true>, a_limit_that_does_not_release_is_found, kLeaveLimitOrder, Order::relaxed)

}  // namespace
}  // namespace kilokv::engine
