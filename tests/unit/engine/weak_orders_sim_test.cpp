// `prstm`, `lock` and `gpustm` in weak memory (platform/weak_memory.hpp): they hold, and each order or fence that is
// taken away from one is found, though it does not show where memory is strong. A failure prints the command that
// replays it, and the decisions that make it fail.
//
// Not taken away, for nothing would show: those that others cover. A validation behind the ticket finds whatever a
// reader of `prstm` saw too early, so that kWriteFence and kWaitFence concern only who is postponed, and that is tried
// again; kReadOrder of `gpustm` is covered by the acquired clock and the comparison of values.

#include "engine/stm/gpustm.hpp"
#include "engine/stm/lock.hpp"
#include "engine/stm/prstm.hpp"
#include "tests/unit/engine/ticketed_sim.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_weak_orders_sim_test";
constexpr std::uint64_t kSchedules = 1500;
constexpr std::uint64_t kStrongSeeds = 300;
constexpr std::uint64_t kWeakSeedsMax = 3000;

using P = SimPlatformOf<4>;
template <class Protocol>
using Family = TicketedFamily<4, Protocol>;

// With KILOKV_TEST_SEED that seed alone.
template <class Protocol>
void expect_to_hold_weak(const char* test) {
  using F = Family<Protocol>;
  const std::uint64_t first = replayed_seed() != nullptr ? first_seed() : F::kWeakSeeds;
  TicketedTotals totals;
  for (std::uint64_t seed = first; totals.schedules < kSchedules; ++seed) {
    if (const Status status = F::run_seed(seed, &totals); !status.ok()) {
      print_replay(kProgram, test, seed, status);
      shrink_seed<F>(seed, totals.schedule);
      return FAIL(status.message());
    }
    if (replayed_seed() != nullptr) return;
  }
  std::printf("  %llu schedules, %llu loads of older values\n", static_cast<unsigned long long>(totals.schedules),
              static_cast<unsigned long long>(totals.stale_loads));
  EXPECT_TRUE(totals.stale_loads > 10 * kSchedules);
}

template <class Protocol>
void expect_to_fail_weak(const char* test) {
  using F = Family<Protocol>;
  TicketedTotals totals;
  for (std::uint64_t seed = 1; seed <= kStrongSeeds; ++seed) EXPECT_EQ(F::run_seed(seed, &totals).message(), "");
  const std::uint64_t first = replayed_seed() != nullptr ? first_seed() : F::kWeakSeeds;
  for (std::uint64_t seed = first; seed < first + kWeakSeedsMax; ++seed) {
    const Status status = F::run_seed(seed, &totals);
    if (status.ok()) continue;
    print_replay(kProgram, test, seed, status);
    EXPECT_EQ(F::run_seed(seed, &totals).message(), status.message());
    EXPECT_TRUE(shrink_seed<F>(seed, totals.schedule).fails);
    return;
  }
  FAIL("the planted bug is not found");
}

TEST(prstm_holds) { expect_to_hold_weak<Prstm<P>>("prstm_holds"); }
TEST(gpustm_holds) { expect_to_hold_weak<Gpustm<P>>("gpustm_holds"); }
TEST(lock_holds) { expect_to_hold_weak<Locking<P>>("lock_holds"); }

// That order is relaxed; a fence of order relaxed is none.
#define PLANTED(test, Protocol, Base, order)       \
  struct Rules_##test : Base {                     \
    static constexpr Order order = Order::relaxed; \
  };                                               \
  TEST(test) { expect_to_fail_weak<Protocol<P, Rules_##test>>(#test); }

PLANTED(prstm_with_a_relaxed_read_is_found, Prstm, PrstmRules, kReadOrder)
PLANTED(prstm_with_a_relaxed_lock_is_found, Prstm, PrstmRules, kLockOrder)
PLANTED(prstm_with_a_relaxed_ticket_is_found, Prstm, PrstmRules, kTicketOrder)
PLANTED(prstm_with_a_relaxed_release_is_found, Prstm, PrstmRules, kFreeOrder)
PLANTED(gpustm_without_a_fence_of_the_reader_is_found, Gpustm, GpustmRules, kReadFence)
PLANTED(gpustm_with_a_relaxed_lock_is_found, Gpustm, GpustmRules, kLockOrder)
PLANTED(gpustm_with_a_relaxed_ticket_is_found, Gpustm, GpustmRules, kTicketOrder)
PLANTED(gpustm_without_a_fence_of_the_writer_is_found, Gpustm, GpustmRules, kWriteFence)
PLANTED(gpustm_with_a_relaxed_release_is_found, Gpustm, GpustmRules, kFreeOrder)

}  // namespace
}  // namespace kilokv::engine
