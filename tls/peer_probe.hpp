// Finds out whether a server speaks TLS. After a failure, a client without TLS asks this: gRPC only tells it that the
// connection was closed.
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <string>

namespace kilokv::tls {

// Connects to HOST:PORT, and begins a handshake. True if the answer is one of TLS. Takes at most `patience`, and the
// time to resolve the name. Sends nothing after the handshake.
bool speaks_tls(const std::string& endpoint, std::chrono::milliseconds patience);

}  // namespace kilokv::tls
