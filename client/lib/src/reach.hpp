// The first call to a server: is there one, and does it serve?
#pragma once

#include <string>

#include "client/lib/src/connection.hpp"

namespace kilokv::client {

const char* state_name(v1::ServerSection::State state);

// INVALID_ARGUMENT: it is not HOST:PORT.
Error check_endpoint(const std::string& endpoint);

// With wait_for_server_us, waits until the server is ready. Otherwise accepts any KiloKV server that answers, in any
// state.
Error reach_server(Connection* connection);

}  // namespace kilokv::client
