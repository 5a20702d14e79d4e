#include "server/storage/options.hpp"

#include "server/core/environment.hpp"
#include "server/core/unit_text.hpp"
#include "server/storage/data_directory.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint64_t kBufferBytesMin = std::uint64_t{64} << 10;
constexpr std::uint64_t kBufferBytesMax = std::uint64_t{1} << 30;

Status check_range(const char* field, std::uint64_t actual, std::uint64_t least, std::uint64_t most,
                   const char* setting) {
  if (actual >= least && actual <= most) return {};
  return Status::invalid({.field = field,
                          .limit = format_size(least) + " to " + format_size(most),
                          .actual = format_size(actual),
                          .setting = setting});
}

}  // namespace

Status StorageOptions::validate() const {
  if (data_dir.empty()) {
    return Status::invalid({.field = "data directory", .limit = "a path", .actual = "empty", .setting = "--data-dir"});
  }
  if (create != "auto" && create != "never") {
    return Status::invalid(
        {.field = "creation of a database", .limit = "auto or never", .actual = create, .setting = "--create"});
  }
  if (history_retention_us < 0 || history_retention_us > kDurationUsMax) {
    return Status::invalid({.field = "history retention",
                            .limit = "0 to " + format_duration(kDurationUsMax),
                            .actual = format_duration(history_retention_us),
                            .setting = "--history-retention"});
  }
  constexpr std::uint64_t kAny = std::uint64_t{1} << 60;
  Status status = check_range("history bytes", history_bytes_max, 0, kAny, "--history-bytes-max");
  if (status.ok()) status = check_range("disk reserve", disk_reserve_bytes, 0, kAny, "--disk-reserve");
  if (status.ok() && (archive_interval_us < 100000 || archive_interval_us > DurationUs{3600} * 1000000)) {
    status = Status::invalid({.field = "archive interval",
                              .limit = "100ms to 1h",
                              .actual = format_duration(archive_interval_us),
                              .setting = "--archive-interval"});
  }
  if (status.ok() && storage::lies_in(archive_dir, data_dir)) {
    status = Status::invalid({.field = "directory of the archive",
                              .limit = "outside the data directory " + data_dir,
                              .actual = archive_dir,
                              .setting = "--archive-dir"});
  }
  if (status.ok() && archive_required && archive_dir.empty()) {
    status = {StatusCode::invalid_argument, "--archive-required needs --archive-dir, where the archive is"};
  }
  if (status.ok()) {
    status = check_range("archive lag", archive_lag_max, std::uint64_t{1} << 20, kAny, "--archive-lag-max");
  }
  if (status.ok()) {
    status = check_range("log buffer", log_buffer_bytes, kBufferBytesMin, kBufferBytesMax, "--log-buffer");
  }
  if (status.ok()) {
    status = check_range("state buffer", state_buffer_bytes, kBufferBytesMin, kBufferBytesMax, "--state-buffer");
  }
  if (status.ok()) {
    status = check_range("write-ahead log", write_ahead_log_bytes_max, kBufferBytesMin, kAny, "--write-ahead-log-max");
  }
  return status;
}

// As store_options.cpp sets the buffers of each family: the log has eight, and the state three, because the checkpoint
// waits at two. A buffer of the log ends with a record that may begin when the buffer is almost full. Those of the
// sessions are short. The rest is for metadata, and for files that are read and written.
std::uint64_t StorageOptions::memory_bound(std::uint64_t record_bytes) const {
  constexpr std::uint64_t kRest = std::uint64_t{12} << 20;
  const std::uint64_t archive = archive_dir.empty() ? 0 : 2 * (kArchiveFileBytes + record_bytes);
  return 8 * (log_buffer_bytes + record_bytes) + 3 * state_buffer_bytes + 2 * session_buffer_bytes() + kRest + archive;
}

}  // namespace kilokv::server
