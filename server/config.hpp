// The one options struct of kilokvd, and the sources of its values. A flag wins over the environment. The environment
// wins over the file that --config names. The file wins over the default. The flag --some-name is also the variable
// KILOKV_SOME_NAME, and the key some-name in the file. Thread safety: only main() uses it, before it starts threads.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/engine.hpp"
#include "server/core/options.hpp"
#include "server/http/options.hpp"
#include "server/service/options.hpp"
#include "server/storage/options.hpp"

namespace kilokv::server {

struct ServerOptions {
  std::string listen = "127.0.0.1:7070";
  std::string port_file;  // empty: none
  DurationUs drain_timeout_us = 30000000;
  std::string log_level = "info";
  std::string log_file;             // empty: standard error
  std::string log_format = "text";  // or json
  std::string log_keys = "hash";    // how keys stand in the log: full, hash or none (core/shown_key.hpp)
  engine::EngineOptions engine{.device = "auto"};
  DatabaseOptions database;
  StorageOptions storage{.data_dir = "kilokv-data", .free_bytes = {}};
  ServiceOptions service;
  HttpOptions http;
  BootstrapOptions bootstrap;
  bool insecure = false;
  bool core_dumps = false;
  std::set<std::string> given;  // names of the settings that are not defaults, without the dashes
  // Name and value of each setting whose value is not the default, in the order of --help. The value is a text for the
  // log.
  std::vector<std::pair<std::string, std::string>> changed;

  // Compares every value with its limits. INVALID_ARGUMENT names the flag, the actual value and the limit.
  Status validate() const;
};

struct CommandLine {
  enum class Action { run, check_config, create_database, print };
  Action action = Action::run;
  std::string text;  // to print
  ServerOptions options;
};

// Reads a variable of the environment. Null if it is not set.
using ReadEnvironment = std::function<const char*(const char* name)>;

// INVALID_ARGUMENT for an unknown flag or key, and for a value that is malformed or not allowed. The message names the
// setting, its place (the flag, the variable, or the file and line), and what is allowed.
Result<CommandLine> parse_command_line(int argc, const char* const* argv, const ReadEnvironment& environment);

// The text that --help prints.
std::string help_text();

}  // namespace kilokv::server
