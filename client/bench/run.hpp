// One run of the load tester. It connects, loads missing records, sends load for a while, waits until every outcome is
// known, and checks that the workload allows the state. Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client/bench/cpu_use.hpp"
#include "client/bench/loader.hpp"
#include "client/bench/run_options.hpp"
#include "client/bench/sampler.hpp"
#include "client/bench/state_check.hpp"
#include "client/bench/tally.hpp"

namespace kilokv::bench {

struct RunReport {
  RunOptions options;
  std::uint32_t repeat = 1;  // which run with these options it is
  client::ServerStatus server;
  LoadReport load;
  std::int64_t measured_us = 0;  // between warm-up and the end
  Tally measured;
  CpuUse cpu;             // of the measured part
  ServerBatches batches;  // of the whole run
  std::vector<Sample> samples;
  Counts whole;            // with the warm-up, and with what was still in flight at the end
  int interrupted_by = 0;  // the signal that ended it early; 0: none
  bool checked = false;    // whether `state` was read: the server may be gone at the end
  StateReport state;
  std::string failure;  // empty: all was answered, and the invariant holds
};

using ProgressLine = std::function<void(const std::string&)>;

// Runs. An interrupt (interrupt.hpp) ends the load early; the check and the rest still run. An Error means that the run
// did not start. A run that ended badly is a report with a failure.
client::Expected<RunReport> run(const RunOptions& options, const ProgressLine& progress);

}  // namespace kilokv::bench
