// `lock` under thousands of seeded schedules of the simulator. The runs must come through all its rare places (probes).
// Then the same with mutations, each of which takes one rule away. Each must be found.

#include "engine/stm/papers/lock.hpp"

#include "tests/unit/engine/stm/papers/ticketed_sim.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_lock_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(15000);

// Mutations change these rules, in groups of 4. Other groups have the rules of the product.
using Rules = PlantedLockRules<LockRules>;
template <std::uint32_t Width, class R>
using FamilyOf = TicketedFamily<Width, Locking<SimPlatformOf<Width>, R>>;
using Family = FamilyOf<4, Rules>;

constexpr NamedProbe<LockProbe> kNames[] = {
    {LockProbe::busy, "a lock that another transaction has"},
    {LockProbe::shared, "a reader beside another"},
    {LockProbe::kept_others, "gone on with locks of an earlier attempt"},
};

TEST(lock_holds_in_groups_of_4) {
  const SimTotals totals = expect_to_hold<Family>(kProgram, "lock_holds_in_groups_of_4", kSchedules);
  if (replayed_seed() == nullptr) expect_probes(totals, kNames);
}
TEST(lock_holds_in_groups_of_32) {
  expect_to_hold<FamilyOf<32, LockRules>>(kProgram, "lock_holds_in_groups_of_32", kSchedules / 12);
}

#define PLANTED(test, rule, as) PLANTED_RULE(test, Rules::rule, as, expect_to_fail<Family>(kProgram, #test))

PLANTED(locks_out_of_order_are_found, kInOrder, false)
PLANTED(readers_that_do_not_lock_are_found, kReadersLock, false)
PLANTED(own_writes_not_found_is_found, kFindsOwnWrites, false)
PLANTED(a_lock_that_does_not_acquire_is_found, kLockOrder, Order::relaxed)
PLANTED(a_free_that_does_not_release_is_found, kFreeOrder, Order::relaxed)

}  // namespace
}  // namespace kilokv::engine
