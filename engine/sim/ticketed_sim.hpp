// The strategies with tickets in the simulator (sim/sim_platform.hpp), for tests: each batch runs under a schedule. If
// the simulator ends a run with an error, the run fails as on a device. Thread safety: none.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/exec/papers/local_inputs.hpp"
#include "engine/exec/papers/ticketed_inputs.hpp"
#include "engine/exec/run/executor.hpp"
#include "engine/exec/run/host_columns.hpp"
#include "engine/sim/sim_platform.hpp"
#include "engine/stm/papers/kilo_arguments.hpp"
#include "engine/stm/papers/ticketed.hpp"

namespace kilokv::engine {

// The tuning of any of these strategies.
struct SimTuning : TicketedTuning {
  KiloTuning kilo;
  LocalTuning local;
};

// The settings of an executor's runs, and the results of the last one. Its owner keeps it longer than the executor.
struct TicketedSimRuns {
  GridShape shape;
  SimTuning tuning;
  Schedule schedule;  // of the next run
  // The results of the last run. first_conflicts: how often the first transaction ended in a conflict, up to 255.
  RunReport report;
  std::uint32_t first_conflicts = 0;
  std::vector<std::uint64_t> lock_words;  // as the run left them
};

// Protocol: a protocol over SimPlatformOf<Width>.
template <std::uint32_t Width, class Protocol>
class TicketedSim final : public Executor {
 public:
  using Arguments = typename Protocol::Arguments;

  // Requires: groups of Width in runs->shape.
  explicit TicketedSim(TicketedSimRuns* runs) : runs_(*runs), lanes_(runs->shape) {}

  std::vector<std::string> strategies() const override { return {"simulated"}; }
  Status run(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results,
             ExecutionReport* report) override {
    arguments_ = {};
    arguments_.tuning = static_cast<const TicketedTuning&>(runs_.tuning);
    if constexpr (requires { arguments_.kilo_tuning; }) arguments_.kilo_tuning = runs_.tuning.kilo;
    if constexpr (requires { arguments_.local_tuning; }) arguments_.local_tuning = runs_.tuning.local;
    const BatchShape shape = open(batch, records, results);
    columns_.bind(shape, &arguments_);
    runs_.report = lanes_.run(runs_.schedule, [this](std::uint32_t lane) {
      SimPlatformOf<Width> platform(&lanes_, lane);
      TicketedRun<SimPlatformOf<Width>, Protocol>(platform, arguments_).run();
    });
    runs_.first_conflicts = arguments_.tries[0];
    const std::size_t words = lock_words_of(records->size(), runs_.tuning.records_per_lock);
    runs_.lock_words.assign(arguments_.locks, arguments_.locks + words);
    if (!runs_.report.status.ok()) return runs_.report.status;
    report_ticketed("simulated", arguments_, shape, results, report);
    inputs_.close(arguments_, report);
    report->on_device = false;
    if (results->passes > 0) return {};
    return Status(StatusCode::internal, "given up: no thread got on");
  }
  const DeviceInfo* device() const override { return &info_; }
  std::size_t memory_bytes() const override { return inputs_.memory_bytes() + columns_.memory_bytes(); }

 private:
  BatchShape open(const ResolvedBatch& batch, BatchRecords* records, BatchResults* results) {
    const BatchThreads threads = runs_.shape.threads();
    if constexpr (requires { Protocol::kHasStage; }) {
      const std::uint32_t parts = runs_.tuning.local.stage_blocks, blocks = std::min(parts, runs_.shape.blocks);
      return inputs_.open(batch, threads, records, results, &arguments_, blocks * runs_.shape.block_threads,
                          static_cast<std::uint32_t>(std::countr_zero(parts)));
    } else {
      return inputs_.open(batch, threads, records, results, &arguments_);
    }
  }

  TicketedSimRuns& runs_;
  DeviceInfo info_{"simulator", "lanes", 1, 0};
  Lanes lanes_;
  TicketedInputs<Arguments> inputs_;
  HostColumns columns_;
  Arguments arguments_;  // of the run
};

}  // namespace kilokv::engine
