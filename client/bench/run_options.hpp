// The options of one run of the load tester. options.cpp fills and validates them. Thread safety: plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/workloads/workload.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bench {

struct RunOptions {
  client::ClientOptions server;  // where the server is, and how long to wait for it
  engine::WorkloadOptions workload;
  std::uint32_t batch_size = 1024;  // transactions in a request
  std::uint32_t connections = 1;    // one session on each
  std::uint32_t in_flight = 4;      // requests, on each connection
  double rate_per_s = 0;            // transactions per second, of all connections together; 0: closed loop
  std::int64_t duration_us = 10'000'000;
  std::int64_t warmup_us = 1'000'000;
  std::int64_t give_up_after_us = 60'000'000;
  client::Encoding encoding = client::Encoding::columns;
  bool unary = false;  // one transaction in a call, no session
  // --batch-max-transactions of the server, if this program has started it with that flag; 0: it is not known.
  std::uint32_t server_batch_max = 0;
  bool reset = false;  // delete the keys of the workload before the load
  bool load = true;    // write the initial records that are not there
  std::string history_path;
};

// Flags that only some workloads know.
enum class WorkloadFlag { distribution, wait_share, wait_timeout, pair_order, read_only_share, value_size };
bool uses(const std::string& workload, WorkloadFlag flag);

}  // namespace kilokv::bench
