// Role: see error_report.hpp.
#include "client/command_line/error_report.hpp"

#include <iostream>
#include <string>

#include "client/command_line/server_flags.hpp"

namespace kilokv::client {
namespace {

std::string advice(const Error& error, const std::string& timeout_flag) {
  switch (error.code) {
    case ErrorCode::unavailable:
      return std::string("start kilokvd there, or check --endpoint and ") + kEndpointVariable +
             "; --wait-for-server waits for a server that starts; a longer " + timeout_flag +
             " waits for a server that restarts";
    case ErrorCode::deadline_exceeded:
      return "the server may still apply what was sent; a longer " + timeout_flag + " waits longer";
    case ErrorCode::resource_exhausted:
      if (error.setting.empty()) return "";
      return error.retry_after_us != 0
                 ? "the server is full: try again later, or raise the setting that it names"
                 : "the server is full, and to wait does not help: raise the setting that it names";
    case ErrorCode::unimplemented: return "the server may be older than this client, or run without what this needs";
    default: return "";
  }
}

void print_part(const char* name, const std::string& value) {
  if (!value.empty()) std::cerr << "  " << name << ": " << value << '\n';
}

}  // namespace

ExitCode report_error(const char* program, const char* timeout_flag, const Error& error, const std::string& timeout) {
  std::cerr << program << ": " << to_string(error.code) << ": " << error.message << '\n';
  print_part("reason", error.reason.empty() ? "" : error.reason + " (docs/errors.md)");
  print_part("field", error.field);
  print_part("limit", error.limit);
  print_part("actual", error.actual);
  const bool is_timeout = error.code == ErrorCode::deadline_exceeded && error.setting.empty();
  const std::string shown = timeout.empty() ? "" : " (now " + timeout + ")";
  print_part("setting", is_timeout ? timeout_flag + shown : error.setting);
  print_part("hint", advice(error, is_timeout ? timeout_flag : timeout_flag + shown));
  return exit_code(error.code);
}

}  // namespace kilokv::client
