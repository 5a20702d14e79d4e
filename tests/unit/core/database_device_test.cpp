// Where batches run, as the database tells it: in its status, and once when a device is lost.

#include <string>
#include <vector>

#include "tests/support/forwarding_engine.hpp"
#include "tests/unit/core/core_fixture.hpp"

namespace kilokv::server {
namespace {

// Runs on the CPU, and says otherwise, as the test wants it.
struct Device {
  engine::EngineDevice now{"emulated", "a model", ""};
  engine::ExecutionReport report{.strategy = "ordered", .on_device = true, .decided_by = {}};

  void lose() {
    now = {"cpu", "", "out of order"};
    report.on_device = false;
  }
};

class DeviceEngine : public ForwardingEngine {
 public:
  DeviceEngine(std::unique_ptr<engine::Engine> to, const Device* device)
      : ForwardingEngine(std::move(to)), device_(device) {}
  const engine::ExecutionReport& execution() const override { return device_->report; }
  engine::EngineDevice device() const override { return device_->now; }

 private:
  const Device* device_;
};

class DatabaseDevice : public CoreFixture {
 protected:
  DatabaseDevice() {
    wrap_engine = [this](std::unique_ptr<engine::Engine> engine) {
      return std::make_unique<DeviceEngine>(std::move(engine), &device);
    };
    events.device_lost = [this](const engine::EngineDevice& now) { lost.push_back(now.reason); };
  }

  Device device;
  std::vector<std::string> lost;
};

TEST_F(DatabaseDevice, BatchesAreCountedByWhatRanThem) {
  run(add("a", 1));
  device.report.on_device = false;
  run(add("a", 1));
  device.report.strategy = "serial";
  run(add("a", 1));
  run(add("a", 1));
  const DatabaseStatus status = database->status();
  EXPECT_EQ(status.batches_on_device, 1u);
  EXPECT_EQ(status.batches_ordered, 1u);
  EXPECT_EQ(status.batches_serial, 2u);
  EXPECT_EQ(status.batches, 4u);
  EXPECT_EQ(status.device.name, "emulated");
  EXPECT_EQ(status.device.model, "a model");
  EXPECT_TRUE(lost.empty());  // small batches may run on the CPU
}

TEST_F(DatabaseDevice, ALostDeviceIsToldOfOnce) {
  run(add("a", 1));
  device.lose();
  run(add("a", 1));  // no time passes
  EXPECT_EQ(lost, std::vector<std::string>{"out of order"});
  EXPECT_EQ(database->status().device.name, "cpu");
  EXPECT_EQ(database->status().device.reason, "out of order");
  run(add("a", 1));
  sim.scheduler.run_for(2000000);
  EXPECT_EQ(lost.size(), 1u);
}

// The batch before the one that lost it ran on the CPU, so that one tells nothing.
TEST_F(DatabaseDevice, ALossThatNoBatchShowsIsFoundAllTheSame) {
  device.report.on_device = false;
  run(add("a", 1));
  device.lose();
  sim.scheduler.run_for(2000000);
  EXPECT_EQ(lost.size(), 1u);
}

TEST_F(DatabaseDevice, AReasonFromTheStartIsNoLoss) {
  device.now = {"cpu", "", "no such device"};
  device.report.on_device = false;
  reopen();
  run(add("a", 1));
  sim.scheduler.run_for(2000000);
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(database->status().device.reason, "no such device");
}

}  // namespace
}  // namespace kilokv::server
