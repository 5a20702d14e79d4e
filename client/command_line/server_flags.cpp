// Role: see server_flags.hpp.
#include "client/command_line/server_flags.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "client/command_line/arguments.hpp"

namespace kilokv::client {
namespace {

// Accepts "true" as no value, because CLI11 passes "true" for a flag without a value.
CLI::Validator optional_duration(std::int64_t without_value_us) {
  CLI::Validator given = duration(0);
  const auto read = [=](std::string& text) {
    if (text != "true") return given(text);
    text = std::to_string(without_value_us);
    return std::string();
  };
  return {read, ""};
}

}  // namespace

ServerFlags::ServerFlags(CLI::App* app, const std::string& wait_names) {
  endpoint_flag_ = app->add_option("--endpoint", endpoint_,
                                   std::string("HOST:PORT of kilokvd; default: the environment variable ") +
                                       kEndpointVariable + ", else " + ClientOptions().endpoint)
                       ->transform(endpoint())
                       ->option_text("HOST:PORT");
  app->add_flag(wait_names, wait_us_,
                "longest time to wait until the server listens and has recovered; without DURATION: " +
                    format_duration(kDefaultWaitUs) + "; default: do not wait, and end with exit code 4")
      ->transform(optional_duration(kDefaultWaitUs))
      ->option_text("[DURATION]");
}

Error ServerFlags::apply(ClientOptions* options) const {
  options->wait_for_server_us = std::stoull(wait_us_);
  if (endpoint_given()) {
    options->endpoint = endpoint_;
    return {};
  }
  const char* variable = std::getenv(kEndpointVariable);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  if (variable == nullptr || *variable == '\0') return {};
  options->endpoint = variable;
  const std::string problem = endpoint()(options->endpoint);
  if (problem.empty()) return {};
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.message = std::string("the environment variable ") + kEndpointVariable + ": " + problem;
  return error;
}

bool ServerFlags::endpoint_given() const { return endpoint_flag_->count() != 0; }

}  // namespace kilokv::client
