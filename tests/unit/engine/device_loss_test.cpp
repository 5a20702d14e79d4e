// A device that fails costs nothing, at whichever of its calls it fails. The current batch runs on the CPU. Every
// batch's results, and the state at the end, equal those of the referee.

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "engine/engine_for_tests.hpp"
#include "engine/exec/device/device_executor.hpp"
#include "engine/exec/device/emulated_kernels.hpp"
#include "engine/workloads/workload.hpp"
#include "tests/unit/engine/harness.hpp"
#include "tests/unit/engine/referee/referee_scenario.hpp"

namespace kilokv::engine {
namespace {

constexpr std::uint64_t kBatches = 6;

struct Chain {
  std::uint64_t device_batches = 0, calls = 0;
  EngineDevice device;
};

// Random batches without ranges on a device with these options.
Chain run_chain(const EmulatedDeviceOptions& options) {
  Chain chain;
  OpenedDevice opened = open_emulated(options);
  const auto* const device = static_cast<const EmulatedDevice*>(opened.device.get());
  EngineOptions engine_options;
  engine_options.strategy = "ordered";
  engine_options.threads = 1;
  engine_options.secret = RefereeScenario::kSecret;
  RefereeScenario scenario;
  scenario.engine = create_engine_with(engine_options, std::make_unique<DeviceExecutor>(std::move(opened)));
  WorkloadOptions workload_options;
  workload_options.name = "mixed";
  workload_options.keys = 12;
  workload_options.mixed.ranges = false;
  auto workload = Workload::create(workload_options);
  scenario.header.first_version = 2;
  for (std::uint64_t i = 0; i < kBatches; ++i) {
    // Small ones, then one that makes all memory grow.
    workload->generate(&scenario.builder, i == 3 ? 900 : 20);
    scenario.execute();
    chain.device_batches += scenario.engine->execution().on_device ? 1 : 0;
    ModelState after;
    Status status = scenario.check(RefereeMode::deterministic, &after);
    if (status.ok()) status = check_state(after, *scenario.engine);
    if (!status.ok()) FAIL(status.message());
    chain.device = scenario.engine->device();
    if (chain.device.name == "emulated") chain.calls = device->calls();
    scenario.next_batch();
  }
  return chain;
}

TEST(a_device_that_fails_at_any_call_costs_nothing) {
  const Chain whole = run_chain({});
  EXPECT_EQ(whole.device_batches, kBatches);
  EXPECT_EQ(whole.device.name, "emulated");
  EXPECT_EQ(whole.device.reason, "");
  EXPECT_TRUE(whole.calls > 40);
  std::uint64_t runs = 0;
  for (const InjectedError error : {InjectedError::exhausted, InjectedError::lost, InjectedError::asynchronous}) {
    for (std::uint64_t call = 1; call <= whole.calls; ++call, ++runs) {
      EmulatedDeviceOptions options;
      options.fail_at_call = call;
      options.fail_as = error;
      const Chain chain = run_chain(options);
      EXPECT_TRUE(chain.device_batches < kBatches);
      // Without memory for one batch, a device goes on with the next.
      const bool goes_on = error == InjectedError::exhausted && chain.device.name == "emulated";
      EXPECT_EQ(chain.device.name, goes_on ? "emulated" : "cpu");
      EXPECT_EQ(chain.device.reason.empty(), goes_on);
      if (goes_on) EXPECT_EQ(chain.device_batches, kBatches - 1);
      if (kilokv::test::has_failed()) return FAIL("call " + std::to_string(call));
    }
  }
  std::printf("  %llu chains, one for each call and kind of error\n", static_cast<unsigned long long>(runs));
}

}  // namespace
}  // namespace kilokv::engine
