// What one run of the load tester does. Filled by options.cpp, which validates it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/workloads/workload.hpp"
#include "kilokv/client.hpp"

namespace kilokv::bench {

struct RunOptions {
  client::ClientOptions server;  // where it is, and how long to wait for it
  engine::WorkloadOptions workload;
  std::uint32_t batch_size = 1024;  // transactions of a request
  std::uint32_t connections = 1;    // one session on each
  std::uint32_t in_flight = 4;      // requests, on each connection
  double rate_per_s = 0;            // transactions, of all connections together; 0: closed loop
  std::int64_t duration_us = 10'000'000;
  std::int64_t warmup_us = 1'000'000;
  std::int64_t give_up_after_us = 60'000'000;
  client::Encoding encoding = client::Encoding::columns;
  bool unary = false;  // one transaction a call, no session
  bool load = true;    // the initial records that are not there
  std::string history_path;
};

// Flags that not every workload knows.
enum class WorkloadFlag { distribution, wait_share, wait_timeout, pair_order, read_only_share, value_size };
bool uses(const std::string& workload, WorkloadFlag flag);

}  // namespace kilokv::bench
