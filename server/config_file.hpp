// The TOML file that --config names: keys and values at its top level, with the place of each. What is wrong with it is
// said in words of our own, as FILE:LINE:COLUMN: KEY and what to write instead.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.hpp"

namespace kilokv::server {

struct FileValue {
  std::string name;    // the key
  std::string text;    // the value, as a flag would have it
  std::string source;  // kilokvd.toml:3:1: batch-max-delay
};

// In the order of their names. INVALID_ARGUMENT where the file cannot be read, is not TOML, or has a value that is
// neither a string nor a number.
Result<std::vector<FileValue>> read_config_file(const std::string& path);

}  // namespace kilokv::server
