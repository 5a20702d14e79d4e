// Measures interactive transactions with large read sets on the engine. A read set is checked guard by guard, ahead by
// one thread, or ahead by two sides (engine/exec/validate/cooperative_validator). These take turns, with and without a
// stale read. The measures follow figures 7, 10 and 11 of the validation paper: reads validated a second, by size of
// the read set and by threads, and commits a second.
//
// A transaction reads that many records, each once and drawn at random, and writes one more. Only execute() is timed.
// In the runs with a conflict each transaction has one stale read, at a random place. On each engine and at each size,
// both kinds (with and without conflict) are first compared with the engine that checks guard by guard: results and
// state.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/bench/flags.hpp"

namespace kilokv::engine::bench {

struct ValidateOptions {
  std::vector<std::uint64_t> reads = {10, 1000, 10'000, 30'000, 100'000, 250'000, 1'000'000};
  std::uint64_t records = 1'000'000;
  std::vector<std::uint64_t> threads;  // of two sides on the host; empty: one for each core, at least 2
  std::string device = "cpu";
  std::string lanes = "coalesced";
  std::uint64_t repeats = 5;
  double duration_seconds = 0.2;
  std::uint64_t seed = 1;
  std::string json;  // file; -: the standard output; empty: no document
  bool help = false;
};

std::vector<Flag> validate_flags(ValidateOptions* options);
// Fills in what was not given. Errors: INVALID_ARGUMENT for values that do not go together.
Status complete(ValidateOptions* options);

struct ValidatePoint {
  std::uint64_t reads = 0;
  bool conflict = false;
  std::string validation;                       // a name as in EngineOptions
  std::uint64_t threads = 1;                    // of the host
  std::string ran_on;                           // cpu, cuda or emulated
  std::string choice;                           // what the engine says about its choice
  std::vector<double> transactions_per_second;  // of each repeat
  std::vector<double> reads_per_second;         // up to the first stale one
  std::vector<double> ratios;                   // to one thread alone in the same repeat; empty: this is that thread
  double share_beside = 0;                      // share of the reads that the calling thread did not check
  std::uint64_t transactions = 0;
};

// `started` is called once, when all engines were made. Errors: INTERNAL where two engines differ; UNAVAILABLE where
// the device is not there, or was given up.
Result<std::vector<ValidatePoint>> measure_validation(const ValidateOptions& options,
                                                      const std::function<void()>& started,
                                                      const std::function<void(const ValidatePoint&)>& progress);

}  // namespace kilokv::engine::bench
