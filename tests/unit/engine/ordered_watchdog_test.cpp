// The watchdog of `ordered`: a batch in which no transaction makes progress is given up, on every platform. In the
// simulator a mutation stops all lanes. On host threads and on a device, the memory holds reservations that no
// transaction made.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/exec/run/host_arguments.hpp"
#include "engine/exec/run/ordered_host.hpp"
#include "engine/platform/host.hpp"
#include "engine/sim/ordered_sim.hpp"
#include "engine/stm/ordered.hpp"
#include "tests/unit/engine/child_process.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"
#include "tests/unit/engine/stm/planted_rules.hpp"

namespace kilokv::engine {
namespace {

using test::Death;
using test::run_in_child;

constexpr const char* kGivenUp = "ordered gave up a batch: no transaction made progress";

std::unique_ptr<Engine> make_engine(std::unique_ptr<Executor> executor) {
  EngineOptions options;
  options.strategy = "ordered";
  options.threads = 1;
  options.secret = RefereeScenario::kSecret;
  return create_engine_with(options, std::move(executor));
}

// The first one waits for what another one sets.
void generate(ColumnsBuilder* builder) {
  constexpr int kTransactions = 100;  // so many that a device takes the last one in rounds, too
  for (int i = 0; i < kTransactions; ++i) {
    builder->begin();
    if (i == 0) builder->guard(GuardKind::exists, OnFalse::wait, builder->key("key50"), 0);
    builder->op(OpKind::get, builder->key("key" + std::to_string(i / 2)));
    builder->op(OpKind::put, builder->key("key" + std::to_string(i)), Operand::integer, i);
    builder->end();
  }
}

// The batch is what the specification makes of it, and so is the state.
void expect_right(const RefereeScenario& scenario) {
  ModelState after;
  EXPECT_EQ(scenario.check(RefereeMode::deterministic, &after).message(), "");
  EXPECT_EQ(check_state(after, *scenario.engine).message(), "");
}

using Rules = PlantedOrderedRules<OrderedRules>;

void run_simulated(RefereeScenario* scenario) {
  SimRuns runs;
  runs.shape = {.blocks = 1, .block_threads = 4, .group_width = 4};
  runs.schedule.steps_max = 10'000'000;
  scenario->engine = make_engine(std::make_unique<OrderedSim<4, Rules>>(&runs));
  generate(&scenario->builder);
  scenario->execute();
  EXPECT_EQ(runs.report.status.message(), "");  // the simulator had no need to end it
}

TEST(a_stall_in_the_simulator_ends_and_the_batch_runs_on_the_cpu) {
  RefereeScenario scenario;
  // A reader's reservation stays beyond its round, and nobody may write the record any more.
  const Planted untagged_reads(&Rules::kTagsReads, false);
  run_simulated(&scenario);
  EXPECT_EQ(scenario.engine->device().reason, kGivenUp);
  EXPECT_EQ(scenario.engine->execution().devices_lost, 1u);
  expect_right(scenario);
}
TEST(without_a_stall_the_simulator_gives_nothing_up) {
  RefereeScenario scenario;
  run_simulated(&scenario);
  EXPECT_EQ(scenario.engine->device().reason, "");
  expect_right(scenario);
}

// What is to be filled with ones is filled with zeros: a reservation that is older than any.
class WrongFill final : public EmulatedDevice {
 public:
  explicit WrongFill(bool is_wrong) : is_wrong_(is_wrong) {}
  Status fill(DeviceStream stream, DeviceAddress to, std::uint8_t byte, std::size_t bytes) override {
    return EmulatedDevice::fill(stream, to, is_wrong_ ? 0 : byte, bytes);
  }

 private:
  const bool is_wrong_;
};

void run_on_device(bool is_wrong, RefereeScenario* scenario) {
  auto device = std::make_unique<DeviceExecutor>(open_emulated(std::make_unique<WrongFill>(is_wrong)));
  scenario->engine = make_engine(std::move(device));
  generate(&scenario->builder);
  scenario->execute();
}

TEST(a_stall_on_a_device_ends_and_the_batch_runs_on_the_cpu) {
  RefereeScenario scenario;
  run_on_device(true, &scenario);
  EXPECT_EQ(scenario.engine->device().name, "cpu");
  EXPECT_EQ(scenario.engine->device().reason, "ordered gave up a batch on the device: no transaction made progress");
  EXPECT_FALSE(scenario.engine->execution().on_device);
  expect_right(scenario);
}
TEST(without_a_stall_the_device_is_kept) {
  RefereeScenario scenario;
  run_on_device(false, &scenario);
  EXPECT_EQ(scenario.engine->device().reason, "");
  EXPECT_TRUE(scenario.engine->execution().on_device);
  expect_right(scenario);
}

// As OrderedHost, but that nobody may run in a round.
class StalledHost final : public Executor {
 public:
  explicit StalledHost(OrderedTuning tuning) : tuning_(tuning) {}

  std::vector<std::string> strategies() const override { return {"ordered"}; }
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override {
    const OrderedArguments<HostSpace>& arguments =
        batches_.open(batch, tuning_, host_threads(team_.size()), records, results);
    std::fill_n(arguments.reservations, kReservationWords * records->size(), std::uint64_t{0});
    team_.run([&](std::uint32_t thread) {
      HostPlatform platform(&team_, thread, nullptr);
      OrderedRun<HostPlatform>(platform, arguments).run();
    });
    const Status status = batches_.close(results, report);
    report->on_device = false;
    return status;
  }
  std::size_t memory_bytes() const override { return batches_.memory_bytes(); }

 private:
  ThreadTeam team_{2};
  OrderedTuning tuning_;
  OrderedBatches batches_;
};

void run_on_host(OrderedTuning tuning, RefereeScenario* scenario) {
  scenario->engine = make_engine(std::make_unique<StalledHost>(tuning));
  generate(&scenario->builder);
  scenario->execute();
}

// As of every strategy: on the CPU it is a bug, and nothing is answered after it.
TEST(a_stall_on_threads_of_the_host_stops_the_process) {
  const Death death = run_in_child([] {
    RefereeScenario scenario;
    run_on_host({}, &scenario);
  });
  EXPECT_TRUE(death.signal == SIGABRT);
  if (death.words.find(kGivenUp) == std::string::npos) FAIL("it said: " + death.words);
}
// Rounds that stand still lead to a tail, where there is one: the first thread runs all, and nothing is given up.
TEST(a_tail_ends_what_rounds_do_not) {
  RefereeScenario scenario;
  run_on_host({.decided_min = 64, .divisor = 8}, &scenario);
  EXPECT_TRUE(scenario.engine->execution().counter("tail") > 0);
  expect_right(scenario);
}

}  // namespace
}  // namespace kilokv::engine
