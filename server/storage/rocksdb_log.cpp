#include "server/storage/rocksdb_log.hpp"

#include <rocksdb/convenience.h>
#include <rocksdb/write_batch.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "server/core/fail_point.hpp"
#include "server/storage/acknowledged_file.hpp"
#include "server/storage/archiver.hpp"
#include "server/storage/backup_source.hpp"
#include "server/storage/checkpoint_writer.hpp"
#include "server/storage/disk_space.hpp"
#include "server/storage/log_history.hpp"
#include "server/storage/log_pin.hpp"
#include "server/storage/log_record.hpp"
#include "server/storage/recovery.hpp"
#include "server/storage/store.hpp"
#include "server/storage/store_log_reader.hpp"
#include "server/storage/store_options.hpp"

namespace kilokv::server {
namespace storage {
namespace {

struct FileSystemBytes {
  std::uint64_t free = 0, all = 0;
};

FileSystemBytes bytes_of_file_system(const std::string& path) {
  struct statvfs file_system = {};
  if (::statvfs(path.c_str(), &file_system) != 0) return {};
  return {.free = std::uint64_t{file_system.f_bavail} * file_system.f_frsize,
          .all = std::uint64_t{file_system.f_blocks} * file_system.f_frsize};
}

// A segment is a sixteenth of the limit, so trimming keeps both limits to within a sixteenth. It is at most 16 MiB,
// because a deviation of that size does not matter.
std::uint64_t segment_bytes(const StorageOptions& options) {
  return std::clamp(options.history_bytes_max / 16, std::uint64_t{4} << 10, std::uint64_t{16} << 20);
}

rocksdb::WriteOptions synced() {
  rocksdb::WriteOptions options;
  options.sync = true;
  return options;
}

// While the disk is short of space, a backup or an archive that is not required may keep this much of the log, and no
// more: the server must go on. So an archive that is just a little behind does not end.
constexpr std::uint64_t kShortPinSegments = 4;

// What a record of the state takes beyond its part of the log record: its head, its version, an integer, and its place
// in a file.
constexpr std::uint64_t kStateRecordBytes = 48;

std::string segment_key(const LogSegment& segment) { return kSegmentPrefix + ordered_key(segment.first_batch); }

class RocksdbLog final : public CommitLog {
 public:
  RocksdbLog(const StorageOptions& options, std::unique_ptr<std::atomic<bool>> armed, std::unique_ptr<Store> store)
      : options_(options),
        armed_(std::move(armed)),
        store_(std::move(store)),
        history_(segment_bytes(options)),
        checkpoint_(store_.get()),
        space_(options.disk_reserve_bytes, [this] { return sample_disk(); }) {}

  Result<RecoveredPosition> recover(RecoveryVisitor* visitor) override;
  Status end_recovery() override;
  Status reserve(std::uint64_t bytes, LogUse use) override {
    // Rights can be taken away while the archive is late.
    const bool can_wait = use != LogUse::access_changes;
    if (can_wait && archiver_ != nullptr && archiver_->holds_up()) return archiver_->refusal();
    return space_.reserve(bytes, use);
  }
  void release(std::uint64_t bytes) override { space_.release(bytes); }
  std::uint64_t room(LogUse use) override { return space_.room(use); }
  void watch_sessions(const std::function<std::uint64_t()>& stored_bytes) override;
  Status append(std::span<const LogRecord> records) override;
  Status checkpoint_begin() override;
  Status checkpoint_records(std::span<const StoredRecord> records) override { return checkpoint_.put(records); }
  Status checkpoint_drop(std::span<const std::string_view> keys) override { return checkpoint_.drop(keys); }
  Status checkpoint_session(const StoredSession& session) override { return checkpoint_.put(session); }
  Status checkpoint_end(const RecoveredPosition& covers, std::string_view access_table) override;
  Status trim(TimeUs now_us) override;
  Result<std::unique_ptr<BackupSource>> open_backup() override { return StoreBackup::open(store_.get(), &pins_); }
  Result<std::unique_ptr<LogReader>> open_reader() override {
    return std::unique_ptr<LogReader>(std::make_unique<StoreLogReader>(store_.get(), &history_));
  }
  LogUsage usage() const override;

 private:
  std::uint64_t changed_state_bytes() const;
  std::uint64_t compaction_bytes() const;
  DiskSpace::Sample sample_disk() const;
  Status flush_log();
  void compact_early(bool early);
  Status gather(const LogRecord& record);

  const StorageOptions options_;
  const std::unique_ptr<std::atomic<bool>>
      armed_;  // the fail points, from the end of recovery on; the store refers to it
  const std::unique_ptr<Store> store_;
  mutable std::mutex sessions_mutex_;
  std::function<std::uint64_t()> session_bytes_;  // null: no sessions
  LogHistory history_;
  LogPins pins_;
  DatabaseIdentity identity_;
  CheckpointWriter checkpoint_;
  std::atomic<BatchNumber> last_batch_{0};  // durable
  // Bytes of log records, counted from the checkpoint that recovery began with: all of them, and those before the last
  // checkpoint.
  std::atomic<std::uint64_t> appended_bytes_{0};
  std::atomic<std::uint64_t> checkpointed_bytes_{0};
  // The same for the writes in them.
  std::atomic<std::uint64_t> appended_writes_{0};
  std::atomic<std::uint64_t> checkpointed_writes_{0};
  mutable DiskSpace space_;  // it measures when asked, and when it is made: what it measures comes first
  // Only the checkpoint worker uses these.
  std::uint64_t checkpoint_begin_bytes_ = 0;
  std::uint64_t checkpoint_begin_writes_ = 0;
  bool warned_ = false;  // a warning was given that the disk has no room for a checkpoint
  bool compacts_early_ = false;

  // Only the log worker uses these.
  AcknowledgedFile acknowledged_;
  std::string record_;
  rocksdb::WriteBatch batch_;
  std::uint32_t last_crc_ = 0;
  std::uint64_t gathered_bytes_ = 0;
  std::uint64_t gathered_writes_ = 0;
  BatchNumber gathered_batch_ = 0;
  bool failed_ = false;
  std::unique_ptr<Archiver> archiver_;  // null: there is no archive. It ends first
};

void RocksdbLog::watch_sessions(const std::function<std::uint64_t()>& stored_bytes) {
  const std::lock_guard lock(sessions_mutex_);
  session_bytes_ = stored_bytes;
}

// The most that a checkpoint of everything appended would write. A key that was written often counts as often.
std::uint64_t RocksdbLog::changed_state_bytes() const {
  const auto since = [](const std::atomic<std::uint64_t>& all, const std::atomic<std::uint64_t>& before) {
    const std::uint64_t covered = before.load(std::memory_order_acquire);  // first: `all` is never less
    return all.load(std::memory_order_relaxed) - covered;
  };
  return since(appended_bytes_, checkpointed_bytes_) +
         since(appended_writes_, checkpointed_writes_) * kStateRecordBytes;
}

// The most that one compaction of the state writes: all files of the first two levels, or one file of a later level
// with those that it overlaps. A file is as large as a buffer.
std::uint64_t RocksdbLog::compaction_bytes() const {
  const std::uint64_t first = store_->files_at_level(Family::state, 0) + store_->files_at_level(Family::state, 1);
  return std::min(store_->property(Family::state, "rocksdb.live-sst-files-size"),
                  std::max(first, kOverlapMaxFiles) * options_.state_buffer_bytes);
}

DiskSpace::Sample RocksdbLog::sample_disk() const {
  constexpr const char* kBuffered = "rocksdb.cur-size-all-mem-tables";
  const std::string& directory = store_->directory();
  const FileSystemBytes disk = bytes_of_file_system(directory);
  const std::lock_guard lock(sessions_mutex_);
  return {.free_bytes = options_.free_bytes ? options_.free_bytes(directory) : disk.free,
          .unflushed_bytes = store_->property(Family::log, kBuffered) + store_->property(Family::state, kBuffered),
          .state_bytes = changed_state_bytes(),
          .compaction_bytes = compaction_bytes(),
          .session_bytes = session_bytes_ ? session_bytes_() : 0,
          .disk_bytes = disk.all};
}

Result<RecoveredPosition> RocksdbLog::recover(RecoveryVisitor* visitor) {
  Recovery recovery(store_.get(), visitor, &history_, &acknowledged_);
  Result<RecoveredPosition> position = recovery.run();
  if (!position.ok()) return position;
  checkpoint_.restore(recovery.checkpoint(), recovery.generation(), recovery.format());
  identity_ = recovery.identity();
  last_crc_ = recovery.last_crc();
  gathered_batch_ = position->batch;
  appended_bytes_.store(position->log_bytes_since_checkpoint, std::memory_order_relaxed);
  appended_writes_.store(recovery.writes_since_checkpoint(), std::memory_order_relaxed);
  last_batch_.store(position->batch, std::memory_order_release);
  armed_->store(true, std::memory_order_relaxed);
  if (store_->created() && options_.on_created) options_.on_created(store_->directory());
  return position;
}

Status RocksdbLog::end_recovery() {
  if (Status status = store_->end_recovery(); !status.ok() || options_.archive_dir.empty()) return status;
  archiver_ = std::make_unique<Archiver>(options_, store_.get(), &pins_, &history_, identity_,
                                         [this] { return last_batch_.load(std::memory_order_acquire); });
  return archiver_->start();
}

Status RocksdbLog::gather(const LogRecord& record) {
  KILOKV_CHECK(record.header.number == gathered_batch_ + 1);
  gathered_batch_ = record.header.number;
  record_.clear();
  last_crc_ = encode_record(record, last_crc_, &record_);
  gathered_bytes_ += record_.size();
  if (record.writes != nullptr) gathered_writes_ += record.writes->size();
  // Put refuses a value that is too large. A record that is not in the batch would be missing in the log.
  rocksdb::Status put = batch_.Put(store_->family(Family::log), ordered_key(gathered_batch_), record_);
  const auto segment = history_.add(gathered_batch_, record.header.time_us, record_.size());
  if (put.ok() && segment) {
    put = batch_.Put(store_->family(Family::metadata), segment_key(*segment), encode_segment(*segment));
  }
  return store_->status_of(put, "appending batch " + std::to_string(gathered_batch_));
}

Status RocksdbLog::append(std::span<const LogRecord> records) {
  if (failed_) return {StatusCode::internal, "the commit log has failed before: nothing more is written to it"};
  if (records.empty()) return {};
  store_->begin_write(&batch_);
  gathered_bytes_ = gathered_writes_ = 0;
  for (const LogRecord& record : records) {
    Status gathered = gather(record);
    failed_ = !gathered.ok();
    if (failed_) return gathered;
  }
  Status status = store_->check_in_place();
  if (status.ok()) {
    const rocksdb::Status written = store_->write(synced(), &batch_);
    status = store_->status_of(written, "appending batch " + std::to_string(gathered_batch_));
  }
  if (status.ok()) status = store_->check_in_place();  // a sync may take long
  if (status.ok()) status = acknowledged_.write(gathered_batch_);
  failed_ = !status.ok();
  if (failed_) return status;
  space_.appended(gathered_bytes_);
  store_->metrics().written_bytes.fetch_add(gathered_bytes_, std::memory_order_relaxed);
  if (archiver_ != nullptr) archiver_->appended(gathered_bytes_);
  appended_bytes_.fetch_add(gathered_bytes_, std::memory_order_relaxed);
  appended_writes_.fetch_add(gathered_writes_, std::memory_order_relaxed);
  last_batch_.store(gathered_batch_, std::memory_order_release);
  return {};
}

Status RocksdbLog::checkpoint_begin() {
  if (Status status = store_->check_in_place(); !status.ok()) return status;
  if (Status status = space_.check_checkpoint(); !status.ok()) {
    if (!warned_ && options_.on_checkpoint_put_off) options_.on_checkpoint_put_off(status);
    warned_ = true;
    return status;
  }
  warned_ = false;
  checkpoint_begin_bytes_ = appended_bytes_.load(std::memory_order_relaxed);
  checkpoint_begin_writes_ = appended_writes_.load(std::memory_order_relaxed);
  return checkpoint_.begin();
}

Status RocksdbLog::checkpoint_end(const RecoveredPosition& covers, std::string_view access_table) {
  KILOKV_CHECK(covers.batch <= last_batch_.load(std::memory_order_acquire));
  if (Status status = store_->check_in_place(); !status.ok()) return status;
  Status status = checkpoint_.end(covers, access_table);
  if (!status.ok()) return status;
  checkpointed_bytes_.store(checkpoint_begin_bytes_, std::memory_order_release);
  checkpointed_writes_.store(checkpoint_begin_writes_, std::memory_order_release);
  return {};
}

// The new start is durable before the files are deleted. So no range tombstone is needed to hide the rest of them; it
// would make files overlap that otherwise never do. Records that share a file with later ones are deleted by a later
// trim.
Status RocksdbLog::trim(TimeUs now_us) {
  if (Status status = store_->check_in_place(); !status.ok()) return status;
  const bool is_short = space_.is_short();
  compact_early(is_short && space_.can_compact());
  if (is_short) {
    if (Status status = flush_log(); !status.ok()) return status;
  }
  const std::lock_guard lock(pins_.mutex());
  const std::uint64_t pinned_max = is_short
                                       ? std::min(options_.archive_lag_max, kShortPinSegments * segment_bytes(options_))
                                       : options_.archive_lag_max;
  const BatchNumber covered = pins_.limit(checkpoint_.current().covers.batch, [this, pinned_max](BatchNumber from) {
    return history_.bytes_from(from) > pinned_max;
  });
  const auto dropped = history_.trim(covered, is_short ? now_us : now_us - options_.history_retention_us,
                                     is_short ? 0 : options_.history_bytes_max);
  if (dropped.empty()) return {};
  const std::string start = ordered_key(dropped.back().last_batch + 1);
  rocksdb::WriteBatch batch;
  store_->begin_write(&batch);
  rocksdb::Status written = batch.Put(store_->family(Family::metadata), kLogStartKey, start);
  for (const LogSegment& segment : dropped) {
    if (written.ok()) written = batch.Delete(store_->family(Family::metadata), segment_key(segment));
  }
  if (written.ok()) written = store_->write(synced(), &batch);
  if (!written.ok()) return store_->status_of(written, "trimming the log");
  if (fail_point("storage.trim.files")) return {StatusCode::internal, "fail point storage.trim.files"};
  const rocksdb::Slice end(start);
  const rocksdb::Status deleted = rocksdb::DeleteFilesInRange(store_->db(), store_->family(Family::log), nullptr, &end,
                                                              /*include_end=*/false);
  return store_->status_of(deleted, "removing trimmed files");
}

// The write-ahead log is removed when everything in it is in files. The log's files can then be trimmed.
Status RocksdbLog::flush_log() {
  const rocksdb::Status flushed =
      store_->db()->Flush(rocksdb::FlushOptions(), {store_->family(Family::log), store_->family(Family::metadata)});
  return store_->status_of(flushed, "flushing the log");
}

// What was deleted takes room until a compaction merges it. So the files of each checkpoint are merged at once while
// the disk is short of space. If the setting cannot be changed, the next trim tries again.
void RocksdbLog::compact_early(bool early) {
  if (early == compacts_early_) return;
  const int trigger = early ? 1 : kStateCompactionTrigger;
  const rocksdb::Status set = store_->db()->SetOptions(
      store_->family(Family::state), {{"level0_file_num_compaction_trigger", std::to_string(trigger)}});
  if (set.ok()) compacts_early_ = early;
}

LogUsage RocksdbLog::usage() const {
  const bool is_short = space_.is_short();  // looks at the disk
  return {.free_bytes = space_.free_bytes(),
          .disk_bytes = space_.disk_bytes(),
          .reserved_bytes = space_.reserved_bytes(),
          .log_bytes = history_.bytes(),
          .memory_bytes = store_->memory_bytes(),
          .bytes_since_checkpoint =
              appended_bytes_.load(std::memory_order_relaxed) - checkpointed_bytes_.load(std::memory_order_relaxed),
          .first_batch = history_.first_batch(),
          .since_us = history_.since_us(),
          .archive = archiver_ == nullptr
                         ? ArchiveUsage()
                         : ArchiveUsage{true, archiver_->ended(), archiver_->batch(), archiver_->lag_bytes()},
          .short_of_space = is_short};
}

// Looks at nothing: a new database has nothing to look at.
class NoVisitor final : public RecoveryVisitor {
  Status identity(const DatabaseIdentity& /*identity*/) override { return {}; }
  Status state_record(const StoredRecord& /*record*/) override { return {}; }
  Status session(const StoredSession& /*session*/) override { return {}; }
  Status access_table(std::string_view /*table*/) override { return {}; }
  Status batch_begin(const engine::BatchHeader& /*header*/, Version /*floor*/) override { return {}; }
  Status batch_write(const StoredRecord& /*record*/) override { return {}; }
  Status batch_session(const SessionEntry& /*entry*/) override { return {}; }
  Status batch_access(std::string_view /*change*/) override { return {}; }
  Status batch_end(Hash128 /*state_hash*/) override { return {}; }
};

}  // namespace
}  // namespace storage

Result<bool> create_rocksdb_database(StorageOptions options) {
  options.create = "auto";
  if (Status status = options.validate(); !status.ok()) return status;
  if (storage::Store::is_there(options.data_dir)) return false;
  bool created = false;
  options.on_created = [&created](const std::string& /*directory*/) { created = true; };
  const Result<std::unique_ptr<CommitLog>> log = open_rocksdb_log(options);
  if (!log.ok()) return log.status();
  storage::NoVisitor visitor;
  const Result<RecoveredPosition> position = (*log)->recover(&visitor);
  if (!position.ok()) return position.status();
  if (Status status = (*log)->end_recovery(); !status.ok()) return status;
  return created;
}

Result<std::unique_ptr<CommitLog>> open_rocksdb_log(const StorageOptions& options) {
  if (Status status = options.validate(); !status.ok()) return status;
  auto armed = std::make_unique<std::atomic<bool>>(false);
  auto store = storage::Store::open(options, armed.get());
  if (!store.ok()) return store.status();
  return std::unique_ptr<CommitLog>(
      std::make_unique<storage::RocksdbLog>(options, std::move(armed), std::move(*store)));
}

}  // namespace kilokv::server
