// Where a measurement writes its documents: a file, or the standard output (-).
#pragma once

#include <string>

#include "engine/base/status.hpp"

namespace kilokv::engine::bench {

inline constexpr const char* kStandardOutput = "-";

// Finds a path that cannot be written, before the measurement. Leaves no file where there was none. Errors:
// INVALID_ARGUMENT, which names the flag.
Status try_file(const std::string& flag, const std::string& path);
// Writes the whole text. An empty path: does nothing. Errors: UNAVAILABLE.
Status write_file(const std::string& path, const std::string& text);

}  // namespace kilokv::engine::bench
