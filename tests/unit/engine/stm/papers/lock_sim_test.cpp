// `lock` under thousands of seeded schedules of the simulator. The runs must come through all its rare places (probes).
// Then the same with mutations, each of which takes one rule away. Each must be found.

#include "engine/stm/papers/lock.hpp"

#include "tests/unit/engine/stm/papers/ticketed_sim.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_lock_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(15000);

template <std::uint32_t Width, class Rules = LockRules>
using Family = TicketedFamily<Width, Locking<SimPlatformOf<Width>, Rules>>;

constexpr NamedProbe<LockProbe> kNames[] = {
    {LockProbe::busy, "a lock that another transaction has"},
    {LockProbe::shared, "a reader beside another"},
    {LockProbe::kept_others, "gone on with locks of an earlier attempt"},
};

TEST(lock_holds_in_groups_of_4) {
  const SimTotals totals = expect_to_hold<Family<4>>(kProgram, "lock_holds_in_groups_of_4", kSchedules);
  if (replayed_seed() == nullptr) expect_probes(totals, kNames);
}
TEST(lock_holds_in_groups_of_32) {
  expect_to_hold<Family<32>>(kProgram, "lock_holds_in_groups_of_32", kSchedules / 12);
}

struct OutOfOrder : LockRules {
  static constexpr bool kInOrder = false;
};
struct ReadersDoNotLock : LockRules {
  static constexpr bool kReadersLock = false;
};
struct OwnWritesNotFound : LockRules {
  static constexpr bool kFindsOwnWrites = false;
};
struct RelaxedLock : LockRules {
  static constexpr Order kLockOrder = Order::relaxed;
};
struct RelaxedFree : LockRules {
  static constexpr Order kFreeOrder = Order::relaxed;
};

#define PLANTED(test, Rules) PLANTED_TEST(test, (expect_to_fail<Family<4, Rules>>(kProgram, #test)))

PLANTED(locks_out_of_order_are_found, OutOfOrder)
PLANTED(readers_that_do_not_lock_are_found, ReadersDoNotLock)
PLANTED(own_writes_not_found_is_found, OwnWritesNotFound)
PLANTED(a_lock_that_does_not_acquire_is_found, RelaxedLock)
PLANTED(a_free_that_does_not_release_is_found, RelaxedFree)

}  // namespace
}  // namespace kilokv::engine
