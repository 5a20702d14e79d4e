// Secrets, such as tokens and the ids of sessions. They never stand on a command line, because other users of the
// machine can see it: a file has them, or a variable of the environment.
#pragma once

#include <string>

#include "kilokv/error.hpp"

namespace kilokv::client {

struct SecretSource {
  const char* flag;           // names the file
  const char* file_variable;  // names the file if the flag does not
  const char* variable;       // has the secret itself if no file is named
  const char* what;           // such as "a token"
};

inline constexpr SecretSource kTokenSource = {"--token-file", "KILOKV_CLIENT_TOKEN_FILE", "KILOKV_CLIENT_TOKEN",
                                              "a token"};
inline constexpr SecretSource kSessionSource = {"--session-file", "KILOKV_CLIENT_SESSION_FILE", "KILOKV_CLIENT_SESSION",
                                                "the id of a session"};

// The value of a variable of the environment; empty if it is not set.
std::string environment_variable(const std::string& name);

// Reads the secret, without spaces and ends of lines after it. `file`: the value of the flag; empty: it was not given.
// The secret stays empty if nothing gives one. Errors: FAILED_PRECONDITION: the file cannot be read; INVALID_ARGUMENT:
// it is empty.
Error read_secret(const SecretSource& source, const std::string& file, std::string* secret);

// Writes a line to a new file that only its user can read. Returns whether the file is durable; if not, errno says why,
// and there is no new file. An older file stays as it is.
bool write_secret(const std::string& file, const std::string& line);

}  // namespace kilokv::client
