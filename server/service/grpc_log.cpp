#include "server/service/grpc_log.hpp"

#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "server/core/one_line.hpp"

namespace kilokv::server {
namespace {

constexpr std::size_t kTextBytesMax = 500;
constexpr std::uint64_t kLinesPerSecond = 5;

// Counts lines by seconds. Returns false for a line that is one too many; otherwise `left_out` is the number of those
// since the last line that was written.
bool may_write(std::uint64_t* left_out) {
  static std::mutex mutex;
  static std::chrono::steady_clock::time_point second;
  static std::uint64_t written = 0, skipped = 0;
  const std::lock_guard lock(mutex);
  const auto now = std::chrono::steady_clock::now();
  if (now - second >= std::chrono::seconds(1)) {
    second = now;
    written = 0;
  }
  if (written == kLinesPerSecond) {
    ++skipped;
    return false;
  }
  ++written;
  *left_out = std::exchange(skipped, 0);
  return true;
}

void write(gpr_log_func_args* args) {
  std::uint64_t left_out = 0;
  if (!may_write(&left_out)) return;
  const spdlog::level::level_enum level = args->severity == GPR_LOG_SEVERITY_ERROR  ? spdlog::level::warn
                                          : args->severity == GPR_LOG_SEVERITY_INFO ? spdlog::level::info
                                                                                    : spdlog::level::debug;
  std::string_view text = args->message;
  const bool is_cut = text.size() > kTextBytesMax;
  text = text.substr(0, kTextBytesMax);
  spdlog::log(level, "gRPC says text=\"{}{}\" source={}:{} left_out={}", one_line(text), is_cut ? "..." : "",
              args->file, args->line, left_out);
}

}  // namespace

void take_grpc_log() { ::gpr_set_log_function(write); }

}  // namespace kilokv::server
