// `ordered` in the simulator (sim/sim_platform.hpp), for tests: each batch runs under a schedule. If the simulator ends
// a run with an error, the run fails as on a device. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/ordered_host.hpp"
#include "engine/sim/sim_platform.hpp"
#include "engine/stm/ordered.hpp"

namespace kilokv::engine {

// The settings of an executor's runs, and the report of the last one. Its owner keeps it longer than the executor.
struct SimRuns {
  GridShape shape;
  OrderedTuning tuning;
  FirstEpochs first_epochs;
  Schedule schedule;  // of the next run
  RunReport report;   // of the last run
};

template <std::uint32_t Width, class Rules = OrderedRules>
class OrderedSim final : public Executor {
 public:
  // Requires: groups of Width in runs->shape.
  explicit OrderedSim(SimRuns* runs) : runs_(*runs), lanes_(runs->shape), batches_(runs->first_epochs) {}

  std::vector<std::string> strategies() const override { return {"ordered"}; }
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override {
    const OrderedArguments<HostSpace>& arguments =
        batches_.open(batch, runs_.tuning, runs_.shape.threads(), records, results);
    runs_.report = lanes_.run(runs_.schedule, [&](std::uint32_t lane) {
      SimPlatformOf<Width> platform(&lanes_, lane);
      OrderedRun<SimPlatformOf<Width>, Rules>(platform, arguments).run();
    });
    if (!runs_.report.status.ok()) return runs_.report.status;
    Status status = batches_.close(results, report);
    report->on_device = false;
    return status;
  }
  const DeviceInfo* device() const override { return &info_; }
  std::size_t memory_bytes() const override { return batches_.memory_bytes(); }

 private:
  SimRuns& runs_;
  DeviceInfo info_{"simulator", "lanes", 1, 0};
  Lanes lanes_;
  OrderedBatches batches_;
};

}  // namespace kilokv::engine
