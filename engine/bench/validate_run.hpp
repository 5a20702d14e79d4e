// Measures interactive transactions with large read sets on the engine: guard by guard, checked ahead by one thread,
// and checked by two sides (engine/exec/validate/cooperative_validator), by turns, with and without a read that is
// stale. After the figures 7, 10 and 11 of the validation paper: reads validated a second, by size of the read set and
// by threads, and commits a second.
//
// A transaction reads that many records, each once, drawn at random, and writes one more. What is timed is execute()
// alone. In the runs with a conflict each transaction has one stale read, at a random place. On each engine, and at
// each size, both kinds are first compared with the engine that goes guard by guard: results and state.
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
  std::vector<std::uint64_t> threads;  // of two sides on the host; empty: one for each core, 2 at least
  std::string device = "cpu";
  std::string lanes = "coalesced";
  std::uint64_t repeats = 5;
  double duration_seconds = 0.2;
  std::uint64_t seed = 1;
  std::string json;  // file; -: the standard output; empty: none
  bool help = false;
};

std::vector<Flag> validate_flags(ValidateOptions* options);
// Fills in what was not given. INVALID_ARGUMENT for what does not go together.
Status complete(ValidateOptions* options);

struct ValidatePoint {
  std::uint64_t reads = 0;
  bool conflict = false;
  std::string validation;                       // as EngineOptions has it
  std::uint64_t threads = 1;                    // of the host
  std::string ran_on;                           // cpu, cuda or emulated
  std::string choice;                           // as the engine tells
  std::vector<double> transactions_per_second;  // of each repeat
  std::vector<double> reads_per_second;         // up to the first stale one
  std::vector<double> ratios;                   // to one thread alone in the same repeat; empty: it is that one
  double share_beside = 0;                      // of the reads: not looked at by the calling thread
  std::uint64_t transactions = 0;
};

// `started` is called once, when all engines are there. Errors: INTERNAL where two engines differ; UNAVAILABLE: the
// device is not there, or was given up.
Result<std::vector<ValidatePoint>> measure_validation(const ValidateOptions& options,
                                                      const std::function<void()>& started,
                                                      const std::function<void(const ValidatePoint&)>& progress);

}  // namespace kilokv::engine::bench
