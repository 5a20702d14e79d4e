// Exit codes of kilokv, kilokv-bank and kilokv-bench, for scripts. Each page of docs/ lists those of its program.
#pragma once

#include "kilokv/error.hpp"

namespace kilokv::client {

enum class ExitCode : int {
  ok = 0,
  not_done = 1,  // it was tried, and did not succeed: a guard failed, the bank refused, an invariant does not hold
  usage = 2,     // the command line, or what a file or a line holds, is wrong; nothing was sent for it
  invalid_argument = 3,  // the server refused the input
  unavailable = 4,       // no server, no answer in time, or a full server
  other = 5,             // any other error; also a file that cannot be read or written
};

inline ExitCode exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::none: return ExitCode::ok;
    case ErrorCode::invalid_argument: return ExitCode::invalid_argument;
    case ErrorCode::unavailable:
    case ErrorCode::deadline_exceeded:
    case ErrorCode::resource_exhausted: return ExitCode::unavailable;
    case ErrorCode::cancelled:
    case ErrorCode::not_found:
    case ErrorCode::permission_denied:
    case ErrorCode::failed_precondition:
    case ErrorCode::aborted:
    case ErrorCode::unimplemented:
    case ErrorCode::internal:
    case ErrorCode::data_loss:
    case ErrorCode::unauthenticated:
    case ErrorCode::unknown: return ExitCode::other;
  }
  return ExitCode::other;
}

// For an error of the command line, of a variable, or of a file that they name. Nothing was sent.
inline ExitCode exit_code_before_sending(ErrorCode code) {
  return code == ErrorCode::invalid_argument ? ExitCode::usage : exit_code(code);
}

}  // namespace kilokv::client
