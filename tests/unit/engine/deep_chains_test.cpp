// `ordered` with batches whose passes go on to their limit, on each tuning, against the referee. Also with as many
// rounds as a batch can have, right after the last epoch that leaves room for them.

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/run/ordered_host.hpp"
#include "engine/workloads/random.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint32_t kTimes = 100;

// Chains against the order, and others among them; a few wait for what never comes.
void generate(Random* random, RefereeScenario* scenario) {
  const std::uint64_t links = 10 + random->below(16), chains = 1 + random->below(6);
  ColumnsBuilder& b = scenario->builder;
  const auto name = [](std::uint64_t chain, std::uint64_t link) {
    return "c" + std::to_string(chain) + "." + std::to_string(link);
  };
  for (std::uint64_t link = links; link-- > 0;) {
    for (std::uint64_t chain = 0; chain < chains; ++chain) {
      b.begin(0, random->chance(0.5) ? 1000 : 0);
      if (link > 0) b.guard(GuardKind::exists, OnFalse::wait, b.key(name(chain, link - 1)), 0);
      b.op(OpKind::put, b.key(name(chain, link)), Operand::commit_version, 0);
      if (random->chance(0.3)) b.op(OpKind::add, b.key("sum"), Operand::integer, random->between(-5, 5));
      if (random->chance(0.05)) b.op(OpKind::get, b.key("sum"));
      b.end();
      if (!random->chance(0.1)) continue;
      b.begin(0, random->chance(0.5) ? 1000 : 0);
      b.guard(GuardKind::exists, OnFalse::wait, b.key("never"), 0);
      b.op(OpKind::put, b.key("other"), Operand::integer, 1);
      b.end();
    }
  }
}

void run(std::uint32_t threads, OrderedTuning tuning) {
  std::uint32_t at_limit = 0;
  for (std::uint64_t seed = 1; seed <= kTimes; ++seed) {
    Random random(seed);
    RefereeScenario scenario;
    EngineOptions options;
    options.strategy = "ordered";
    options.secret = RefereeScenario::kSecret;
    scenario.engine = create_engine_with(options, std::make_unique<OrderedHost>(threads, tuning));
    for (int i = 0; i < 2; ++i) {
      generate(&random, &scenario);
      scenario.execute();
      at_limit += scenario.results.passes == kWaitPassesMax ? 1 : 0;
      const Status status = scenario.check(RefereeMode::deterministic);
      if (!status.ok()) return FAIL("seed " + std::to_string(seed) + ": " + status.message());
      scenario.next_batch();
    }
  }
  EXPECT_TRUE(at_limit > kTimes / 10);
}

// All write one record: a round moves one. The first batch uses the last epochs.
TEST(the_most_rounds_find_epochs) {
  constexpr std::uint32_t kLinks = kWaitPassesMax + 4;
  RefereeScenario scenario;
  for (std::uint32_t link = kLinks; link-- > 0;) {
    scenario.builder.begin();
    const auto key = [&](std::uint32_t i) { return scenario.builder.key("link" + std::to_string(i)); };
    if (link > 0) scenario.builder.guard(GuardKind::exists, OnFalse::wait, key(link - 1), 0);
    scenario.builder.op(OpKind::put, key(link), Operand::integer, 1);
    scenario.builder.op(OpKind::put, scenario.builder.key("hot"), Operand::integer, link);
    scenario.builder.end();
  }
  EngineOptions options;
  options.strategy = "ordered";
  options.secret = RefereeScenario::kSecret;
  const auto left = static_cast<std::uint32_t>(ordered_epochs_max(kLinks));
  const FirstEpochs first{.reservations = std::numeric_limits<std::uint32_t>::max() - left};
  scenario.engine = create_engine_with(options, std::make_unique<OrderedHost>(2, OrderedTuning{0, 0}, first));
  scenario.execute();
  EXPECT_EQ(scenario.results.passes, kWaitPassesMax);
  EXPECT_EQ(scenario.check(RefereeMode::deterministic).message(), "");
  const std::uint64_t rounds = scenario.engine->execution().counter("rounds");
  EXPECT_TRUE(rounds > 8 * kLinks);
  EXPECT_TRUE(ordered_epochs_used(rounds) <= ordered_epochs_max(kLinks));
}

TEST(rounds_alone) { run(2, {0, 0}); }
TEST(small_tails) { run(2, {1, 4}); }
TEST(emulated_tuning) { run(3, {2, 32, true}); }
TEST(cuda_tuning) { run(2, {8, 1024, true}); }
TEST(host_tuning) { run(2, {64, 8}); }
TEST(one_by_one) { run(1, {kNone, 0}); }
TEST(one_thread_rounds) { run(1, {0, 0}); }

}  // namespace
}  // namespace kilokv::engine
