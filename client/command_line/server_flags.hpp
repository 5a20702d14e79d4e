// The flags that say how a client program reaches its server, and the environment variables for them: --endpoint names
// the server, --wait says whether the program waits until it listens, and --tls and its kin protect the connection.
// They are the same in all programs.
//
// The variables of TLS begin with KILOKV_CLIENT_TLS. Those of kilokvd begin with KILOKV_TLS, because kilokvd has flags
// of the same names for its own certificate.
#pragma once

#include <cstdint>
#include <string>

#include "client/command_line/cli11.hpp"
#include "kilokv/client.hpp"

namespace kilokv::client {

inline constexpr const char* kEndpointVariable = "KILOKV_ENDPOINT";
inline constexpr const char* kTlsVariable = "KILOKV_CLIENT_TLS";  // 1 or 0
inline constexpr std::int64_t kDefaultWaitUs = 30'000'000;        // for --wait without a duration

class ServerFlags {
 public:
  // Adds the flags to `app`. `wait_names`: the names of the flag --wait. A program in which --wait has another meaning
  // passes other names.
  explicit ServerFlags(CLI::App* app, const std::string& wait_names = "--wait,--wait-for-server");
  ServerFlags(const ServerFlags&) = delete;
  ServerFlags& operator=(const ServerFlags&) = delete;

  // Writes the endpoint, how long to wait for the server, and the settings of TLS. Each is that of the flag, else that
  // of the variable if it is not empty, else the default. Errors: INVALID_ARGUMENT names a variable or a file that is
  // wrong; FAILED_PRECONDITION: a file cannot be read.
  // Requires: the command line has been read.
  Error apply(ClientOptions* options) const;

  bool endpoint_given() const;  // whether the flag was given

 private:
  void add_tls(CLI::App* app);
  Error apply_tls(TlsOptions* tls) const;

  std::string endpoint_, wait_us_ = "0";
  TlsOptions tls_;
  std::string token_file_;
  CLI::Option* endpoint_flag_;
};

}  // namespace kilokv::client
