#include "server/storage/checkpoint_writer.hpp"

#include <algorithm>

#include "engine/base/check.hpp"
#include "server/core/fail_point.hpp"
#include "server/storage/log_record.hpp"

namespace kilokv::server::storage {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;  // small enough to let an append run between two writes
constexpr const char* kWriting = "writing a checkpoint";

Status fail_at(const char* point) {
  if (!fail_point(point)) return {};
  return {StatusCode::internal, std::string("fail point ") + point};
}

rocksdb::WriteOptions unlogged() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

rocksdb::WriteOptions synced() {
  rocksdb::WriteOptions options;
  options.sync = true;
  return options;
}

std::string format_value(std::uint32_t format) {
  std::string value;
  put(&value, format);
  return value;
}

}  // namespace

void CheckpointWriter::restore(const Checkpoint& current, std::uint64_t generation, std::uint32_t format) {
  format_ = format;
  current_ = current;
  generation_ = generation;
}

Status CheckpointWriter::begin() {
  ++generation_;
  sessions_ = 0;
  batch_.Clear();
  return {};
}

Status CheckpointWriter::put(std::span<const StoredRecord> records) {
  if (Status status = fail_at("storage.checkpoint.records"); !status.ok()) return status;
  const bool expires =
      std::any_of(records.begin(), records.end(), [](const StoredRecord& record) { return record.expires_us != 0; });
  if (expires) {
    if (Status status = raise_format(kExpiryDatabaseFormat); !status.ok()) return status;
  }
  for (const StoredRecord& record : records) {
    value_.clear();
    encode_state(record, &value_);
    const rocksdb::Status gathered =
        batch_.Put(store_->family(Family::state), rocksdb::Slice(record.key.data(), record.key.size()), value_);
    if (!gathered.ok()) return store_->status_of(gathered, kWriting);
    if (batch_.GetDataSize() < kWriteBytes) continue;
    if (Status status = write(Family::state); !status.ok()) return status;
  }
  return write(Family::state);
}

Status CheckpointWriter::drop(std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    const rocksdb::Status gathered =
        batch_.Delete(store_->family(Family::state), rocksdb::Slice(key.data(), key.size()));
    if (!gathered.ok()) return store_->status_of(gathered, kWriting);
    if (batch_.GetDataSize() < kWriteBytes) continue;
    if (Status status = write(Family::state); !status.ok()) return status;
  }
  return write(Family::state);
}

// Writes the gathered records. Waits while the family has buffers to flush, because more buffers would stop every
// writer of the database.
Status CheckpointWriter::write(Family family) {
  if (batch_.Count() == 0) return {};
  if (store_->property(family, "rocksdb.num-immutable-mem-table") >= 2) {
    const rocksdb::Status flushed = store_->db()->Flush(rocksdb::FlushOptions(), store_->family(family));
    if (!flushed.ok()) return store_->status_of(flushed, kWriting);
  }
  const rocksdb::Status written = store_->db()->Write(unlogged(), &batch_);
  batch_.Clear();
  return store_->status_of(written, kWriting);
}

// An older program takes the key of a further piece, or a record with an expiry, for damage, also if the checkpoint
// never counts. RocksDB may flush records at any time. So the format is durable before the first such record is
// written.
Status CheckpointWriter::raise_format(std::uint32_t least) {
  if (format_ >= least) return {};
  rocksdb::WriteBatch raise;
  store_->begin_write(&raise);
  rocksdb::Status written = raise.Put(store_->family(Family::metadata), kFormatKey, format_value(least));
  if (written.ok()) written = store_->write(synced(), &raise);
  if (written.ok()) format_ = least;
  return store_->status_of(written, "raising the format of the database");
}

// Gathers small sessions; end() writes the rest.
Status CheckpointWriter::put(const StoredSession& session) {
  if (session.piece > 0) {
    if (Status status = raise_format(kAccessDatabaseFormat); !status.ok()) return status;
  }
  const std::string key = encode_session_key(generation_, session);
  // Put refuses a value of 4 GiB or more. Such a session must not be counted: the checkpoint would then be unreadable.
  const rocksdb::Status gathered = batch_.Put(store_->family(Family::sessions), key, encode_session(session));
  if (!gathered.ok()) return store_->status_of(gathered, kWriting);
  ++sessions_;
  return batch_.GetDataSize() < kWriteBytes ? Status() : write(Family::sessions);
}

Result<std::uint32_t> CheckpointWriter::record_crc(BatchNumber batch) const {
  if (batch == current_.covers.batch) return current_.record_crc;
  const std::string doing = "checkpointing through batch " + std::to_string(batch);
  rocksdb::PinnableSlice bytes;
  const rocksdb::Status found =
      store_->db()->Get(rocksdb::ReadOptions(), store_->family(Family::log), ordered_key(batch), &bytes);
  if (!found.ok()) return store_->status_of(found, doing);
  const Result<RecordView> record = RecordView::parse({bytes.data(), bytes.size()});
  if (!record.ok())
    return Status(record.status().code(), record.status().reason(), doing + ": " + record.status().message());
  return record->crc();
}

Status CheckpointWriter::end(const RecoveredPosition& covers, std::string_view access_table) {
  KILOKV_CHECK(covers.batch >= current_.covers.batch);
  const Result<std::uint32_t> crc = record_crc(covers.batch);
  if (!crc.ok()) return crc.status();
  if (Status status = write(Family::sessions); !status.ok()) return status;
  if (Status status = fail_at("storage.checkpoint.flush"); !status.ok()) return status;
  const rocksdb::Status flushed =
      store_->db()->Flush(rocksdb::FlushOptions(), {store_->family(Family::state), store_->family(Family::sessions)});
  if (!flushed.ok()) return store_->status_of(flushed, "flushing a checkpoint");

  if (Status status = fail_at("storage.checkpoint.commit"); !status.ok()) return status;
  Checkpoint next{.covers = covers, .record_crc = *crc, .generation = generation_, .session_count = sessions_};
  next.covers.checkpoint_batch = covers.batch;
  rocksdb::ColumnFamilyHandle* const metadata = store_->family(Family::metadata);
  rocksdb::WriteBatch commit;
  store_->begin_write(&commit);
  rocksdb::Status committed = commit.Put(metadata, kCheckpointKey, encode_checkpoint(next));
  if (committed.ok() && access_table.empty()) {
    committed = commit.Delete(metadata, kAccessKey);  // the table of an older checkpoint is not of this one
  } else if (committed.ok()) {
    committed = commit.Put(metadata, kAccessKey, encode_access(access_table));
    // Older programs would not read the table, and would report that the state hash is wrong.
    format_ = std::max(format_, kAccessDatabaseFormat);
    if (committed.ok()) committed = commit.Put(metadata, kFormatKey, format_value(format_));
  }
  if (committed.ok()) committed = store_->write(synced(), &commit);
  if (!committed.ok()) return store_->status_of(committed, "committing a checkpoint");
  current_ = next;

  if (Status status = fail_at("storage.checkpoint.committed"); !status.ok()) return status;
  // Not synced, because older generations are not read, and the next checkpoint removes what this one could not.
  const rocksdb::Status removed =
      store_->db()->DeleteRange(unlogged(), store_->family(Family::sessions), ordered_key(0), ordered_key(generation_));
  return store_->status_of(removed, "removing the sessions of the last checkpoint");
}

}  // namespace kilokv::server::storage
