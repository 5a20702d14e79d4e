// Differential: random batches of everything (workloads/mixed.hpp) on the engine against the referee, in chains over
// one state. A failure prints the command that replays its chain.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint64_t kChains = 300, kBatchesPerChain = 10;

struct Coverage {
  std::uint64_t outcomes[7] = {};
  std::uint64_t passes_beyond_first = 0, range_pairs = 0, tombstone_drops = 0;
};

Status load_initial(const Workload& workload, Engine* engine) {
  Status status;
  workload.for_each_initial([&](const InitialRecord& record) {
    if (status.ok()) status = engine->load(record.key, 1, record.type, record.integer, record.bytes);
  });
  return status;
}

Status run_chain(std::uint64_t seed, Coverage* coverage) {
  Random random(seed);
  WorkloadOptions options;
  options.name = "mixed";
  options.keys = 2 + random.below(15);
  options.seed = seed;
  auto workload = Workload::create(options);
  RefereeScenario scenario;
  if (Status status = load_initial(*workload, scenario.engine.get()); !status.ok()) return status;
  scenario.header.first_version = 2;
  for (std::uint64_t i = 0; i < kBatchesPerChain; ++i) {
    workload->generate(&scenario.builder, 1 + random.below(40));
    scenario.execute();
    ModelState after;
    Status status = scenario.check(RefereeMode::deterministic, &after);
    if (status.ok()) status = check_state(after, *scenario.engine);
    if (status.ok()) status = scenario.check(RefereeMode::any_order);
    if (!status.ok()) return status;
    for (const std::uint8_t outcome : scenario.results.outcome) ++coverage->outcomes[outcome];
    coverage->passes_beyond_first += scenario.results.passes - 1;
    coverage->range_pairs += scenario.results.pair_cell.size();
    scenario.next_batch();
    if (!random.chance(0.2)) continue;
    const Version floor = random.below(scenario.header.first_version);
    scenario.engine->drop_tombstones(floor, [&](std::string_view) { ++coverage->tombstone_drops; });
    after.drop_tombstones(floor);
    if (status = check_state(after, *scenario.engine); !status.ok()) return status;
  }
  return {};
}

TEST(random_batches_equal_the_referee) {
  Coverage coverage;
  const char* const replayed = std::getenv("KILOKV_TEST_SEED");
  const std::uint64_t first = replayed != nullptr ? std::strtoull(replayed, nullptr, 10) : 1;
  const std::uint64_t last = replayed != nullptr ? first : kChains;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Status status = run_chain(seed, &coverage);
    if (status.ok()) continue;
    std::fprintf(stderr, "replay: KILOKV_TEST_SEED=%llu engine_random_batch_test\n",
                 static_cast<unsigned long long>(seed));
    return FAIL(status.message());
  }
  if (replayed != nullptr) return;
  // What the generator is for did happen, each often.
  for (const Outcome outcome : {Outcome::committed, Outcome::guard_failed, Outcome::wait_expired, Outcome::overflow,
                                Outcome::type_mismatch, Outcome::postponed}) {
    const std::uint64_t times = coverage.outcomes[static_cast<int>(outcome)];
    if (times <= 500)
      FAIL("outcome " + std::to_string(static_cast<int>(outcome)) + " only " + std::to_string(times) + " times");
  }
  EXPECT_TRUE(coverage.passes_beyond_first > 500);
  EXPECT_TRUE(coverage.range_pairs > 500);
  EXPECT_TRUE(coverage.tombstone_drops > 100);
}

}  // namespace
}  // namespace kilokv::engine
