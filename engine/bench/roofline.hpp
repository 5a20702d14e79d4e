// Measures what a CUDA device can do at most, with nothing of the engine on it: random access, atomics, copies,
// launches and barriers. The engine's results are compared with these numbers.
//
// Each measure runs once to warm up, and then `repetitions` times. Random access visits every record of a table once,
// in an order that the seed chooses. No record is visited twice, so hot addresses have measures of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/exec/device/cuda_kernels.hpp"

namespace kilokv::engine::bench {

struct RooflineOptions {
  std::uint64_t table_bytes_max = std::uint64_t{4} << 30;  // reduced to what is free, and to a power of two
  std::uint64_t repetitions = 7;
  std::uint64_t seed = 1;
};

struct RooflineDevice {
  std::string model;
  std::string capability;  // such as 9.0
  std::string driver;      // the line that the kernel module prints, or "unknown"
  std::string driver_cuda;
  std::string runtime_cuda;
  std::uint64_t multiprocessors = 0;
  std::uint64_t clock_mhz = 0, memory_clock_mhz = 0;  // the highest
  std::uint64_t memory_bytes = 0, memory_free_bytes = 0;
  std::uint64_t l2_bytes = 0;
};

struct RooflineMeasure {
  std::string name;
  std::string unit;
  std::string what;             // what is measured
  std::vector<double> samples;  // one for each repetition, ascending
  double minimum() const { return samples.front(); }
  double maximum() const { return samples.back(); }
  double median() const;
};

struct RooflineReport {
  RooflineDevice device;
  std::uint64_t table_bytes = 0;
  std::vector<RooflineMeasure> measures;
  std::vector<KernelFacts> kernels;  // the engine's kernels
};

// Errors: UNAVAILABLE if there is no device; INTERNAL, which names the call, for errors of CUDA.
Result<RooflineReport> measure_roofline(const RooflineOptions& options);

}  // namespace kilokv::engine::bench
