// The one options struct of kilokvd, and where its values come from: a flag, else the environment, else the file that
// --config names, else the default. --some-name is also KILOKV_SOME_NAME and the key some-name in the file.
// Thread safety: used by main alone, before it starts threads.
#pragma once

#include <functional>
#include <string>

#include "engine/base/status.hpp"
#include "engine/engine.hpp"
#include "server/core/options.hpp"
#include "server/service/options.hpp"
#include "server/storage/rocksdb_log.hpp"

namespace kilokv::server {

struct ServerOptions {
  std::string listen = "127.0.0.1:7070";
  std::string port_file;  // empty: none
  DurationUs drain_timeout_us = 30000000;
  std::string log_level = "info";
  std::string log_file;  // empty: standard error
  engine::EngineOptions engine{.device = "auto"};
  DatabaseOptions database;
  StorageOptions storage{.data_dir = "kilokv-data", .free_bytes = {}};
  ServiceOptions service;

  // Every value against what is allowed. INVALID_ARGUMENT names flag, actual value and limit.
  Status validate() const;
};

struct CommandLine {
  enum class Action { run, check_config, print };
  Action action = Action::run;
  std::string text;  // to print
  ServerOptions options;
};

// Reads a variable of the environment; null where it is not set.
using ReadEnvironment = std::function<const char*(const char* name)>;

// INVALID_ARGUMENT for an unknown flag or key, or a value that is not of its kind or not allowed; it says which, from
// where (flag, variable, or file and line), and what is allowed.
Result<CommandLine> parse_command_line(int argc, const char* const* argv, const ReadEnvironment& environment);

// What --help prints.
std::string help_text();

}  // namespace kilokv::server
