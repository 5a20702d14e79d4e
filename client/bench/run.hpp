// One run of the load tester: connect, load what is missing, drive load for a while, wait until nothing is unknown,
// check that the state is one that the workload may leave.
#pragma once

#include <functional>
#include <string>

#include "client/bench/loader.hpp"
#include "client/bench/run_options.hpp"
#include "client/bench/state_check.hpp"
#include "client/bench/tally.hpp"

namespace kilokv::bench {

struct RunReport {
  RunOptions options;
  client::ServerStatus server;
  LoadReport load;
  std::int64_t measured_us = 0;  // between warm-up and the end
  Tally measured;
  Counts whole;            // warm-up and what was still in flight at the end included
  int interrupted_by = 0;  // the signal that ended it early; 0: none
  bool checked = false;    // whether `state` was read: the end may come when the server has gone
  StateReport state;
  std::string failure;  // empty: all was answered, and the invariant holds
};

using ProgressLine = std::function<void(const std::string&)>;

// An interrupt (interrupt.hpp) ends the load early; the rest, the check among it, is as ever.
// An Error: it did not come to a run. A run that ended badly is a report with a failure.
client::Expected<RunReport> run(const RunOptions& options, const ProgressLine& progress);

}  // namespace kilokv::bench
