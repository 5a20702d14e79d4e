// `prstm`, `lock` and `gpustm` in weak memory (sim/weak_memory.hpp). They are correct there. A mutation takes one
// memory order or fence away, and must be found, though it does no harm in strong memory. A failure prints the command
// that replays it, and the decisions that make it fail.
//
// In `prstm`, a validation after the ticket finds everything that a reader saw too early. So its fences matter only to
// a transaction that takes no ticket: one that is postponed. Such transactions have a scenario of their own. Its WAIT
// guards compare keys that are equal in every state, so a transaction that is postponed has seen a state that never
// was.

#include "engine/stm/papers/gpustm.hpp"
#include "engine/stm/papers/lock.hpp"
#include "engine/stm/papers/prstm.hpp"
#include "tests/unit/engine/stm/papers/ticketed_sim.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_weak_orders_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(1500);
constexpr std::uint64_t kStrongSeeds = 300;
constexpr std::uint64_t kWeakSeedsMax = 3000;

using P = SimPlatformOf<4>;
using SimPrstm = Prstm<P, PlantedPrstmRules<PrstmRules>>;
using SimGpustm = Gpustm<P, PlantedGpustmRules<GpustmRules>>;
template <class Protocol>
using Family = TicketedFamily<4, Protocol>;

template <class Protocol>
using Weak = InWeakMemory<Family<Protocol>>;

template <class Protocol>
void expect_to_hold_weak(const char* test) {
  const SimTotals totals = expect_to_hold<Weak<Protocol>>(kProgram, test, kSchedules);
  if (replayed_seed() == nullptr) EXPECT_TRUE(totals.stale_loads > 10 * kSchedules);
}

// And only there.
template <class Protocol>
void expect_to_fail_weak(const char* test) {
  SimTotals totals;
  for (std::uint64_t seed = 1; seed <= kStrongSeeds; ++seed) {
    EXPECT_EQ(Family<Protocol>::run_seed(seed, &totals).message(), "");
  }
  const auto failed = expect_to_fail<Weak<Protocol>>(kProgram, test, kWeakSeedsMax);
  if (failed) EXPECT_TRUE(shrink_seed(&Weak<Protocol>::run_seed, failed->seed, failed->schedule).fails);
}

TEST(prstm_holds) { expect_to_hold_weak<SimPrstm>("prstm_holds"); }
TEST(gpustm_holds) { expect_to_hold_weak<SimGpustm>("gpustm_holds"); }
TEST(lock_holds) { expect_to_hold_weak<Locking<P>>("lock_holds"); }

struct EqualKeys {
  static Status run_seed(std::uint64_t seed, SimTotals* totals, const Schedule* given = nullptr) {
    TicketedSimRuns runs = Family<SimPrstm>::runs_of(seed);
    runs.tuning.records_per_lock = 1;
    runs.tuning.optimistic_tries = 100;
    runs.schedule.seed = seed;
    return run_equal_keys(Family<SimPrstm>::kKind, runs, totals, given);
  }
};
TEST(nobody_is_postponed_on_a_state_that_never_was) {
  SimTotals totals;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t seed = i % 2 == 0 ? i : kWeakSeeds + i;
    const Status status = EqualKeys::run_seed(seed, &totals);
    if (!status.ok()) return FAIL("seed " + std::to_string(seed) + ": " + status.message());
  }
}
TEST(prstm_without_a_fence_of_the_writer_is_found) {
  const Planted relaxed(&SimPrstm::Rules::kWriteFence, Order::relaxed);
  expect_to_fail<InWeakMemory<EqualKeys>>(kProgram, "prstm_without_a_fence_of_the_writer_is_found", kWeakSeedsMax);
}
TEST(prstm_without_a_fence_of_who_waits_is_found) {
  const Planted relaxed(&SimPrstm::Rules::kWaitFence, Order::relaxed);
  expect_to_fail<InWeakMemory<EqualKeys>>(kProgram, "prstm_without_a_fence_of_who_waits_is_found", kWeakSeedsMax);
}
TEST(gap_5_a_postponement_that_is_not_validated_is_found) {
  const Planted unvalidated(&SimPrstm::Rules::kValidatesEveryOutcome, false);
  expect_to_fail<EqualKeys>(kProgram, "gap_5_a_postponement_that_is_not_validated_is_found", kWeakSeedsMax);
}

// That order is relaxed; a fence of order relaxed is none.
#define PLANTED_AS(test, Protocol, order, as) \
  PLANTED_RULE(test, Protocol::Rules::order, Order::as, expect_to_fail_weak<Protocol>(#test))
#define PLANTED(test, Protocol, order) PLANTED_AS(test, Protocol, order, relaxed)

PLANTED(prstm_with_a_relaxed_read_is_found, SimPrstm, kReadOrder)
PLANTED(prstm_with_a_relaxed_lock_is_found, SimPrstm, kLockOrder)
PLANTED_AS(prstm_with_a_ticket_that_does_not_acquire_is_found, SimPrstm, kTicketOrder, release)
PLANTED_AS(prstm_with_a_ticket_that_does_not_release_is_found, SimPrstm, kTicketOrder, acquire)
PLANTED(prstm_with_a_relaxed_release_is_found, SimPrstm, kFreeOrder)
PLANTED(gpustm_without_a_fence_of_the_reader_is_found, SimGpustm, kReadFence)
PLANTED(gpustm_with_a_relaxed_lock_is_found, SimGpustm, kLockOrder)
PLANTED_AS(gpustm_with_a_ticket_that_does_not_acquire_is_found, SimGpustm, kTicketOrder, release)
PLANTED_AS(gpustm_with_a_ticket_that_does_not_release_is_found, SimGpustm, kTicketOrder, acquire)
PLANTED(gpustm_with_a_relaxed_clock_is_found, SimGpustm, kClockOrder)
PLANTED(gpustm_with_a_relaxed_time_is_found, SimGpustm, kTimeOrder)
PLANTED(gpustm_with_a_relaxed_comparison_is_found, SimGpustm, kCompareOrder)
PLANTED(gpustm_without_a_fence_of_the_writer_is_found, SimGpustm, kWriteFence)
PLANTED(gpustm_with_a_relaxed_release_is_found, SimGpustm, kFreeOrder)

}  // namespace
}  // namespace kilokv::engine
