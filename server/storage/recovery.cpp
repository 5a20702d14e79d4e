#include "server/storage/recovery.hpp"

#include <rocksdb/table_properties.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <cstring>

#include "server/core/hex.hpp"
#include "server/core/shown_key.hpp"
#include "server/storage/crc32c.hpp"
#include "server/storage/system_call.hpp"

namespace kilokv::server::storage {
namespace {

std::string_view view_of(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

constexpr StateSize kUnknownSize{std::uint64_t{1} << 40, 0, 0};  // more than fits

Status lost(const std::string& message) { return {StatusCode::data_loss, message}; }

}  // namespace

Result<RecoveredPosition> Recovery::run() {
  for (const auto step :
       {&Recovery::identify, &Recovery::read_checkpoint, &Recovery::visit_access, &Recovery::visit_state,
        &Recovery::visit_sessions, &Recovery::read_segments, &Recovery::visit_log, &Recovery::acknowledge_recovered}) {
    if (Status status = (this->*step)(); !status.ok()) return status;
  }
  position_.next_version = std::max(position_.next_version, identity_.incarnation.first_version);
  return position_;
}

Result<RecoveredPosition> Recovery::check(OnDamage found) {
  found_ = std::move(found);
  return run();
}

Status Recovery::identify() {
  if (Status status = store_->created() ? create_identity() : check_format(); !status.ok()) return status;
  const Result<std::optional<std::string>> stored = metadata(kIdentityKey);
  if (!stored.ok()) return stored.status();
  if (!*stored) return damaged("metadata", lost("the database identity is missing"));
  Result<DatabaseIdentity> identity = decode_identity(**stored);
  if (!identity.ok()) {
    if (Status status = passed("metadata", identity.status()); !status.ok()) return status;
    identity = DatabaseIdentity();
  }
  const Result<Incarnation> incarnation = read_incarnation(*identity);
  if (!incarnation.ok()) return damaged("metadata", incarnation.status());
  identity->incarnation = *incarnation;
  identity_ = *identity;
  // The chain of records begins with the database's id, so that a record of another database never fits.
  std::string id;
  put(&id, identity->id);
  secret_ = identity->key_secret;
  last_crc_ = crc32c(id);

  const Result<BatchNumber> acknowledged =
      acknowledged_ != nullptr ? acknowledged_->open(store_->directory()) : AcknowledgedFile::read(store_->directory());
  if (acknowledged.ok()) {
    durable_ = *acknowledged;
  } else if (Status status = passed("acknowledgement", acknowledged.status()); !status.ok()) {
    return found_ ? status : acknowledged.status();
  }
  if (store_->created()) {
    if (Status status = store_->end_creation(); !status.ok()) return status;
  }
  return visitor_->identity(*identity);
}

Status Recovery::check_format() {
  const Result<std::optional<std::string>> format = metadata(kFormatKey);
  if (!format.ok()) return format.status();
  if (!*format) return damaged("metadata", lost("the format number is missing, so the database has lost files"));
  Reader reader(**format);
  const auto actual = reader.get<std::uint32_t>();
  format_ = actual;
  if (!reader.finished()) return damaged("metadata", lost("the format number is malformed"));
  if (actual >= kFirstDatabaseFormat && actual <= kDatabaseFormat) return {};
  return damaged("metadata", {StatusCode::failed_precondition, ErrorReason::failed,
                              "the database has format " + std::to_string(actual) +
                                  "; this version reads formats up to " + std::to_string(kDatabaseFormat)});
}

// Only a restore writes it.
Result<Incarnation> Recovery::read_incarnation(const DatabaseIdentity& identity) const {
  const Result<std::optional<std::string>> stored = metadata(kIncarnationKey);
  if (!stored.ok()) return stored.status();
  if (*stored) return decode_incarnation(**stored);
  return Incarnation{.id = identity.id};
}

Status Recovery::create_identity() {
  DatabaseIdentity identity;
  std::array<unsigned char, 32> random{};
  if (Status status = fill_with_random(&random); !status.ok()) return status;
  std::memcpy(identity.id.data(), random.data(), identity.id.size());
  std::memcpy(&identity.key_secret.low, random.data() + 16, 8);
  std::memcpy(&identity.key_secret.high, random.data() + 24, 8);
  std::string format;
  put(&format, kFirstDatabaseFormat);
  rocksdb::WriteBatch batch;
  store_->begin_write(&batch);
  rocksdb::Status written = batch.Put(store_->family(Family::metadata), kFormatKey, format);
  if (written.ok()) {
    written = batch.Put(store_->family(Family::metadata), kIdentityKey, encode_identity(identity));
  }
  rocksdb::WriteOptions options;
  options.sync = true;
  if (written.ok()) written = store_->write(options, &batch);
  return store_->status_of(written, "creating the database's identity");
}

Status Recovery::read_checkpoint() {
  checkpoint_.record_crc = last_crc_;
  const Result<std::optional<std::string>> stored = metadata(kCheckpointKey);
  if (!stored.ok()) return stored.status();
  if (*stored) {
    const Result<Checkpoint> checkpoint = decode_checkpoint(**stored);
    if (!checkpoint.ok()) return damaged("metadata", checkpoint.status());
    checkpoint_ = *checkpoint;
  }
  position_ = checkpoint_.covers;
  last_crc_ = checkpoint_.record_crc;
  durable_ = std::max(durable_, checkpoint_.covers.batch);
  return {};
}

Status Recovery::visit_access() {
  const Result<std::optional<std::string>> stored = metadata(kAccessKey);
  if (!stored.ok()) return stored.status();
  if (!*stored) return {};
  const Result<std::string_view> table = decode_access(**stored);
  const Status status = table.ok() ? visitor_->access_table(*table) : table.status();
  return status.ok() ? Status() : passed("metadata", status);
}

// What the files of the state hold. A record that was written again is in several files, so this is an upper bound.
StateSize Recovery::state_size() const {
  rocksdb::TablePropertiesCollection files;
  StateSize size;
  if (!store_->db()->GetPropertiesOfAllTables(store_->family(Family::state), &files).ok()) return kUnknownSize;
  for (const auto& [name, properties] : files) {
    size.records += properties->num_entries;
    size.key_bytes += properties->raw_key_size;
    size.value_bytes += properties->raw_value_size;
  }
  size.records += store_->property(Family::state, "rocksdb.num-entries-active-mem-table") +
                  store_->property(Family::state, "rocksdb.num-entries-imm-mem-tables");
  size.value_bytes += store_->property(Family::state, "rocksdb.cur-size-all-mem-tables");
  return size;
}

Status Recovery::visit_state() {
  Status status;
  if (visitor_->must_count(state_size())) {
    status = each_state([this](const StoredRecord& record) {
      visitor_->count_record(record);
      return Status();
    });
    if (status.ok()) status = visitor_->counted();
  }
  if (status.ok()) {
    status = each_state([this](const StoredRecord& record) {
      store_->metrics().recovered_records.fetch_add(1, std::memory_order_relaxed);
      return visitor_->state_record(record);
    });
  }
  return status;
}

Status Recovery::each_state(const std::function<Status(const StoredRecord&)>& visit) {
  const std::unique_ptr<rocksdb::Iterator> it = scan(Family::state);
  StoredRecord record;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    record.key = view_of(it->key());
    Status status = decode_state(view_of(it->value()), &record);
    if (status.ok()) {
      if (status = visit(record); status.ok()) continue;
      if (!found_) return status;
    }
    // A check is for those who have the files. A start writes to the log, which may be read by others.
    const std::string key = found_ ? hex_of(record.key) : key_hash_text(record.key, secret_);
    if (status = passed("state of key " + key, status); !status.ok()) return status;
  }
  const Status read = store_->status_of(it->status(), "reading the state");
  return read.ok() ? read : passed("", read);
}

Status Recovery::visit_sessions() {
  const std::unique_ptr<rocksdb::Iterator> it = scan(Family::sessions);
  std::uint64_t count = 0;
  StoredSession session;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    if (Status status = decode_session_key(view_of(it->key()), &generation_, &session); !status.ok()) {
      if (status = passed("sessions", status); !status.ok()) return status;
      continue;
    }
    if (generation_ != checkpoint_.generation) continue;  // belongs to an older or an unfinished checkpoint
    ++count;
    Status status = decode_session(view_of(it->value()), &session);
    if (status.ok()) {
      if (status = visitor_->session(session); status.ok()) continue;
      if (!found_) return status;
    }
    const std::string where = "session " + shown(session.session);
    if (status = passed(where, status); !status.ok()) return status;
  }
  if (Status status = store_->status_of(it->status(), "reading the sessions"); !status.ok()) {
    if (status = passed("", status); !status.ok()) return status;
  }
  generation_ = std::max(generation_, checkpoint_.generation);
  if (count == checkpoint_.session_count) return {};
  return passed("sessions", lost("the checkpoint has " + std::to_string(checkpoint_.session_count) + ", found " +
                                 std::to_string(count)));
}

Status Recovery::read_segments() {
  const Result<std::optional<std::string>> start = metadata(kLogStartKey);
  if (!start.ok()) return start.status();
  if (*start) {
    if ((*start)->size() != 8) return damaged("metadata", lost("the start of the log is malformed"));
    history_begin_ = log_start_ = number_of_key(**start);
  }
  const std::unique_ptr<rocksdb::Iterator> it = scan(Family::metadata);
  const std::string_view prefix = kSegmentPrefix;
  for (it->Seek(kSegmentPrefix); it->Valid() && it->key().starts_with(kSegmentPrefix); it->Next()) {
    LogSegment segment;
    Status status = lost("a log segment's key is malformed");
    if (it->key().size() == prefix.size() + 8) {
      segment.first_batch = number_of_key(view_of(it->key()).substr(prefix.size()));
      status = decode_segment(view_of(it->value()), &segment);
    }
    if (!status.ok()) {
      if (status = passed("metadata", status); !status.ok()) return status;
      continue;
    }
    history_->restore(segment);
    history_begin_ = segment.last_batch + 1;
    durable_ = std::max(durable_, segment.last_batch);
  }
  return store_->status_of(it->status(), "reading the log's segments");
}

Status Recovery::visit_log() {
  const std::unique_ptr<rocksdb::Iterator> it = scan(Family::log);
  BatchNumber next = log_begin();
  for (it->Seek(ordered_key(next)); it->Valid(); it->Next(), ++next) {
    if (it->key().size() != 8) return damaged("log", lost("a key is malformed"));
    const BatchNumber batch = number_of_key(view_of(it->key()));
    if (batch != next) {
      const std::string hole = "batch " + std::to_string(next) + " is missing, batch " + std::to_string(batch);
      if (Status status = passed("log", lost(hole + " follows")); !status.ok()) return status;
      previous_crc_.reset();
      next = batch;
    }
    if (Status status = visit_record(batch, view_of(it->value())); !status.ok()) {
      if (!found_) return status;
      if (status = passed("log at batch " + std::to_string(batch), status); !status.ok()) return status;
      previous_crc_.reset();
    }
  }
  if (Status status = store_->status_of(it->status(), "reading the log at batch " + std::to_string(next));
      !status.ok()) {
    if (status = passed("", status); !status.ok()) return status;
  }
  if (durable_ < next) return {};
  return passed("log", lost("it ends at batch " + std::to_string(next - 1) + ", but batch " + std::to_string(durable_) +
                            " was acknowledged"));
}

// A start reads what it needs. A check reads all that is kept.
BatchNumber Recovery::log_begin() const {
  return std::min(checkpoint_.covers.batch + 1, found_ ? log_start_ : history_begin_);
}

// The records that the checkpoint covers have a chain, too. It ends with the record that the checkpoint names.
Status Recovery::check_chain(const RecordView& record) {
  const BatchNumber batch = record.header().number, covered = checkpoint_.covers.batch;
  if (batch == covered + 1) previous_crc_ = checkpoint_.record_crc;
  const bool follows = !previous_crc_ || record.previous_crc() == *previous_crc_;
  previous_crc_ = record.crc();
  if (batch > covered) last_crc_ = record.previous_crc();  // what is wrong before this record was told already
  if (!follows) return lost("does not follow the record before it");
  const bool is_named = batch != covered || record.crc() == checkpoint_.record_crc;
  return is_named ? Status() : lost("is not the record that the checkpoint names");
}

// For a record that the checkpoint covers, only the size is used. The records before it are counted by their segment.
Status Recovery::visit_record(BatchNumber batch, std::string_view bytes) {
  const std::string where = "log at batch " + std::to_string(batch);
  const Result<RecordView> record = RecordView::parse(bytes);
  if (!record.ok()) return damaged(where, record.status());
  if (record->header().number != batch) return damaged(where, lost("holds another batch's record"));
  if (batch >= history_begin_) history_->add(batch, record->header().time_us, bytes.size());
  if (found_) {
    if (Status status = check_chain(*record); !status.ok()) return damaged(where, status);
  }
  if (batch <= checkpoint_.covers.batch) return {};
  if (record->previous_crc() != last_crc_) return damaged(where, lost("does not follow the record before it"));
  if (record->header().first_version < position_.next_version || record->header().time_us < position_.time_us) {
    return damaged(where, lost("its versions or its time go back"));
  }
  store_->metrics().recovered_batches.fetch_add(1, std::memory_order_relaxed);
  last_crc_ = record->crc();
  position_.batch = batch;
  position_.next_version = record->next_version();
  position_.tombstone_floor = record->tombstone_floor();
  position_.time_us = record->header().time_us;
  position_.state_hash = record->state_hash();
  position_.log_bytes_since_checkpoint += bytes.size();
  writes_since_checkpoint_ += record->writes();
  return record->visit(visitor_);
}

// Clients see the recovered state from now on, even if it was not acknowledged before. It is durable, because opening
// the database flushed the write-ahead log.
Status Recovery::acknowledge_recovered() { return found_ ? Status() : acknowledged_->write(position_.batch); }

Result<std::optional<std::string>> Recovery::metadata(const char* key) const {
  std::string value;
  const rocksdb::Status found =
      store_->db()->Get(rocksdb::ReadOptions(), store_->family(Family::metadata), key, &value);
  if (found.IsNotFound()) return std::optional<std::string>();
  if (!found.ok()) return store_->status_of(found, std::string("reading metadata ") + key);
  return std::optional<std::string>(std::move(value));
}

std::unique_ptr<rocksdb::Iterator> Recovery::scan(Family family) const {
  rocksdb::ReadOptions options;
  options.readahead_size = std::size_t{2} << 20;
  return std::unique_ptr<rocksdb::Iterator>(store_->db()->NewIterator(options, store_->family(family)));
}

// A check tells of a damage and goes on. A start ends with it. `where` empty: the status says it.
Status Recovery::passed(const std::string& where, const Status& status) const {
  const std::string directory = "data directory ";
  const bool is_placed = where.empty() || status.message().starts_with(directory);
  Status placed = is_placed ? status : damaged(where, status);
  if (!found_ || status.code() != StatusCode::data_loss) return placed;
  found_(placed);
  return {};
}

Status Recovery::damaged(const std::string& where, const Status& status) const {
  return {status.code(), status.reason(),
          "data directory " + store_->directory() + ", " + where + ": " + status.message()};
}

}  // namespace kilokv::server::storage
