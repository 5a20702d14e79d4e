// The first call to a server: is there one, and does it serve?
#pragma once

#include <memory>
#include <string>

#include "client/lib/src/connection.hpp"
#include "client/lib/src/security.hpp"

namespace kilokv::client {

const char* state_name(v1::ServerSection::State state);

// INVALID_ARGUMENT: it is not HOST:PORT.
Error check_endpoint(const std::string& endpoint);

// With wait_for_server_us, waits until the server is ready. Otherwise accepts any KiloKV server that answers, in any
// state.
Error reach_server(Connection* connection);

// Makes a client of this kind, and reaches its server. `Remote` is made from the options and the credentials, and has
// reach().
template <class Remote, class Interface>
Expected<std::unique_ptr<Interface>> connect_as(const ClientOptions& options) {
  if (Error error = check_endpoint(options.endpoint)) return error;
  const auto credentials = channel_credentials(options);
  if (!credentials) return credentials.error();
  auto remote = std::make_unique<Remote>(options, *credentials);
  if (Error error = remote->reach()) return error;
  return std::unique_ptr<Interface>(std::move(remote));
}

}  // namespace kilokv::client
