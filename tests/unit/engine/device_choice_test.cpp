// Where an engine runs its batches, if its strategy has no kernels for the device, or failed the checks on this kind of
// device. The emulated device here has the kernels of some strategies only, or says that it is a CUDA device.

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_on_device.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/exec/strategy.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

EngineOptions options_of(const std::string& strategy, const std::string& order = "fixed") {
  EngineOptions options;
  options.strategy = strategy;
  options.order = order;
  options.device = "emulated";
  options.threads = 2;
  options.secret = RefereeScenario::kSecret;
  return options;
}

OpenedDevice open_with(std::span<const Strategy* const> strategies) {
  return open_emulated(std::make_unique<EmulatedDevice>(), strategies);
}

// Runs batches that are large enough for each strategy that `auto` may choose. All are right.
void expect_right_batches(std::unique_ptr<Engine> engine, RefereeScenario* scenario) {
  scenario->engine = std::move(engine);
  for (int batch = 0; batch < 12; ++batch) {
    for (int i = 0; i < 1100; ++i) {
      scenario->builder.begin();
      scenario->builder.op(OpKind::add, scenario->builder.key("k" + std::to_string(i % 300)), Operand::integer, i);
      scenario->builder.end();
    }
    scenario->execute();
    EXPECT_EQ(scenario->check(referee_mode(scenario->engine->execution())).message(), "");
    scenario->next_batch();
  }
}

TEST(a_named_strategy_without_kernels_runs_on_the_cpu) {
  const std::vector<const Strategy*> others = {find_strategy("ordered"), find_strategy("kilo")};
  for (const char* name : {"prstm", "local"}) {
    auto engine = create_engine_on(options_of(name), open_with(others));
    ASSERT_TRUE(engine.ok());
    const EngineDevice device = (*engine)->device();
    EXPECT_EQ(device.name, "cpu");
    EXPECT_EQ(device.reason,
              std::string(name) + " runs on the CPU: this build has no kernels of it for the device emulated");
    RefereeScenario scenario;
    expect_right_batches(std::move(*engine), &scenario);
    EXPECT_EQ(std::string(scenario.engine->execution().strategy), name);
    EXPECT_FALSE(scenario.engine->execution().on_device);
  }
}

TEST(auto_leaves_out_strategies_without_kernels) {
  const std::vector<const Strategy*> some = {find_strategy("ordered"), find_strategy("kilo")};
  auto engine = create_engine_on(options_of("auto", "any"), open_with(some));
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ((*engine)->device().name, "emulated");
  EXPECT_EQ((*engine)->device().reason, "");
  RefereeScenario scenario;
  expect_right_batches(std::move(*engine), &scenario);
  const std::string choice = scenario.engine->stats().strategy_choice;
  EXPECT_TRUE(choice.find("kilo") != std::string::npos);
  EXPECT_TRUE(choice.find("prstm") == std::string::npos);
}
TEST(auto_runs_on_the_cpu_if_no_strategy_has_kernels) {
  auto engine = create_engine_on(options_of("auto"), open_with({}));
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ((*engine)->device().name, "cpu");
  EXPECT_EQ((*engine)->device().reason,
            "auto runs on the CPU: this build has no kernels of it for the device emulated");
  RefereeScenario scenario;
  expect_right_batches(std::move(*engine), &scenario);
}

TEST(every_strategy_of_the_product_runs_on_the_emulated_device) {
  for (const Strategy* strategy : all_strategies()) {
    auto engine = Engine::create(options_of(strategy->name));
    ASSERT_TRUE(engine.ok());
    const bool in_place = strategy->make_host == nullptr;
    EXPECT_EQ((*engine)->device().name, in_place ? "cpu" : "emulated");
    EXPECT_EQ((*engine)->device().reason, in_place ? std::string(strategy->name) + " runs on the CPU" : std::string());
  }
}

TEST(each_part_of_a_batch_on_a_device_is_measured) {
  auto engine = create_engine_on(options_of("ordered"), open_with(all_strategies()));
  ASSERT_TRUE(engine.ok());
  RefereeScenario scenario;
  expect_right_batches(std::move(*engine), &scenario);
  const ExecutionReport& report = scenario.engine->execution();
  EXPECT_TRUE(report.on_device);
  EXPECT_TRUE(report.sent_bytes > 0);
  EXPECT_TRUE(report.returned_bytes > 0);
  EXPECT_TRUE(report.sent_seconds > 0);
  EXPECT_TRUE(report.kernel_seconds > 0);
  EXPECT_TRUE(report.returned_seconds > 0);
}

class SaysCuda final : public EmulatedDevice {
 public:
  SaysCuda() { info_.kind = "cuda"; }
  const DeviceInfo& info() const override { return info_; }

 private:
  DeviceInfo info_ = EmulatedDevice::info();
};

StatusCode create_local(std::unique_ptr<EmulatedDevice> device, const char* blocks, bool allow_unproven) {
  EngineOptions options = options_of("local");
  options.settings["stage-blocks"] = blocks;
  options.allow_unproven = allow_unproven;
  auto engine = create_engine_on(options, open_emulated(std::move(device)));
  if (!engine.ok()) {
    const std::string message = engine.status().message();
    EXPECT_TRUE(message.find("--stage-blocks") != std::string::npos);
    EXPECT_TRUE(message.find("docs/gpu.md") != std::string::npos);
  }
  return engine.status().code();
}

TEST(a_stage_in_several_blocks_is_refused_on_a_cuda_device) {
  for (const char* blocks : {"2", "4", "8"}) {
    EXPECT_EQ(create_local(std::make_unique<SaysCuda>(), blocks, false), StatusCode::invalid_argument);
    EXPECT_EQ(create_local(std::make_unique<SaysCuda>(), blocks, true), StatusCode::ok);
    EXPECT_EQ(create_local(std::make_unique<EmulatedDevice>(), blocks, false), StatusCode::ok);
  }
  EXPECT_EQ(create_local(std::make_unique<SaysCuda>(), "1", false), StatusCode::ok);
}

}  // namespace
}  // namespace kilokv::engine
