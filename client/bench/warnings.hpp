// What may make the numbers of a run say less about the server than a reader expects. Each warning has a bound, which
// docs/load-tester.md names. Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "client/bench/run.hpp"

namespace kilokv::bench {

struct Warning {
  std::string code;  // client_cpu, in_flight, not_filled, machine_busy
  std::string text;  // a sentence without its point

  friend bool operator==(const Warning&, const Warning&) = default;
};

// The bounds.
inline constexpr double kClientShareMax = 0.8;    // of its processors
inline constexpr double kThreadShareMax = 0.9;    // of one processor
inline constexpr double kIdleShareMin = 0.05;     // of the machine that client and server share
inline constexpr double kClientBesideMax = 0.25;  // of that machine, if less than kIdleShareMin is idle
inline constexpr double kFullShareMax = 0.9;      // open loop: of the time
inline constexpr double kFilledShareLimit = 0.9;  // closed loop: from here on, the number in flight may be the limit
inline constexpr double kIdleShareLimit = 0.3;    // and it is, if this share of the machine is idle
inline constexpr double kFilledShareMin = 0.7;    // closed loop: below, the load tester was too slow
inline constexpr double kForeignShareMax = 0.1;   // of the machine: other processes and steal time

// The share of the transactions that may be in flight which were in flight, on average: rate x mean latency, by
// Little's law. 0 in an open loop, and if nothing was measured.
double filled_share(const RunReport& report);
// Open loop: the share of the time in which a request was due, and all were in flight. 0 in a closed loop.
double full_share(const RunReport& report);

std::vector<Warning> warnings_of(const RunReport& report);

// For several runs: each warning once, with the number of runs that have it if there are several runs.
std::vector<std::string> merged_warnings(const std::vector<RunReport>& reports);

}  // namespace kilokv::bench
