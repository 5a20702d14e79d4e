// Measures the host's part of a batch on a device, and compares it with `serial` on the same batches.
//
// Kernels and copies count as free. The device replays what an emulated device has returned before, untimed, for the
// same batches. If batches have byte values, the emulated device works while the host waits, untimed
// (recorded_device.hpp). What the host packs into the memory for copies, and what it does with the
// results, is measured. Both begin with the columns of a batch, and end with results, log columns, before-images, dirty
// marks and state hash. All of these are compared after each batch, untimed. No batch is used twice, and all batches
// and what the device returns are together larger than the last-level cache. The two take turns.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/bench/flags.hpp"
#include "engine/bench/recorded_device.hpp"
#include "engine/exec/run/stage_times.hpp"
#include "engine/workloads/workload.hpp"

namespace kilokv::engine::bench {

struct HostWorkOptions {
  std::string workload;  // empty: the rows of host_work_rows()
  std::uint64_t keys = 100'000;
  std::uint64_t batch_transactions = 65'536;
  std::uint64_t operations = 1;
  std::uint64_t payload_bytes = 100;
  std::uint64_t threads = 0;
  std::uint64_t repeats = 3;
  std::uint64_t seed = 1;
  std::uint64_t buffers_mib = 0;  // the least size of all buffers; 0: a tenth more than the last-level cache
  std::string json;               // file; -: the standard output; empty: no document
  bool help = false;
};

std::vector<Flag> host_work_flags(HostWorkOptions* options);

struct HostWorkRow {
  std::string workload;
  std::uint64_t keys, batch_transactions, operations, payload_bytes;
};
// What is measured: one row if a workload is named, else the rows for which the project has targets.
std::vector<HostWorkRow> host_work_rows(const HostWorkOptions& options);

// Processor time in nanoseconds for each transaction.
struct HostWorkTime {
  double all = 0;      // of all threads
  double longest = 0;  // of the thread that worked longest; with more than two threads an upper bound
};

struct HostWorkPoint {
  HostWorkRow row;
  std::uint64_t batches = 0, buffer_bytes = 0;
  bool is_live = false;  // the emulated device worked while the host waited; nothing was replayed
  // Each repeat gives one element: the median over its slices.
  std::vector<HostWorkTime> serial, host;
  std::vector<double> ratios;             // [repeat] all threads: host to serial
  StageTimes serial_stages, host_stages;  // of one more repeat, in which stages are measured
  std::uint64_t staged_transactions = 0;  // in that repeat
  DeviceCalls calls;                      // of the batches of one repeat
};

// Errors: INTERNAL where results or states differ.
Result<HostWorkPoint> measure_host_work(const HostWorkOptions& options, const HostWorkRow& row);

}  // namespace kilokv::engine::bench
