#include "server/storage/restore_writer.hpp"

#include <rocksdb/write_batch.h>

#include <utility>
#include <vector>

#include "server/storage/acknowledged_file.hpp"
#include "server/storage/bytes.hpp"
#include "server/storage/store.hpp"
#include "server/storage/system_call.hpp"

namespace kilokv::server::storage {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
constexpr std::uint64_t kGeneration = 1;
constexpr const char* kRestoring = "restoring";

rocksdb::WriteOptions unlogged() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

class StoreWriter final : public RestoreWriter {
 public:
  StoreWriter(StorageOptions options, std::unique_ptr<Store> store)
      : options_(std::move(options)), store_(std::move(store)) {}

  Status header(const BackupHeader& header) override {
    header_ = header;
    return {};
  }
  Status state(const StoredRecord& record, std::string_view value) override {
    if (record.expires_us != 0) format_ = kExpiryDatabaseFormat;
    return put(Family::state, record.key, value);
  }
  // All sessions are of an earlier incarnation from now on.
  Status session(const StoredSession& session, std::string_view key) override {
    StoredSession frozen = session;
    frozen.frozen = true;
    return put(Family::sessions, ordered_key(kGeneration).append(key), encode_session(frozen));
  }
  Status log(const RecordView& record, std::string_view bytes) override {
    return put(Family::log, ordered_key(record.header().number), bytes);
  }
  Result<Incarnation> finish(const RecoveredPosition& position, Version first_version) override;

 private:
  Status put(Family family, std::string_view key, std::string_view value);
  Status write();
  Status write_metadata(const Incarnation& incarnation);

  const StorageOptions options_;
  const std::unique_ptr<Store> store_;
  BackupHeader header_;
  std::uint32_t format_ = kRestoredDatabaseFormat;
  rocksdb::WriteBatch batch_;
  Family family_ = Family::state;  // of what is in the batch
};

Status StoreWriter::put(Family family, std::string_view key, std::string_view value) {
  if (family != family_) {
    if (Status status = write(); !status.ok()) return status;
    family_ = family;
  }
  const rocksdb::Status gathered = batch_.Put(store_->family(family), rocksdb::Slice(key.data(), key.size()),
                                              rocksdb::Slice(value.data(), value.size()));
  if (!gathered.ok()) return store_->status_of(gathered, kRestoring);
  return batch_.GetDataSize() < kWriteBytes ? Status() : write();
}

// Waits while the family has buffers to flush, so that they do not fill the memory.
Status StoreWriter::write() {
  if (batch_.Count() == 0) return {};
  if (store_->property(family_, "rocksdb.num-immutable-mem-table") >= 2) {
    const rocksdb::Status flushed = store_->db()->Flush(rocksdb::FlushOptions(), store_->family(family_));
    if (!flushed.ok()) return store_->status_of(flushed, kRestoring);
  }
  const rocksdb::Status written = store_->db()->Write(unlogged(), &batch_);
  batch_.Clear();
  return store_->status_of(written, kRestoring);
}

Status StoreWriter::write_metadata(const Incarnation& incarnation) {
  std::string format;
  bytes::put(&format, format_);
  Checkpoint checkpoint = header_.checkpoint;
  checkpoint.generation = kGeneration;
  rocksdb::ColumnFamilyHandle* const metadata = store_->family(Family::metadata);
  rocksdb::WriteBatch batch;
  store_->begin_write(&batch);
  std::vector<std::pair<std::string, std::string>> values = {{kFormatKey, format},
                                                             {kIdentityKey, encode_identity(header_.identity)},
                                                             {kIncarnationKey, encode_incarnation(incarnation)},
                                                             {kCheckpointKey, encode_checkpoint(checkpoint)},
                                                             {kLogStartKey, ordered_key(checkpoint.covers.batch + 1)}};
  if (header_.has_access) values.emplace_back(kAccessKey, encode_access(header_.access));
  for (const auto& [key, value] : values) {
    const rocksdb::Status put = batch.Put(metadata, key, value);
    if (!put.ok()) return store_->status_of(put, kRestoring);
  }
  rocksdb::WriteOptions synced;
  synced.sync = true;
  return store_->status_of(store_->write(synced, &batch), kRestoring);
}

// Everything is durable before the metadata, and the directory counts only after that.
Result<Incarnation> StoreWriter::finish(const RecoveredPosition& position, Version first_version) {
  if (Status status = write(); !status.ok()) return status;
  const rocksdb::Status flushed = store_->db()->Flush(
      rocksdb::FlushOptions(),
      {store_->family(Family::state), store_->family(Family::sessions), store_->family(Family::log)});
  if (!flushed.ok()) return store_->status_of(flushed, kRestoring);
  Incarnation incarnation{.after_batch = position.batch, .first_version = first_version};
  if (Status status = fill_with_random(&incarnation.id); !status.ok()) return status;
  if (Status status = write_metadata(incarnation); !status.ok()) return status;
  AcknowledgedFile acknowledged;
  if (const Result<BatchNumber> opened = acknowledged.open(store_->directory()); !opened.ok()) return opened.status();
  if (Status status = acknowledged.write(position.batch); !status.ok()) return status;
  if (Status status = store_->end_creation(); !status.ok()) return status;
  if (Status status = store_->end_recovery(); !status.ok()) return status;
  return incarnation;
}

}  // namespace

Result<std::unique_ptr<RestoreWriter>> RestoreWriter::create(const std::string& directory) {
  StorageOptions options;
  options.data_dir = directory;
  Result<std::unique_ptr<Store>> store = Store::open(options, nullptr);
  if (!store.ok()) return store.status();
  if (!(*store)->created()) return refuse_directory(directory, "has a database already");
  return std::unique_ptr<RestoreWriter>(std::make_unique<StoreWriter>(std::move(options), std::move(*store)));
}

}  // namespace kilokv::server::storage
