#include "server/text_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace kilokv::server {
namespace {

constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;

// A file that exists may be open to others. A device such as /dev/null stays open, because others need it. If fchmod
// fails, the log is written all the same: its lines matter more.
void close_to_others(int descriptor) {
  struct stat found = {};
  if (::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode) || found.st_uid != ::geteuid()) return;
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) static_cast<void>(::fchmod(descriptor, kOwnerOnly));
}

Status cannot_open(const std::string& path, int error) {
  return {StatusCode::invalid_argument,
          "--log-file: cannot open " + path + ": " + std::generic_category().message(error)};
}

Result<int> open_to_append(const std::string& path) {
  std::error_code ignored;  // if this fails, the error of open() below is reported
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kOwnerOnly);
  if (descriptor >= 0) {
    close_to_others(descriptor);
    return descriptor;
  }
  return cannot_open(path, errno);
}

}  // namespace

Result<std::shared_ptr<TextLog>> TextLog::open(const std::string& path) {
  const Result<int> descriptor = open_to_append(path);
  if (!descriptor.ok()) return descriptor.status();
  return std::shared_ptr<TextLog>(new TextLog(path, *descriptor));
}

Status TextLog::check(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return cannot_open(path, EISDIR);
  // The log makes what is missing, in the nearest folder that is there.
  std::filesystem::path there = std::filesystem::absolute(path, error);
  bool is_missing = false;
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) {
    is_missing = true;
    there = there.parent_path();
  }
  if (is_missing && !std::filesystem::is_directory(there, error)) return cannot_open(path, ENOTDIR);
  const int rights = is_missing ? W_OK | X_OK : W_OK;
  return ::faccessat(AT_FDCWD, there.c_str(), rights, AT_EACCESS) == 0 ? Status() : cannot_open(path, errno);
}

TextLog::~TextLog() { ::close(descriptor_); }

Status TextLog::reopen() {
  const Result<int> fresh = open_to_append(path_);
  if (!fresh.ok()) return fresh.status();
  const std::lock_guard lock(mutex_);
  ::close(std::exchange(descriptor_, *fresh));
  return {};
}

void TextLog::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  for (std::size_t written = 0; written < line.size();) {
    const ssize_t count = ::write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    // The logger prints the error on standard error, at most once a second. The server goes on. If the disk is full,
    // admission refuses new work by itself.
    if (count < 0) throw spdlog::spdlog_ex("cannot write to " + path_ + ": " + std::generic_category().message(errno));
    written += static_cast<std::size_t>(count);
  }
}

}  // namespace kilokv::server
