// Attaching to a session, and the list of the requests that the server knows of it. Thread safety: free functions
// without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/session_state.hpp"
#include "kilokv/client.hpp"

namespace kilokv::client {

struct Attached {
  SessionIdentity identity;
  std::vector<KnownRequest> requests;
  bool frozen = false;
  std::string incarnation;  // 16 bytes
};

// Attaches to the session `id`. The numbers up to `numbers_used` count as those of earlier holders, and so do all that
// the server knows.
Expected<Attached> attach(Connection* connection, const std::string& id, std::uint64_t numbers_used,
                          TimePoint deadline);

// Lists for a holder other than 0. Errors: failed_precondition for holder 0.
Expected<std::vector<KnownRequest>> list_requests(Connection* connection, const std::string& id, std::uint64_t holder,
                                                  TimePoint deadline);

}  // namespace kilokv::client
