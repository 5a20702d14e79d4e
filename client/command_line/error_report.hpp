// How all programs print an Error, and with which code they exit.
#pragma once

#include <string>

#include "client/command_line/exit_code.hpp"
#include "kilokv/error.hpp"

namespace kilokv::client {

// Prints the error, its place and what to do, on standard error. `timeout_flag` is the name of the program's flag for
// timeouts, such as --timeout, and `timeout` its value as text; empty: it is not shown.
ExitCode report_error(const char* program, const char* timeout_flag, const Error& error,
                      const std::string& timeout = {});

}  // namespace kilokv::client
