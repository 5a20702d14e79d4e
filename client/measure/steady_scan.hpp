// A scan at one batch boundary that outlasts restarts of the server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kilokv/client.hpp"

namespace kilokv::bench {

// Visits all pairs of [from, to); `to` empty: no upper bound. A restart takes the boundary away: then it calls
// `restart` and visits everything again, at a newer boundary, for as long as `give_up_after_us`. `restart` is called
// before the first visit, too.
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
