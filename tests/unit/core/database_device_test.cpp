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
    ++report.devices_lost;
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
  EXPECT_EQ(status.batches_parallel, 1u);
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

// The batch before the one that lost it ran on the CPU, too.
TEST_F(DatabaseDevice, ALossAfterBatchesOnTheCpuIsToldOfAtOnce) {
  device.report.on_device = false;
  run(add("a", 1));
  device.lose();
  run(add("a", 1));  // no time passes
  EXPECT_EQ(lost, std::vector<std::string>{"out of order"});
  EXPECT_EQ(database->status().device.name, "cpu");
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

// A server on the emulated device, whose call number `failing` fails: every batch is checked, whatever ran it.
class FailingDevice : public CoreFixture {
 protected:
  FailingDevice() {
    device_name = "emulated";
    strategy = "ordered";
    options.shadow_rate = 1;
    device_fails = [this] { return ++calls == failing; };
    events.device_lost = [this](const engine::EngineDevice&) { ++lost; };
  }

  // Requests of a session, one transaction after the other and some together; a withdrawal that waits for its deposit.
  void serve() {
    const SessionId session = open_session();
    for (std::uint64_t number = 1; number <= 6; ++number) {
      sinks.push_back(run(add("account" + std::to_string(number % 3), 10), session, number));
    }
    sinks.push_back(submit(withdraw("account0", 500, 1'000'000'000), session, 7));
    settle();
    for (std::uint64_t number = 8; number <= 40; ++number) {
      sinks.push_back(submit(add("account" + std::to_string(number % 3), 100), session, number));
    }
    settle();
  }
  void expect_all() {
    for (const auto& sink : sinks) {
      EXPECT_TRUE(sink->done);
      EXPECT_EQ(sink->outcome(0), engine::Outcome::committed);
    }
    expect_books();
    reopen();  // what the log says
    expect_books();
  }
  void expect_books() {
    EXPECT_EQ(integer("account0"), 2 * 10 + 11 * 100 - 500);
    EXPECT_EQ(integer("account1"), 2 * 10 + 11 * 100);
    EXPECT_EQ(integer("account2"), 2 * 10 + 11 * 100);
  }

  std::vector<std::shared_ptr<RecordingSink>> sinks;
  std::uint64_t calls = 0, failing = 0, lost = 0;
};

TEST_F(FailingDevice, AnErrorAtAnyCallLosesNothing) {
  serve();
  EXPECT_EQ(database->status().device.name, "emulated");
  EXPECT_GT(database->status().batches_on_device, 5u);
  EXPECT_EQ(database->status().batches_parallel, 0u);
  const std::uint64_t all_calls = calls;
  ASSERT_GT(all_calls, 60u);
  expect_all();
  for (failing = 1; failing <= all_calls && !HasFailure(); ++failing) {
    SCOPED_TRACE("call " + std::to_string(failing));
    database.reset();
    log = {};
    sinks.clear();
    calls = lost = 0;
    open();
    const bool lost_at_start = calls >= failing;
    serve();
    EXPECT_FALSE(fatal) << fatal->message();
    EXPECT_EQ(lost, lost_at_start ? 0u : 1u);
    EXPECT_EQ(database->status().device.name, "cpu");
    EXPECT_EQ(database->status().shadow_batches, database->status().batches);
    expect_all();
  }
}

}  // namespace
}  // namespace kilokv::server
