// What the programs say of an Error, and how they end: the same in all of them.
#pragma once

#include "client/command_line/exit_code.hpp"
#include "kilokv/error.hpp"

namespace kilokv::client {

// What happened, where, and what to do, on standard error. `timeout_flag` is that of the program, such as --timeout.
ExitCode report_error(const char* program, const char* timeout_flag, const Error& error);

}  // namespace kilokv::client
