// A scan at one batch boundary that survives restarts of the server. Thread safety: that of the client.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kilokv/client.hpp"

namespace kilokv::bench {

// Visits all pairs of [from, to). An empty `to` means no upper bound. A restart of the server drops the boundary. The
// scan then visits everything again, at a newer boundary, for at most `give_up_after_us`. It calls `restart` before
// each visit of everything, also before the first.
client::Expected<client::ScanPosition> scan_steadily(client::Client* client, std::string_view from, std::string_view to,
                                                     const std::function<void()>& restart,
                                                     const std::function<void(const client::Pair&)>& visit,
                                                     std::int64_t give_up_after_us);

inline client::Error make_error(client::ErrorCode code, std::string message) {
  client::Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

}  // namespace kilokv::bench
