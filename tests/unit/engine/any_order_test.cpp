// Differential test: random batches at the edges (edge_batches.hpp) under the strategies that find an order of their
// own, on threads and on a device. The referee replays the order that they report. It compares outcomes, reads,
// versions, writes and the final state, and checks that no transaction was left waiting that could run. A failure
// prints the command that replays its chain. Where threads race, the chain need not fail again.
//
// KILOKV_TEST_SEED=N runs only chain N. KILOKV_TEST_CHAINS=N runs the first N chains. KILOKV_TEST_DEVICE=cuda adds the
// platform of that device, which must be there: a batch that ran on the CPU instead is a failure.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "engine/engine_for_tests.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/exec/run/host_strategies.hpp"
#include "engine/exec/run/ordered_totals.hpp"
#include "engine/stm/ordered_arguments.hpp"
#include "engine/stm/papers/local_arguments.hpp"
#include "engine/stm/papers/ticketed_arguments.hpp"
#include "tests/unit/engine/edge_batches.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint64_t kChains = 100, kBatchesPerChain = 6;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Ground {
  const char* test;
  const char* device = "cpu";
  std::uint32_t threads = 1;
  std::uint64_t chains = kChains;
  std::uint32_t blocks = 0;  // of the emulated device; 0: as it has them by itself
};

struct Totals {
  std::uint64_t batches = 0, by_it = 0, on_device = 0, passes_beyond_first = 0;
  std::uint64_t conflicts = 0, under_locks = 0, wasted = 0;
  std::uint64_t staged = 0, decided = 0, in_several_blocks = 0, in_8_blocks = 0;
  std::uint64_t outcomes[7] = {};
};

void count(const RefereeScenario& scenario, const char* strategy, Totals* totals) {
  const ExecutionReport& execution = scenario.engine->execution();
  ++totals->batches;
  totals->by_it += std::string_view(execution.strategy) == strategy ? 1 : 0;
  totals->on_device += execution.on_device ? 1 : 0;
  totals->passes_beyond_first += scenario.results.passes - 1;
  totals->conflicts += execution.counter("conflicts");
  totals->under_locks += execution.counter("under_locks");
  totals->wasted += execution.counter("wasted_tickets");
  totals->staged += execution.counter("staged");
  totals->in_several_blocks += execution.counter("stage_blocks") > 1 && execution.counter("staged") > 0 ? 1 : 0;
  totals->in_8_blocks += execution.counter("stage_blocks") == 8 && execution.counter("staged") > 0 ? 1 : 0;
  for (const std::uint64_t decided : execution.decided_by) totals->decided += decided;
  for (const std::uint8_t outcome : scenario.results.outcome) ++totals->outcomes[outcome];
}

// Histories small and large.
void draw_kilo(Random* random, EngineOptions* options) {
  constexpr const char* kHistories[] = {"5kB", "512B", "4+8", "1+4"};
  constexpr std::uint32_t kUnits[] = {1, 4, 8, 32}, kLimits[] = {0, 1, 3, 1000};
  options->settings.erase("records-per-lock");
  options->settings["writer-history"] = kHistories[random->below(4)];
  options->settings["commit-units"] = std::to_string(kUnits[random->below(4)]);
  options->settings["concurrency-limit"] = std::to_string(kLimits[random->below(4)]);
}

// Stages that have room for all records, for some, for none, with signatures that tell them apart or do not.
void draw_local(Random* random, EngineOptions* options) {
  constexpr std::uint32_t kStaged[] = {0, 2, 4, 8, 16, 1024}, kBits[] = {1, 4, 256, 1024};
  options->settings["staged-records"] = std::to_string(kStaged[random->below(6)]);
  options->settings["signature-bits"] = std::to_string(kBits[random->below(4)]);
  options->settings["stage-blocks"] = std::to_string(1 << random->below(4));
  options->allow_unproven = true;
}

std::unique_ptr<Engine> make_engine(const Ground& ground, EngineOptions options) {
  if (ground.blocks == 0) return RefereeScenario::make_engine(options);
  EmulatedDeviceOptions emulated;
  emulated.threads = ground.blocks;
  options.secret = RefereeScenario::kSecret;
  return create_engine_with(
      options, std::make_unique<DeviceExecutor>(open_emulated(emulated), std::vector<std::string>{options.strategy},
                                                options.settings));
}

Status run_chain(const Ground& ground, const char* strategy, std::uint64_t seed, Totals* totals) {
  Random random(seed);
  EngineOptions options;
  options.strategy = strategy;
  options.device = ground.device;
  options.threads = ground.threads;
  constexpr std::uint32_t kRecordsPerLock[] = {1, 1, 16, 4096};
  options.settings["records-per-lock"] = std::to_string(kRecordsPerLock[random.below(4)]);
  if (options.strategy == "kilo") draw_kilo(&random, &options);
  if (options.strategy == "local") draw_local(&random, &options);
  if (random.chance(0.3)) options.settings["transactions-per-thread"] = std::to_string(1 + random.below(20));
  RefereeScenario scenario;
  scenario.engine = make_engine(ground, options);
  EdgeBatches batches(&random, draw_edge_shape(&random));
  for (std::uint64_t key = 0; key < batches.shape().keys; key += 2) scenario.load(EdgeBatches::name(key), 5);
  if (random.chance(0.3)) scenario.header.first_version = kVersionMax - 50'000'000;
  for (std::uint64_t i = 0; i < kBatchesPerChain; ++i) {
    batches.generate(&scenario.builder, 1 + random.below(batches.shape().transactions_max),
                     scenario.header.first_version);
    scenario.execute();
    ModelState after;
    Status status = scenario.check(referee_mode(scenario.engine->execution()), &after);
    if (status.ok()) status = check_state(after, *scenario.engine);
    count(scenario, strategy, totals);
    // Why the device was given up.
    if (status.ok() && scenario.engine->device().name != ground.device) {
      status = Status(StatusCode::internal, scenario.engine->device().reason);
    }
    if (!status.ok()) return status;
    scenario.next_batch();
  }
  return {};
}

void run_strategy(const Ground& ground, const char* strategy) {
  Totals totals;
  const std::uint64_t first = number_of("KILOKV_TEST_SEED", 1);
  const std::uint64_t last =
      number_of("KILOKV_TEST_SEED", number_of("KILOKV_TEST_CHAINS", test::runs_to_make(ground.chains)));
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Status status = run_chain(ground, strategy, seed, &totals);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s, replay: KILOKV_TEST_SEED=%llu engine_any_order_test %s\n", strategy,
                 static_cast<unsigned long long>(seed), ground.test);
    return FAIL(status.message());
  }
  std::printf(
      "  %s: %llu batches are as serial as the referee, %llu conflicts, %llu attempts under locks, %llu wasted\n",
      strategy, static_cast<unsigned long long>(totals.batches), static_cast<unsigned long long>(totals.conflicts),
      static_cast<unsigned long long>(totals.under_locks), static_cast<unsigned long long>(totals.wasted));
  std::fflush(stdout);  // a later strategy may abort
  EXPECT_EQ(totals.by_it, totals.batches);
  EXPECT_EQ(totals.on_device, std::string_view(ground.device) == "cpu" ? 0 : totals.batches);
  if (first != 1 || last < ground.chains) return;
  EXPECT_TRUE(totals.passes_beyond_first > 5);
  if (std::string_view(strategy) == "local") {
    std::printf("  %llu of %llu on the stage; %llu batches with a stage in several blocks, %llu with one in 8\n",
                static_cast<unsigned long long>(totals.staged), static_cast<unsigned long long>(totals.decided),
                static_cast<unsigned long long>(totals.in_several_blocks),
                static_cast<unsigned long long>(totals.in_8_blocks));
    EXPECT_TRUE(totals.staged > totals.decided / 10 && totals.staged < totals.decided * 9 / 10);
    const std::string_view device = ground.device;
    if (device == "cpu") EXPECT_EQ(totals.in_several_blocks, std::uint64_t{0});
    if (device == "emulated") EXPECT_TRUE(totals.in_several_blocks > 5);
    if (ground.blocks == 16) EXPECT_TRUE(totals.in_8_blocks > 5);
  }
  for (const Outcome outcome :
       {Outcome::committed, Outcome::guard_failed, Outcome::wait_expired, Outcome::overflow, Outcome::type_mismatch}) {
    EXPECT_TRUE(totals.outcomes[static_cast<int>(outcome)] > 5);
  }
}
std::vector<std::string> strategies_with_tickets() {
  std::vector<std::string> names;
  for (const StrategyInfo& info : strategy_infos()) {
    if (info.takes_tickets) names.push_back(info.name);
  }
  return names;
}

void run_all(const Ground& ground) {
  for (const std::string& strategy : strategies_with_tickets()) run_strategy(ground, strategy.c_str());
}

TEST(on_1_thread) { run_all({.test = "on_1_thread"}); }
TEST(on_2_threads) { run_all({.test = "on_2_threads", .threads = 2}); }
TEST(on_8_threads) { run_all({.test = "on_8_threads", .threads = 8}); }
TEST(on_the_emulated_device) { run_all({.test = "on_the_emulated_device", .device = "emulated", .chains = 30}); }
TEST(on_a_device_whose_stage_is_in_8_blocks) {
  run_strategy({.test = "on_a_device_whose_stage_is_in_8_blocks", .device = "emulated", .chains = 20, .blocks = 16},
               "local");
}

// More transactions, and records, than one block has threads and room for: on a CUDA device with clusters the stage is
// in the memory of 1, 2, 4 and 8 blocks.
void run_large_stages(const char* device) {
  for (const std::uint32_t transactions : {200u, 400u, 900u, 3000u}) {
    EngineOptions options;
    options.strategy = "local";
    options.device = device;
    options.threads = 2;
    options.settings["staged-records"] = std::to_string(kStagedRecordsMax);
    options.settings["stage-blocks"] = std::to_string(kStageBlocksMax);
    options.allow_unproven = true;
    RefereeScenario scenario;
    scenario.engine = RefereeScenario::make_engine(options);
    Random random(transactions);
    const std::uint64_t keys = transactions == 900 ? 100 : 4 * transactions;
    for (std::uint32_t t = 0; t < transactions; ++t) {
      scenario.builder.begin();
      const auto key = [&](std::uint64_t of) { return scenario.builder.key("k" + std::to_string(random.below(of))); };
      scenario.builder.op(OpKind::get, key(keys));
      scenario.builder.op(OpKind::put, key(keys), Operand::get, 0);
      scenario.builder.op(OpKind::add, key(t % 4 == 0 ? 10 : keys), Operand::integer, 1);
      scenario.builder.end();
    }
    scenario.execute();
    const ExecutionReport& execution = scenario.engine->execution();
    EXPECT_EQ(scenario.check(RefereeMode::any_order).message(), "");
    EXPECT_EQ(execution.counter("staged"), std::uint64_t{transactions});
    EXPECT_EQ(scenario.engine->device().reason, "");
    std::printf("  %u transactions on a stage in the memory of %llu blocks\n", transactions,
                static_cast<unsigned long long>(execution.counter("stage_blocks")));
  }
}
TEST(large_stages) {
  for (const char* device : {"cpu", "emulated"}) run_large_stages(device);
}

void on_the_chosen_device() { run_all({.test = "on_the_chosen_device", .device = std::getenv("KILOKV_TEST_DEVICE")}); }
void large_stages_there() { run_large_stages(std::getenv("KILOKV_TEST_DEVICE")); }
const bool registered_chosen_device =
    std::getenv("KILOKV_TEST_DEVICE") != nullptr &&
    kilokv::test::register_test("on_the_chosen_device", on_the_chosen_device) &&
    kilokv::test::register_test("large_stages_of_the_chosen_device", large_stages_there);

// Nothing is in the way of a single thread: it neither fails nor locks more than it writes.
TEST(one_thread_meets_no_conflict) {
  for (const std::string& strategy : strategies_with_tickets()) {
    EngineOptions options;
    options.strategy = strategy;
    options.threads = 1;
    RefereeScenario scenario;
    scenario.engine = RefereeScenario::make_engine(options);
    for (int i = 0; i < 100; ++i) {
      scenario.builder.begin();
      scenario.builder.op(OpKind::get, scenario.builder.key("hot"));
      scenario.builder.op(OpKind::add, scenario.builder.key("hot"), Operand::integer, 1);
      scenario.builder.op(OpKind::add, scenario.builder.key("k" + std::to_string(i % 7)), Operand::integer, 1);
      scenario.builder.end();
    }
    scenario.execute();
    const ExecutionReport& execution = scenario.engine->execution();
    EXPECT_EQ(execution.counter("conflicts") + execution.counter("under_locks") + execution.counter("wasted_tickets"),
              std::uint64_t{0});
    EXPECT_EQ(execution.counter("attempts"), std::uint64_t{100});
    EXPECT_EQ(scenario.check(RefereeMode::any_order).message(), "");
  }
}

// What is reported is of the last batch alone, whoever ran it.
TEST(ordered_reports_nothing_of_the_batch_before) {
  ExecutionReport report;
  report.begin("kilo");
  report.any_order = true;
  for (const char* name : {"attempts", "staged", "wasted_tickets"}) report.counters.add(name, 7);
  report.counters.add("stage_blocks", 7, CounterKind::largest);
  report.devices_lost = 1;
  std::vector<std::uint64_t> words(kOrderedWords);
  OrderedArguments<HostSpace> arguments;
  arguments.words = words.data();
  BatchResults results;
  report_ordered(arguments, {}, &results, &report);
  EXPECT_EQ(std::string(report.strategy), std::string("ordered"));
  for (const Counter& counter : report.counters) EXPECT_EQ(counter.value, std::uint64_t{0});
  EXPECT_EQ(report.counter("attempts") + report.counter("stage_blocks"), std::uint64_t{0});
  EXPECT_TRUE(report.counters.begin() != report.counters.end());
  EXPECT_TRUE(!report.any_order);
  EXPECT_EQ(report.devices_lost, 1u);
}

TEST(serial_reports_nothing_of_the_batch_before) {
  EngineOptions options;
  options.strategy = "kilo";
  options.threads = 2;
  RefereeScenario scenario;
  scenario.engine = RefereeScenario::make_engine(options);
  for (int i = 0; i < 100; ++i) {
    scenario.builder.begin();
    scenario.builder.op(OpKind::add, scenario.builder.key("hot"), Operand::integer, 1);
    scenario.builder.end();
  }
  scenario.execute();
  EXPECT_TRUE(scenario.engine->execution().counter("attempts") >= 100);
  EXPECT_EQ(scenario.engine->execution().decided_by.size(), std::size_t{2});
  scenario.next_batch();
  scenario.builder.begin();
  scenario.builder.range_op(OpKind::range_get, "a", "z", 5);  // for `serial`
  scenario.builder.end();
  scenario.execute();
  const ExecutionReport& execution = scenario.engine->execution();
  EXPECT_EQ(std::string(execution.strategy), std::string("serial"));
  EXPECT_EQ(execution.counter("attempts") + execution.counter("conflicts") + execution.counter("hazards"),
            std::uint64_t{0});
  EXPECT_TRUE(execution.decided_by.empty());
}

// Whoever of them is at hand: which one runs the batch is not chosen yet.
TEST(several_strategies_take_what_all_can) {
  for (const std::vector<std::string>& strategies :
       {std::vector<std::string>{"ordered", "prstm"}, std::vector<std::string>{"prstm", "ordered"}}) {
    EXPECT_EQ(HostStrategies(strategies, 1).transactions_max(), std::size_t{kTicketedTransactionsMax});
  }
}

// `auto` that may take any order tries all, on every ground, and each batch is serial in the order that it reports.
TEST(auto_takes_all_of_them) {
  for (const char* device : {"cpu", "emulated"}) {
    EngineOptions options;
    options.order = "any";
    options.threads = 4;
    options.device = device;
    RefereeScenario scenario;
    scenario.engine = RefereeScenario::make_engine(options);
    std::set<std::string> seen;
    for (int batch = 0; batch < 80; ++batch) {
      for (int i = 0; i < 400; ++i) {
        scenario.builder.begin();
        scenario.builder.op(OpKind::get, scenario.builder.key("k" + std::to_string(i % 50)));
        scenario.builder.op(OpKind::put, scenario.builder.key("k" + std::to_string(i % 7)), Operand::get, 0);
        scenario.builder.op(OpKind::add, scenario.builder.key("sum"), Operand::integer, 1);
        scenario.builder.end();
      }
      scenario.execute();
      const ExecutionReport& execution = scenario.engine->execution();
      seen.insert(execution.strategy);
      EXPECT_EQ(scenario.check(referee_mode(execution)).message(), "");
      scenario.next_batch();
    }
    std::set<std::string> wanted = {"serial", "pipelined", "partitioned", "prstm", "kilo", "local"};
    if (std::string_view(device) != "cpu") wanted.insert("ordered");
    EXPECT_TRUE(seen == wanted);
    const std::string choice = scenario.engine->stats().strategy_choice;
    for (const std::string& name : seen) EXPECT_TRUE(choice.find(name) != std::string::npos);
  }
}

TEST(an_order_is_for_auto_alone) {
  EngineOptions options;
  options.order = "any";
  EXPECT_EQ(options.validate().code(), StatusCode::ok);
  options.order = "some";
  EXPECT_EQ(options.validate().code(), StatusCode::invalid_argument);
  options.order = "any";
  for (const char* strategy : {"serial", "pipelined", "partitioned", "ordered", "prstm", "kilo", "local"}) {
    options.strategy = strategy;
    EXPECT_EQ(options.validate().code(), StatusCode::invalid_argument);
  }
}

TEST(settings_out_of_range_are_refused) {
  EngineOptions options;
  options.strategy = "prstm";
  options.settings = {{"records-per-lock", "0"}};
  EXPECT_EQ(Engine::create(options).status().message(),
            Status::invalid({"records-per-lock", "1 to 1048576", "0", "--records-per-lock"}).message());
  for (const char* text : {"1048577", "", "-1", "1x", "many", "99999999999999999999"}) {
    options.settings = {{"records-per-lock", text}};
    EXPECT_EQ(Engine::create(options).status().code(), StatusCode::invalid_argument);
  }
  options.settings = {{"transactions-per-thread", "1048577"}};
  EXPECT_EQ(Engine::create(options).status().code(), StatusCode::invalid_argument);
  options.settings = {{"no-such-setting", "1"}};
  EXPECT_EQ(Engine::create(options).status().code(), StatusCode::invalid_argument);
}

// A setting is for those strategies alone that list it; its default is for all.
TEST(settings_are_for_their_strategies) {
  for (const SettingInfo& info : strategy_settings()) {
    const StrategySetting& setting = info.setting;
    const std::string otherwise = setting.default_text();
    EXPECT_EQ(setting.check(otherwise).message(), "");
    EXPECT_EQ(setting.check("no such text").code(), StatusCode::invalid_argument);
    EXPECT_TRUE(std::string(setting.help).ends_with("."));
    EXPECT_FALSE(info.strategies.empty());
    const std::string other = setting.kind == SettingKind::on_off ? "on"
                              : setting.kind == SettingKind::form ? "512B"
                                                                  : std::to_string(setting.high);
    EXPECT_EQ(setting.check(other).message(), "");
    for (const std::string& strategy : Engine::strategies()) {
      EngineOptions options;
      options.strategy = strategy;
      options.settings = {{setting.name, otherwise}};
      EXPECT_EQ(options.validate().message(), "");
      const StrategyInfo* const of = find_strategy_info(strategy);
      options.settings = {{setting.name, other}};
      EXPECT_EQ(options.validate().ok(), of != nullptr && of->has_setting(setting.name));
      if (options.validate().ok()) continue;
      EXPECT_TRUE(options.validate().message().find("unless --strategy is " + listed(info.strategies)) !=
                  std::string::npos);
    }
    const auto held = effective_settings({{setting.name, other}});
    EXPECT_TRUE(std::find(held.begin(), held.end(), std::pair<std::string, std::string>(setting.name, other)) !=
                held.end());
    EXPECT_EQ(held.size(), strategy_settings().size());
  }
}

TEST(settings_of_kilo_are_checked) {
  const auto code_of = [](const char* strategy, const char* history, std::uint32_t units, std::uint32_t limit) {
    EngineOptions options;
    options.strategy = strategy;
    options.settings = {{"writer-history", history},
                        {"commit-units", std::to_string(units)},
                        {"concurrency-limit", std::to_string(limit)}};
    return Engine::create(options).status().code();
  };
  for (const char* history : {"5kB", "512B", "1+4", "4+8", "65536+262144"}) {
    EXPECT_EQ(code_of("kilo", history, 8, 0), StatusCode::ok);
  }
  for (const char* history : {"", "5", "5+8", "0+4", "4+6", "4+3", "4+8x", "65540+8", "4+262148", "+", "-4+8"}) {
    EXPECT_EQ(code_of("kilo", history, 8, 0), StatusCode::invalid_argument);
  }
  for (const std::uint32_t units : {0u, 3u, 64u}) {
    EXPECT_EQ(code_of("kilo", "5kB", units, 0), StatusCode::invalid_argument);
  }
  EXPECT_EQ(code_of("kilo", "5kB", 8, (1u << 20) + 1), StatusCode::invalid_argument);
  EXPECT_EQ(code_of("prstm", "512B", 8, 0), StatusCode::invalid_argument);
  EXPECT_EQ(code_of("prstm", "5kB", 4, 0), StatusCode::invalid_argument);
  EXPECT_EQ(code_of("ordered", "5kB", 8, 1), StatusCode::invalid_argument);
}

TEST(settings_of_local_are_checked) {
  const auto code_of = [](const char* strategy, std::uint32_t records, std::uint32_t bits, std::uint32_t blocks = 8) {
    EngineOptions options;
    options.strategy = strategy;
    options.settings = {{"staged-records", std::to_string(records)},
                        {"signature-bits", std::to_string(bits)},
                        {"stage-blocks", std::to_string(blocks)}};
    return Engine::create(options).status().code();
  };
  EXPECT_EQ(code_of("local", 0, 1), StatusCode::ok);
  EXPECT_EQ(code_of("local", kStagedRecordsMax, kSignatureBitsMax), StatusCode::ok);
  EXPECT_EQ(code_of("local", kStagedRecordsMax + 1, 256), StatusCode::invalid_argument);
  for (const std::uint32_t bits : {0u, 3u, 2048u}) {
    EXPECT_EQ(code_of("local", 1024, bits), StatusCode::invalid_argument);
  }
  for (const std::uint32_t blocks : {1u, 2u, 4u}) EXPECT_EQ(code_of("local", 1024, 256, blocks), StatusCode::ok);
  for (const std::uint32_t blocks : {0u, 3u, 16u}) {
    EXPECT_EQ(code_of("local", 1024, 256, blocks), StatusCode::invalid_argument);
  }
  EXPECT_EQ(code_of("prstm", 512, 256), StatusCode::invalid_argument);
  EXPECT_EQ(code_of("prstm", 1024, 128), StatusCode::invalid_argument);
  EXPECT_EQ(code_of("prstm", 1024, 256, 4), StatusCode::invalid_argument);
  EngineOptions timed;
  timed.strategy = "local";
  timed.settings = {{"staged-records", "0"}, {"stage-times", "on"}};
  EXPECT_EQ(
      timed.validate().message(),
      Status::invalid({"stage-times", "off where --staged-records is 0: there is no stage", "on", "--stage-times"})
          .message());
  timed.settings = {{"stage-blocks", "2"}, {"stage-times", "on"}};
  EXPECT_EQ(timed.validate().message(),
            Status::invalid({"stage-times", "off where --stage-blocks is not 1: only a stage in one block is measured",
                             "on", "--stage-times"})
                .message());
  timed.settings["stage-blocks"] = "1";
  EXPECT_TRUE(timed.validate().ok());
}

}  // namespace
}  // namespace kilokv::engine
