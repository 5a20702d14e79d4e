// Differential test: random batches of everything (workloads/mixed.hpp) on each platform against the referee, which
// replays them serially, in chains over one state. It compares outcomes, reads, versions, writes and the final state. A
// failure prints the command that replays its chain.
//
// KILOKV_TEST_SEED=N runs only chain N. KILOKV_TEST_CHAINS=N runs the first N chains. With either, the test does not
// check how often rare things happened. KILOKV_TEST_DEVICE=cuda adds the platform of that device, which must be there:
// a batch that ran on the CPU instead is a failure.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/run/ordered_host.hpp"
#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/random_expiries.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint64_t kChains = 1000, kBatchesPerChain = 10;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}
std::uint64_t first_seed() { return number_of("KILOKV_TEST_SEED", 1); }
std::uint64_t last_seed() {
  return number_of("KILOKV_TEST_SEED", number_of("KILOKV_TEST_CHAINS", test::runs_to_make(kChains)));
}
// Few chains need not meet everything.
bool runs_all() { return first_seed() == 1 && last_seed() >= kChains; }

// Of KILOKV_TEST_DEVICE; null: none was asked for.
const char* chosen_device() {
  const char* const name = std::getenv("KILOKV_TEST_DEVICE");
  const std::vector<std::string> known = Engine::devices();
  if (name == nullptr || std::find(known.begin(), known.end(), name) != known.end()) return name;
  std::fprintf(stderr, "KILOKV_TEST_DEVICE is \"%s\": the engine knows no such device\n", name);
  std::exit(2);
}

struct Coverage {
  std::uint64_t outcomes[7] = {};
  std::uint64_t batches = 0, passes_beyond_first = 0, range_pairs = 0, tombstone_drops = 0, expiries = 0;
  std::uint64_t ordered_batches = 0, pipelined_batches = 0, partitioned_batches = 0, device_batches = 0, rounds = 0,
                chained_adds = 0, tail = 0;
};

Status load_initial(const Workload& workload, Engine* engine) {
  Status status;
  workload.for_each_initial([&](const InitialRecord& record) {
    if (status.ok()) status = engine->load(record.key, 1, record.type, record.integer, record.bytes);
  });
  return status;
}

void count(const RefereeScenario& scenario, Coverage* coverage) {
  ++coverage->batches;
  for (const std::uint8_t outcome : scenario.results.outcome) ++coverage->outcomes[outcome];
  coverage->passes_beyond_first += scenario.results.passes - 1;
  coverage->range_pairs += scenario.results.pair_cell.size();
  const ExecutionReport& execution = scenario.engine->execution();
  if (std::string(execution.strategy) == "pipelined") ++coverage->pipelined_batches;
  if (std::string(execution.strategy) == "partitioned") ++coverage->partitioned_batches;
  if (std::string(execution.strategy) != "ordered") return;
  ++coverage->ordered_batches;
  coverage->device_batches += execution.on_device ? 1 : 0;
  coverage->rounds += execution.counter("rounds");
  coverage->chained_adds += execution.counter("chained_adds");
  coverage->tail += execution.counter("tail");
}

// A ground: where and how batches run.
struct Ground {
  const char* name;
  std::function<std::unique_ptr<Engine>()> make;
  bool ranges = false;
  std::uint64_t transactions_max = 40;
};

EngineOptions engine_options(const char* strategy) {
  EngineOptions options;
  options.strategy = strategy;
  options.secret = RefereeScenario::kSecret;
  return options;
}

// Rounds alone, where others would run a tail one by one.
std::unique_ptr<Engine> make_ordered(std::uint32_t threads, OrderedTuning tuning) {
  return create_engine_with(engine_options("ordered"), std::make_unique<OrderedHost>(threads, tuning));
}

Status run_chain(std::uint64_t seed, const WorkloadOptions& options, const Ground& ground, Coverage* coverage) {
  Random random(seed), expiries(~seed);
  auto workload = Workload::create(options);
  RefereeScenario scenario;
  scenario.engine = ground.make();
  if (Status status = load_initial(*workload, scenario.engine.get()); !status.ok()) return status;
  scenario.header.first_version = 2;
  for (std::uint64_t i = 0; i < kBatchesPerChain; ++i) {
    workload->generate(&scenario.builder,
                       1 + random.below(random.chance(0.05) ? 10 * ground.transactions_max : ground.transactions_max));
    if (expiries.chance(0.3)) {
      add_random_expiries(&expiries, 0.3, scenario.header.time_us, &scenario.columns);
    }
    scenario.execute();
    coverage->expiries += scenario.writes.expiry_write.size();
    ModelState after;
    Status status = scenario.check(RefereeMode::deterministic, &after);
    if (status.ok()) status = check_state(after, *scenario.engine);
    if (status.ok()) status = scenario.check(RefereeMode::any_order);
    if (!status.ok()) return status;
    count(scenario, coverage);
    scenario.next_batch();
    if (!random.chance(0.2)) continue;
    const Version floor = random.below(scenario.header.first_version);
    scenario.engine->drop_tombstones(floor, [&](std::string_view) { ++coverage->tombstone_drops; });
    after.drop_tombstones(floor);
    if (status = check_state(after, *scenario.engine); !status.ok()) return status;
  }
  return {};
}

// Chains on this ground until the first that fails; what they met.
Coverage run_chains(const Ground& ground) {
  Coverage coverage;
  for (std::uint64_t seed = first_seed(); seed <= last_seed(); ++seed) {
    Random random(seed);
    const WorkloadOptions options{.name = "mixed",
                                  .keys = 2 + random.below(random.chance(0.2) ? 60 : 15),
                                  .seed = seed,
                                  .mixed = {ground.ranges}};
    const Status status = run_chain(seed, options, ground, &coverage);
    if (status.ok()) continue;
    std::fprintf(stderr, "replay: KILOKV_TEST_SEED=%llu engine_random_batch_test\n",
                 static_cast<unsigned long long>(seed));
    FAIL(status.message());
    return coverage;
  }
  std::printf(
      "  %s: %llu batches equal the referee's, %llu by pipelined, %llu by partitioned, %llu by ordered: "
      "%llu rounds, %llu chained ADDs, %llu in tails\n",
      ground.name, static_cast<unsigned long long>(coverage.batches),
      static_cast<unsigned long long>(coverage.pipelined_batches),
      static_cast<unsigned long long>(coverage.partitioned_batches),
      static_cast<unsigned long long>(coverage.ordered_batches), static_cast<unsigned long long>(coverage.rounds),
      static_cast<unsigned long long>(coverage.chained_adds), static_cast<unsigned long long>(coverage.tail));
  if (!runs_all()) return coverage;
  // What the generator is for did happen, each often.
  for (const Outcome outcome : {Outcome::committed, Outcome::guard_failed, Outcome::wait_expired, Outcome::overflow,
                                Outcome::type_mismatch, Outcome::postponed}) {
    const std::uint64_t times = coverage.outcomes[static_cast<int>(outcome)];
    if (times <= 500)
      FAIL("outcome " + std::to_string(static_cast<int>(outcome)) + " only " + std::to_string(times) + " times");
  }
  EXPECT_TRUE(coverage.passes_beyond_first > 500);
  EXPECT_TRUE(coverage.tombstone_drops > 100);
  EXPECT_TRUE(coverage.expiries > 1000);
  return coverage;
}

void run_in_rounds(const Ground& ground) {
  const Coverage coverage = run_chains(ground);
  if (kilokv::test::has_failed() || !runs_all()) return;
  EXPECT_EQ(coverage.ordered_batches, kChains * kBatchesPerChain);
  EXPECT_TRUE(coverage.rounds > 5 * coverage.ordered_batches);
  EXPECT_TRUE(coverage.chained_adds > 500);
  EXPECT_EQ(coverage.tail, 0u);
}

TEST(serial_equals_the_referee) {
  const Coverage coverage =
      run_chains({"serial", [] { return std::move(*Engine::create(engine_options("serial"))); }, true});
  EXPECT_EQ(coverage.ordered_batches, 0u);
  if (!runs_all()) return;
  EXPECT_TRUE(coverage.range_pairs > 500);
}

// Batches of one tile, and batches of many.
TEST(pipelined_equals_the_referee) {
  for (const std::uint64_t transactions_max : {40, 500}) {
    const Coverage coverage = run_chains({"pipelined, 3 threads",
                                          [] {
                                            EngineOptions options = engine_options("pipelined");
                                            options.threads = 3;
                                            return std::move(*Engine::create(options));
                                          },
                                          true, transactions_max});
    // Most batches have ranges or precedences.
    if (runs_all()) EXPECT_TRUE(coverage.pipelined_batches > (transactions_max == 40 ? 100u : 10u));
  }
}

// Batches of few windows, and batches of many.
TEST(partitioned_equals_the_referee) {
  for (const std::uint64_t transactions_max : {40, 500}) {
    const Coverage coverage =
        run_chains({"partitioned, 3 threads",
                    [] {
                      EngineOptions options = engine_options("partitioned");
                      options.threads = 3;
                      return create_partitioned_engine(options, {.window = 16, .tile = 3, .transactions_min = 1});
                    },
                    false, transactions_max});
    if (runs_all()) EXPECT_TRUE(coverage.partitioned_batches > 500);
  }
}

TEST(ordered_on_1_thread_equals_the_referee) {
  run_in_rounds({"ordered, 1 thread", [] { return make_ordered(1, {}); }});
}
TEST(ordered_on_2_threads_equals_the_referee) {
  run_in_rounds({"ordered, 2 threads", [] { return make_ordered(2, {}); }});
}
TEST(ordered_on_8_threads_equals_the_referee) {
  run_in_rounds({"ordered, 8 threads", [] { return make_ordered(8, {}); }});
}

TEST(ordered_with_a_tail_equals_the_referee) {
  const Coverage coverage = run_chains({"ordered with a tail, 2 threads", [] { return make_ordered(2, {1, 4}); }});
  if (!runs_all()) return;
  EXPECT_TRUE(coverage.rounds > coverage.ordered_batches);
  EXPECT_TRUE(coverage.tail > 10000);
}

std::unique_ptr<Engine> make_on_device(const std::string& device) {
  EngineOptions options = engine_options("ordered");
  options.device = device;
  return std::move(*Engine::create(options));
}

void run_on_device(const std::string& device) {
  if (const EngineDevice met = make_on_device(device)->device(); met.name != device) {
    FAIL("the device " + device + ": " + met.reason);
    return;
  }
  const std::string name = "ordered, device " + device;
  const Coverage coverage = run_chains({name.c_str(), [&] { return make_on_device(device); }});
  EXPECT_TRUE(coverage.batches > 0);
  EXPECT_EQ(coverage.device_batches, coverage.batches);
  if (runs_all()) EXPECT_TRUE(coverage.rounds > 2 * coverage.ordered_batches);
}

TEST(ordered_on_the_emulated_device_equals_the_referee) { run_on_device("emulated"); }

void ordered_on_the_chosen_device_equals_the_referee() { run_on_device(chosen_device()); }
const bool registered_chosen_device =
    chosen_device() != nullptr && kilokv::test::register_test("ordered_on_the_chosen_device_equals_the_referee",
                                                              ordered_on_the_chosen_device_equals_the_referee);

// Batches with ranges run on `serial`, the others in parallel, over one state.
TEST(ordered_and_serial_by_turns_equal_the_referee) {
  const Coverage coverage = run_chains(
      {"ordered, ranges on serial", [] { return std::move(*Engine::create(engine_options("ordered"))); }, true, 10});
  if (!runs_all()) return;
  EXPECT_TRUE(coverage.ordered_batches > 500);
  EXPECT_TRUE(coverage.ordered_batches < coverage.batches);
}

TEST(auto_equals_the_referee) {
  const Coverage coverage = run_chains({"auto, 4 threads",
                                        [] {
                                          EngineOptions options = engine_options("auto");
                                          options.threads = 4;
                                          return std::move(*Engine::create(options));
                                        },
                                        false, 500});
  if (!runs_all()) return;
  EXPECT_TRUE(coverage.partitioned_batches > 500);
  EXPECT_TRUE(coverage.partitioned_batches < coverage.batches);
}

}  // namespace
}  // namespace kilokv::engine
