// The flags --endpoint and --wait, and the environment variable KILOKV_ENDPOINT. They name the server of a client
// program, and say whether the program waits for a server that does not listen yet. They are the same in all programs.
#pragma once

#include <cstdint>
#include <string>

#include "client/command_line/cli11.hpp"
#include "kilokv/client.hpp"

namespace kilokv::client {

inline constexpr const char* kEndpointVariable = "KILOKV_ENDPOINT";
inline constexpr std::int64_t kDefaultWaitUs = 30'000'000;  // for --wait without a duration

class ServerFlags {
 public:
  // Adds the flags to `app`. `wait_names`: the names of the flag --wait. A program in which --wait has another meaning
  // passes other names.
  explicit ServerFlags(CLI::App* app, const std::string& wait_names = "--wait,--wait-for-server");
  ServerFlags(const ServerFlags&) = delete;
  ServerFlags& operator=(const ServerFlags&) = delete;

  // Writes the endpoint, and how long to wait for the server. The endpoint is that of the flag, else that of the
  // variable if it is not empty, else 127.0.0.1:7070. Errors: INVALID_ARGUMENT if the variable is not HOST:PORT.
  // Requires: the command line has been read.
  Error apply(ClientOptions* options) const;

  bool endpoint_given() const;  // whether the flag was given

 private:
  std::string endpoint_, wait_us_ = "0";
  CLI::Option* endpoint_flag_;
};

}  // namespace kilokv::client
