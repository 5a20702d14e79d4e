#include "server/service/library_logs.hpp"

#include <google/protobuf/stubs/logging.h>
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

// Writes the lines of one library. Thread safety: any thread.
class LibraryLog {
 public:
  explicit LibraryLog(const char* library) : library_(library) {}

  void write(spdlog::level::level_enum level, std::string_view text, const char* file, int line) {
    std::uint64_t left_out = 0;
    if (!may_write(&left_out)) return;
    const bool is_cut = text.size() > kTextBytesMax;
    spdlog::log(level, "{} says text=\"{}{}\" source={}:{} left_out={}", library_,
                one_line(text.substr(0, kTextBytesMax)), is_cut ? "..." : "", file, line, left_out);
  }

 private:
  // Counts lines by seconds. Returns false for a line that is one too many; otherwise `left_out` is the number of those
  // since the last line that was written.
  bool may_write(std::uint64_t* left_out) {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      written_ = 0;
    }
    if (written_ == kLinesPerSecond) {
      ++skipped_;
      return false;
    }
    ++written_;
    *left_out = std::exchange(skipped_, 0);
    return true;
  }

  const char* const library_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point second_;
  std::uint64_t written_ = 0, skipped_ = 0;
};

void write_of_grpc(gpr_log_func_args* args) {
  const spdlog::level::level_enum level = args->severity == GPR_LOG_SEVERITY_ERROR  ? spdlog::level::warn
                                          : args->severity == GPR_LOG_SEVERITY_INFO ? spdlog::level::info
                                                                                    : spdlog::level::debug;
  static LibraryLog log("gRPC");
  log.write(level, args->message, args->file, args->line);
}

// It writes a line for each text of a message that is not UTF-8, also for one of a stranger.
void write_of_protobuf(google::protobuf::LogLevel level, const char* file, int line, const std::string& text) {
  static LibraryLog log("Protobuf");
  log.write(level == google::protobuf::LOGLEVEL_INFO ? spdlog::level::debug : spdlog::level::warn, text, file, line);
}

}  // namespace

void take_library_logs() {
  ::gpr_set_log_function(write_of_grpc);
  google::protobuf::SetLogHandler(write_of_protobuf);
}

}  // namespace kilokv::server
