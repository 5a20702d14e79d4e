// `kilokv-bench tune`: measures several batch sizes in rounds, and recommends one. A round runs each size once, in an
// order of its own, because the speed of a machine drifts. Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/bench/run.hpp"
#include "client/bench/tune_choice.hpp"

namespace kilokv::bench {

struct TuneOptions {
  std::vector<RunOptions> points;  // one for each size, ascending
  bool varies_server = false;      // --batch-max-transactions of the own server, instead of --batch-size
  std::uint32_t rounds = 5;
  std::int64_t p99_goal_us = 0;    // 0: none
  std::int64_t time_limit_us = 0;  // no run starts later than this after the begin; 0: as time_limit_of() says
  std::string server;              // path of the kilokvd to start; empty: the server of the points is used
};

std::uint32_t size_of(const TuneOptions& options, const RunOptions& point);
const char* size_flag(const TuneOptions& options);  // --batch-size or --batch-max-transactions

// How long all runs take if nothing is slow, and after what time no further run starts.
std::int64_t estimated_us(const TuneOptions& options);
std::int64_t time_limit_of(const TuneOptions& options);

struct TuneReport {
  TuneOptions options;
  std::vector<RunReport> runs;  // in the order in which they were made
  std::uint32_t rounds = 0;     // that are complete
  bool out_of_time = false;
  int interrupted_by = 0;
  std::string failure;  // of the run that ended badly, and with it the tune; empty: there is none
};

// The order of the points in a round: the same seed gives the same order.
std::vector<std::size_t> order_of_round(std::size_t points, std::uint64_t seed, std::uint32_t round);

// The results of the complete rounds, by size.
std::vector<SizeResults> results_by_size(const TuneReport& report);

// Measures. An interrupt ends it early. An Error means that a run could not be made. In each case, the tune's own
// server has ended, and its folder is removed.
client::Expected<TuneReport> tune(const TuneOptions& options, const ProgressLine& progress);

}  // namespace kilokv::bench
