// The TOML file that --config names: its keys and values, all at the top level, each with its place. Errors are in our
// own words. They have the form FILE:LINE:COLUMN: KEY, and they say what to write instead.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.hpp"

namespace kilokv::server {

struct FileValue {
  std::string name;    // the key
  std::string text;    // the value, in the form that a flag takes
  std::string source;  // the place, such as kilokvd.toml:3:1: batch-max-delay
};

// The values in the order of their names. INVALID_ARGUMENT if the file cannot be read, is not TOML, or has a value that
// is not a string, a number, true or false.
Result<std::vector<FileValue>> read_config_file(const std::string& path);

}  // namespace kilokv::server
