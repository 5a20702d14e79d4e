// Which server a client program talks to, and whether it waits for one that is not there yet: the flags --endpoint and
// --wait, and the environment variable KILOKV_ENDPOINT. The same in all programs.
#pragma once

#include <cstdint>
#include <string>

#include "client/command_line/cli11.hpp"
#include "kilokv/client.hpp"

namespace kilokv::client {

inline constexpr const char* kEndpointVariable = "KILOKV_ENDPOINT";
inline constexpr std::int64_t kDefaultWaitUs = 30'000'000;  // of a --wait without a duration

class ServerFlags {
 public:
  // Adds the flags to `app`. `wait_names`: where --wait means something else in a program, the names that it has there.
  explicit ServerFlags(CLI::App* app, const std::string& wait_names = "--wait,--wait-for-server");
  ServerFlags(const ServerFlags&) = delete;
  ServerFlags& operator=(const ServerFlags&) = delete;

  // Once the command line is read: writes the endpoint and how long to wait for the server. The endpoint is that of the
  // flag, else that of the variable if it is not empty, else 127.0.0.1:7070.
  // Errors: INVALID_ARGUMENT, the variable is not HOST:PORT.
  Error apply(ClientOptions* options) const;

  bool endpoint_given() const;  // by the flag

 private:
  std::string endpoint_, wait_us_ = "0";
  CLI::Option* endpoint_flag_;
};

}  // namespace kilokv::client
