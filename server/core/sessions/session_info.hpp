// Sessions as people see them. Thread safety: plain data.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/types.hpp"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

struct SessionInfo {
  SessionId id;      // a secret: nobody is shown more than its begin
  std::string user;  // who opened it; empty: opened without a login
  DurationUs lease_us = 0;
  DurationUs left_us = 0;  // of the lease; below 0: it is over, and requests in flight keep the session alive
  std::uint64_t holder = 0;
  std::uint64_t acknowledged_through = 0;
  std::uint64_t requests = 0;                          // that are not acknowledged
  std::uint32_t in_flight = 0;                         // of them: queued, parked or running
  std::uint64_t uploads = 0;                           // read sets that are not committed yet
  std::uint64_t stored_bytes = 0, reserved_bytes = 0;  // of results, and for results to come

  std::uint64_t bytes() const { return stored_bytes + reserved_bytes; }
};

}  // namespace kilokv::server
