#include "server/storage/store_options.hpp"

#include <cstdint>
#include <limits>

#include "server/storage/store.hpp"

namespace kilokv::server::storage {
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
  table.format_version = kTableVersion;
  table.checksum = kTableChecksum;
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
  family.level0_file_num_compaction_trigger = kStateCompactionTrigger;
  family.target_file_size_base = options.state_buffer_bytes;
  family.max_bytes_for_level_base = 4 * options.state_buffer_bytes;
  family.max_compaction_bytes =
      kOverlapMaxFiles * options.state_buffer_bytes;  // files end where they would overlap more
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
  // Opening leaves no older write-ahead log that is needed (Store::begin_write_ahead_log).
  database.avoid_flush_during_recovery = false;
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
  sessions.write_buffer_size = options.session_buffer_bytes();
  sessions.max_write_buffer_number = 8;
  return {{kFamilyNames[0], small_options()},
          {kFamilyNames[1], log_options(options)},
          {kFamilyNames[2], state_options(options)},
          {kFamilyNames[3], sessions},
          {kFamilyNames[4], small_options()}};
}

}  // namespace kilokv::server::storage
