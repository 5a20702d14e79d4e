// Role: see server_flags.hpp.
#include "client/command_line/server_flags.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/command_line/arguments.hpp"
#include "client/command_line/secrets.hpp"

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

Error wrong_variable(const std::string& name, const std::string& problem) {
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.message = "the environment variable " + name + ": " + problem;
  return error;
}

struct TlsSetting {
  const char* flag;
  const char* variable;
  std::string TlsOptions::*value;
  const char* placeholder;
  const char* help;
};

const std::vector<TlsSetting>& tls_settings() {
  static const std::vector<TlsSetting> settings = {
      {"--tls-ca", "KILOKV_CLIENT_TLS_CA", &TlsOptions::ca_file, "FILE",
       "PEM file of the authorities that the server's certificate may come from; default: those of the system"},
      {"--tls-cert", "KILOKV_CLIENT_TLS_CERT", &TlsOptions::cert_file, "FILE",
       "PEM file of the client's own certificate, for a server that asks for one"},
      {"--tls-key", "KILOKV_CLIENT_TLS_KEY", &TlsOptions::key_file, "FILE",
       "PEM file of the private key of the client's certificate"},
      {"--tls-server-name", "KILOKV_CLIENT_TLS_SERVER_NAME", &TlsOptions::server_name, "NAME",
       "name that the server's certificate must have; default: the host of the endpoint"}};
  return settings;
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
  add_tls(app);
  app->add_option("--token-file", token_file_,
                  std::string("file with the token for the login, on a server with logins; default: the variable ") +
                      kTokenSource.file_variable + "; the variable " + kTokenSource.variable +
                      " can hold the token itself")
      ->option_text("FILE");
}

void ServerFlags::add_tls(CLI::App* app) {
  app->add_flag("--tls", tls_.enabled,
                std::string("use TLS; each flag --tls-... and its variable imply it; default: the variable ") +
                    kTlsVariable + ", else no TLS");
  for (const TlsSetting& setting : tls_settings()) {
    app->add_option(setting.flag, tls_.*setting.value, std::string(setting.help) + " (" + setting.variable + ")")
        ->option_text(setting.placeholder);
  }
}

Error ServerFlags::apply_tls(TlsOptions* tls) const {
  *tls = tls_;
  const std::string wanted = environment_variable(kTlsVariable);
  if (!wanted.empty() && wanted != "0" && wanted != "1") {
    return wrong_variable(kTlsVariable, "\"" + wanted + "\" is not 0 or 1");
  }
  tls->enabled = tls->enabled || wanted == "1";
  for (const TlsSetting& setting : tls_settings()) {
    std::string& value = tls->*setting.value;
    if (value.empty()) value = environment_variable(setting.variable);
    tls->enabled = tls->enabled || !value.empty();
  }
  return {};
}

Error ServerFlags::apply(ClientOptions* options) const {
  // gRPC would print its own lines about each failed handshake. The programs say what is wrong.
  setenv("GRPC_VERBOSITY", "NONE", 0);  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  options->wait_for_server_us = std::stoull(wait_us_);
  if (Error error = apply_tls(&options->tls)) return error;
  if (Error error = read_secret(kTokenSource, token_file_, &options->token)) return error;
  if (endpoint_given()) {
    options->endpoint = endpoint_;
    return {};
  }
  const std::string named = environment_variable(kEndpointVariable);
  if (named.empty()) return {};
  options->endpoint = named;
  const std::string problem = endpoint()(options->endpoint);
  return problem.empty() ? Error() : wrong_variable(kEndpointVariable, problem);
}

bool ServerFlags::endpoint_given() const { return endpoint_flag_->count() != 0; }

}  // namespace kilokv::client
