#include "engine/bench/output_file.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace kilokv::engine::bench {

Status try_file(const std::string& flag, const std::string& path) {
  if (path.empty() || path == kStandardOutput) return {};
  std::error_code unknown;
  const bool was_there = std::filesystem::exists(std::filesystem::symlink_status(path, unknown));
  if (!std::ofstream(path, std::ios::app)) return {StatusCode::invalid_argument, flag + ": cannot write " + path};
  if (!was_there) std::filesystem::remove(path, unknown);
  return {};
}

Status write_file(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  if (path == kStandardOutput) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return written ? Status()
                   : Status(StatusCode::unavailable, ErrorReason::failed, "cannot write to the standard output");
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  return file ? Status() : Status(StatusCode::unavailable, ErrorReason::failed, "cannot write " + path);
}

}  // namespace kilokv::engine::bench
