#include "server/storage/store_options.hpp"

#include <rocksdb/table.h>

#include <cstdint>
#include <limits>

#include "server/core/environment.hpp"
#include "server/storage/store.hpp"

namespace kilokv::server {

namespace {
constexpr std::uint64_t kBufferBytesMin = std::uint64_t{64} << 10;
constexpr std::uint64_t kBufferBytesMax = std::uint64_t{1} << 30;

Status check_range(const char* field, std::uint64_t actual, std::uint64_t least, std::uint64_t most,
                   const char* setting) {
  if (actual >= least && actual <= most) return {};
  return Status::invalid({.field = field,
                          .limit = std::to_string(least) + " to " + std::to_string(most) + " bytes",
                          .actual = std::to_string(actual) + " bytes",
                          .setting = setting});
}
}  // namespace

Status StorageOptions::validate() const {
  if (data_dir.empty()) {
    return Status::invalid({.field = "data directory", .limit = "a path", .actual = "empty", .setting = "--data-dir"});
  }
  if (history_retention_us < 0 || history_retention_us > kDurationUsMax) {
    return Status::invalid({.field = "history retention",
                            .limit = "0 to " + std::to_string(kDurationUsMax) + " us",
                            .actual = std::to_string(history_retention_us) + " us",
                            .setting = "--history-retention"});
  }
  constexpr std::uint64_t kAny = std::uint64_t{1} << 60;
  Status status = check_range("history bytes", history_bytes_max, 0, kAny, "--history-bytes-max");
  if (status.ok()) status = check_range("disk reserve", disk_reserve_bytes, 0, kAny, "--disk-reserve");
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

namespace storage {
namespace {

// If a family throttles its writer, it throttles every writer of the database, and the commit log first. These settings
// never throttle. max_write_buffer_number bounds the memory, and so does the checkpoint, which waits for its own
// flushes.
void never_slow_down(rocksdb::ColumnFamilyOptions* family) {
  family->level0_slowdown_writes_trigger = std::numeric_limits<int>::max();
  family->level0_stop_writes_trigger = std::numeric_limits<int>::max();
  family->soft_pending_compaction_bytes_limit = 0;
  family->hard_pending_compaction_bytes_limit = 0;
}

rocksdb::ColumnFamilyOptions base_options() {
  rocksdb::ColumnFamilyOptions family;
  rocksdb::BlockBasedTableOptions table;
  table.format_version = 5;
  table.checksum = rocksdb::kXXH3;
  table.no_block_cache = true;  // every read is a scan, at start-up
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  family.compression = rocksdb::kNoCompression;  // the processor costs more than the disk; columns are already narrow
  family.bottommost_compression = rocksdb::kDisableCompressionOption;
  never_slow_down(&family);
  return family;
}

// Batch numbers only grow, so files never overlap. "Compaction" then moves them to the last level without reading them,
// and trimming deletes whole files.
rocksdb::ColumnFamilyOptions log_options(const StorageOptions& options) {
  rocksdb::ColumnFamilyOptions family = base_options();
  family.write_buffer_size = options.log_buffer_bytes;
  family.max_write_buffer_number = 8;  // the bound on memory: the writer stops when a flush is seven buffers late
  family.num_levels = 2;
  family.level0_file_num_compaction_trigger = 2;
  family.target_file_size_base = options.log_buffer_bytes;
  family.max_bytes_for_level_base = std::uint64_t{1} << 50;
  return family;
}

rocksdb::ColumnFamilyOptions state_options(const StorageOptions& options) {
  rocksdb::ColumnFamilyOptions family = base_options();
  family.write_buffer_size = options.state_buffer_bytes;
  family.max_write_buffer_number = 8;  // never reached: the checkpoint waits at two
  family.target_file_size_base = options.state_buffer_bytes;
  family.max_bytes_for_level_base = 4 * options.state_buffer_bytes;
  return family;
}

rocksdb::ColumnFamilyOptions small_options() {
  rocksdb::ColumnFamilyOptions family = base_options();
  family.write_buffer_size = std::size_t{1} << 20;
  return family;
}

}  // namespace

rocksdb::DBOptions database_options(const StorageOptions& options) {
  rocksdb::DBOptions database;
  database.create_if_missing = true;
  database.create_missing_column_families = true;
  database.paranoid_checks = true;
  // Cuts a damaged end. Damage anywhere else was found before (wal_check.hpp), and the chain of records would also show
  // it.
  database.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  database.recycle_log_file_num = 0;  // a reused file's old content would look like a damaged end
  database.max_total_wal_size = options.write_ahead_log_bytes_max;
  database.max_bgerror_resume_count = 0;  // an error is final: the server stops
  database.max_background_jobs = 2;
  database.max_open_files = -1;
  // Files reach the disk in small steps, so that they do not delay a log sync.
  database.bytes_per_sync = std::uint64_t{1} << 20;
  database.use_fsync = false;
  database.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  database.max_log_file_size = std::size_t{4} << 20;
  database.keep_log_file_num = 4;
  database.stats_dump_period_sec = 0;
  database.stats_persist_period_sec = 0;
  return database;
}

std::vector<rocksdb::ColumnFamilyDescriptor> family_options(const StorageOptions& options) {
  rocksdb::ColumnFamilyOptions sessions = base_options();
  sessions.write_buffer_size = std::size_t{16} << 20;
  sessions.max_write_buffer_number = 8;
  return {{kFamilyNames[0], small_options()},
          {kFamilyNames[1], log_options(options)},
          {kFamilyNames[2], state_options(options)},
          {kFamilyNames[3], sessions},
          {kFamilyNames[4], small_options()}};
}

}  // namespace storage
}  // namespace kilokv::server
