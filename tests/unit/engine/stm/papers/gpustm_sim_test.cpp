// `gpustm` under thousands of seeded schedules of the simulator. The runs must come through all its rare places
// (probes). Then the same with mutations, each of which takes one rule away. Each must be found.

#include "engine/stm/papers/gpustm.hpp"

#include "tests/unit/engine/referee/referee_scenario.hpp"
#include "tests/unit/engine/stm/papers/ticketed_sim.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

constexpr const char* kProgram = "engine_gpustm_sim_test";
constexpr std::uint64_t kSchedules = schedules_to_run(15000);

// Mutations change these rules, in groups of 4. Other groups have the rules of the product.
using Rules = PlantedGpustmRules<GpustmRules>;
template <std::uint32_t Width, class R>
using FamilyOf = TicketedFamily<Width, Gpustm<SimPlatformOf<Width>, R>>;
using Family = FamilyOf<4, Rules>;

constexpr NamedProbe<GpustmProbe> kNames[] = {
    {GpustmProbe::busy, "a lock that another transaction has"},
    {GpustmProbe::read_found_changed, "a lock that changed while its record was read"},
    {GpustmProbe::moved_on, "a later timestamp, but the same values"},
    {GpustmProbe::values_differ, "other values than those that were read"},
    {GpustmProbe::late_read_only, "a read invalidated between ticket and validation"},
    {GpustmProbe::gave_up, "a semantic conflict given up after all tries"},
};

TEST(gpustm_holds_in_groups_of_4) {
  const SimTotals totals = expect_to_hold<Family>(kProgram, "gpustm_holds_in_groups_of_4", kSchedules);
  if (replayed_seed() == nullptr) expect_probes(totals, kNames);
}
TEST(gpustm_holds_in_groups_of_32) {
  expect_to_hold<FamilyOf<32, GpustmRules>>(kProgram, "gpustm_holds_in_groups_of_32", kSchedules / 12);
}

// A transaction that is alone has nothing in its way, whatever it leaves unread: here the record of the list that does
// not run, and one that is not there.
TEST(one_that_is_alone_meets_no_conflict) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TicketedSimRuns runs = Family::runs_of(seed);
    RefereeScenario scenario;
    scenario.engine = make_simulated(Family::kKind, &runs);
    for (const char* key : {"a", "b"}) scenario.load(key, 5);
    ColumnsBuilder& b = scenario.builder;
    b.begin();
    b.guard(GuardKind::absent, OnFalse::fail, b.key("gone"), 0);
    b.guard(GuardKind::less, OnFalse::fail, b.key("a"), 0);
    b.op(OpKind::put, b.key("b"), Operand::integer, 1);
    b.begin_else();
    b.op(OpKind::get, b.key("a"));
    b.end();
    scenario.execute();
    EXPECT_EQ(scenario.check(referee_mode(scenario.engine->execution())).message(), "");
    EXPECT_TRUE(scenario.results.outcome[0] == static_cast<std::uint8_t>(Outcome::guard_failed));
    EXPECT_EQ(scenario.engine->execution().counter("attempts"), 1u);
    EXPECT_EQ(scenario.engine->execution().counter("conflicts"), 0u);
  }
}

#define PLANTED(test, rule) PLANTED_RULE(test, Rules::rule, false, expect_to_fail<Family>(kProgram, #test))

PLANTED(no_validation_under_locks_is_found, kValidatesByTime)
PLANTED(a_read_only_transaction_without_validation_is_found, kValidatesReadOnly)

}  // namespace
}  // namespace kilokv::engine
