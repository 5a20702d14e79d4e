// The settings of storage. They name no library: another commit log would have most of them, too.
// Thread safety: plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "engine/base/types.hpp"
#include "server/core/metrics.hpp"

namespace kilokv::server {

// A file of the archive is gathered in memory. It has about so many bytes.
inline constexpr std::uint64_t kArchiveFileBytes = std::uint64_t{4} << 20;

// Every setting of storage. A flag has the name of its field, with `-` for `_`, and without the unit.
struct StorageOptions {
  std::string data_dir;
  std::string create = "auto";  // a database that is missing: auto: it is made; never: that is an error
  // Files of this server that other settings name, such as its log. They may lie in data_dir before the database does.
  std::vector<std::string> own_files = {};
  // Log records that the checkpoint covers: kept for this time.
  DurationUs history_retention_us = DurationUs{3600} * 1000000;
  std::uint64_t history_bytes_max = std::uint64_t{1} << 30;  // and at most this many bytes of them
  // Log records are copied to files there, in a folder for the incarnation; empty: they are not.
  std::string archive_dir = {};
  DurationUs archive_interval_us = 10000000;  // at most this time after they are durable
  // The most bytes of log that are kept for backups and for the archive, beyond the two limits above.
  std::uint64_t archive_lag_max = std::uint64_t{4} << 30;
  // Beyond archive_lag_max: true: new work is refused; false: the archive ends.
  bool archive_required = false;
  std::uint64_t disk_reserve_bytes = std::uint64_t{64} << 20;          // free space that is never used for new work
  std::uint64_t log_buffer_bytes = std::uint64_t{64} << 20;            // one memory buffer of the log; a few exist
  std::uint64_t state_buffer_bytes = std::uint64_t{64} << 20;          // one memory buffer of the state; a few exist
  std::uint64_t write_ahead_log_bytes_max = std::uint64_t{256} << 20;  // start-up reads it again

  // Tells the free bytes of the file system that holds `path`. Empty: statvfs. Only tests set it.
  std::function<std::uint64_t(const std::string& path)> free_bytes;
  // Called once when the disk has no room for a checkpoint, and again only after it had room. The checkpoint worker
  // calls it.
  std::function<void(const Status&)> on_checkpoint_put_off = {};
  // Called at the start with each path that others can read, and that cannot be closed to them because another user
  // owns it.
  std::function<void(const std::string& path)> on_open_to_others = {};
  // Called when the archive cannot go on as it should, and again only after it could. `ended`: it will not go on before
  // the next start. Any thread.
  std::function<void(const std::string& why, bool ended)> on_archive_problem = {};
  // What the log measures goes here, and it outlives the log. Null: nobody asks for it.
  LogMetrics* metrics = nullptr;
  // Called at the start if a new database was made in this directory. It is durable.
  std::function<void(const std::string& directory)> on_created = {};

  Status validate() const;
  std::uint64_t session_buffer_bytes() const {
    return std::min(std::uint64_t{16} << 20, state_buffer_bytes);  // one memory buffer of the sessions
  }
  // The most memory that the buffers take. `record_bytes`: of the longest log record.
  std::uint64_t memory_bound(std::uint64_t record_bytes) const;
};

}  // namespace kilokv::server
