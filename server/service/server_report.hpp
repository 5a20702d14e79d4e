// The state of the whole server, as the call Status, the page /status and the metrics show it. One function makes it
// (KiloKvService::report()), so that they never differ. Thread safety: plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "server/core/database_status.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

struct ServerReport {
  bool has_database = false;  // false: the server recovers, and everything of `database` but its state is 0
  DatabaseStatus database;
  std::vector<MemoryOwner> memory;  // of all parts of the server
  std::uint64_t memory_sum = 0, memory_limit = 0, resident_bytes = 0;
  std::uint64_t logins_refused = 0;
  std::uint64_t clients = 0;  // that have open calls
  std::uint32_t connections = 0;
  bool is_ready = false;  // new requests are accepted
  bool is_insecure = false;
  double uptime_seconds = 0;
};

}  // namespace kilokv::server
