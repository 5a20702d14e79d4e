#include "server/storage/backup_source.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "server/storage/crc32c.hpp"
#include "server/storage/log_record.hpp"
#include "server/storage/system_call.hpp"

namespace kilokv::server::storage {
namespace {

std::string_view view_of(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// Just after this key, and before all others that follow it.
std::string successor(const std::string& key) { return key + '\0'; }

}  // namespace

StoreBackup::StoreBackup(const Store* store, std::shared_ptr<LogPin> pin)
    : store_(store), pin_(std::move(pin)), snapshot_(store->db()->GetSnapshot()) {}

StoreBackup::~StoreBackup() { store_->db()->ReleaseSnapshot(snapshot_); }

// Nothing is trimmed until the snapshot has said which part of the log it needs.
Result<std::unique_ptr<BackupSource>> StoreBackup::open(const Store* store, LogPins* pins) {
  const std::lock_guard lock(pins->mutex());
  std::unique_ptr<StoreBackup> backup(new StoreBackup(store, pins->add(0)));
  if (Status status = backup->read_header(); !status.ok()) return status;
  backup->pin_->from.store(backup->header_.checkpoint.covers.batch + 1);
  return std::unique_ptr<BackupSource>(std::move(backup));
}

Status StoreBackup::read_header() {
  if (Status status = fill_with_random(&header_.id); !status.ok()) return status;
  if (Status status = read_identity(); !status.ok()) return status;
  const Result<std::string> access = metadata(kAccessKey);
  if (!access.ok()) return access.status();
  header_.has_access = !access->empty();
  if (header_.has_access) {
    const Result<std::string_view> table = decode_access(*access);
    if (!table.ok()) return table.status();
    header_.access = *table;
  }
  if (Status status = read_boundary(); !status.ok()) return status;
  estimated_bytes_ = store_->property(Family::state, "rocksdb.live-sst-files-size") +
                     store_->property(Family::state, "rocksdb.cur-size-all-mem-tables") +
                     store_->property(Family::sessions, "rocksdb.estimate-live-data-size");
  return {};
}

Status StoreBackup::read_identity() {
  const Result<std::string> identity = metadata(kIdentityKey), incarnation = metadata(kIncarnationKey),
                            checkpoint = metadata(kCheckpointKey);
  for (const auto* read : {&identity, &incarnation, &checkpoint}) {
    if (!read->ok()) return read->status();
  }
  const Result<DatabaseIdentity> decoded = decode_identity(*identity);
  if (!decoded.ok()) return decoded.status();
  header_.identity = *decoded;
  header_.identity.incarnation.id = decoded->id;
  if (!incarnation->empty()) {
    const Result<Incarnation> of_restore = decode_incarnation(*incarnation);
    if (!of_restore.ok()) return of_restore.status();
    header_.identity.incarnation = *of_restore;
  }
  if (checkpoint->empty()) {  // the log begins with the database
    std::string id;
    put(&id, decoded->id);
    header_.checkpoint.record_crc = crc32c(id);
    return {};
  }
  const Result<Checkpoint> covered = decode_checkpoint(*checkpoint);
  if (!covered.ok()) return covered.status();
  header_.checkpoint = *covered;
  return {};
}

// The last record of the log in the snapshot says where the backup ends. It is durable: RocksDB shows a write only when
// it is synced.
Status StoreBackup::read_boundary() {
  header_.boundary = header_.checkpoint.covers;
  const std::unique_ptr<rocksdb::Iterator> it = scan(Family::log);
  it->SeekToLast();
  if (!it->status().ok()) return failed(it->status(), "looking for the end of the log");
  if (it->Valid() && number_of_key(view_of(it->key())) > header_.boundary.batch) {
    const Result<RecordView> record = RecordView::parse(view_of(it->value()));
    if (!record.ok()) return record.status();
    header_.boundary = {.batch = record->header().number,
                        .next_version = record->next_version(),
                        .tombstone_floor = record->tombstone_floor(),
                        .time_us = record->header().time_us,
                        .state_hash = record->state_hash()};
  }
  header_.boundary.checkpoint_batch = header_.checkpoint.covers.batch;
  Version& next = header_.boundary.next_version;
  next = std::max(next, header_.identity.incarnation.first_version);
  return {};
}

// Empty: there is no such value.
Result<std::string> StoreBackup::metadata(const char* key) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  std::string value;
  const rocksdb::Status found = store_->db()->Get(options, store_->family(Family::metadata), key, &value);
  if (found.IsNotFound()) return std::string();
  if (!found.ok()) return failed(found, "reading metadata");
  return value;
}

std::unique_ptr<rocksdb::Iterator> StoreBackup::scan(Family family) const {
  rocksdb::ReadOptions options;
  options.snapshot = snapshot_;
  options.readahead_size = std::size_t{128} << 10;
  return std::unique_ptr<rocksdb::Iterator>(store_->db()->NewIterator(options, store_->family(family)));
}

Status StoreBackup::failed(const rocksdb::Status& status, const char* doing) const {
  return store_->status_of(status, std::string("making a backup, ") + doing);
}

std::string StoreBackup::session_prefix() const { return ordered_key(header_.checkpoint.generation); }

void StoreBackup::start(FrameKind kind) {
  kind_ = kind;
  after_.clear();
}

Status StoreBackup::seek(const BackupPoint& point) {
  const bool is_known = point.kind >= static_cast<std::uint8_t>(FrameKind::header) &&
                        point.kind <= static_cast<std::uint8_t>(FrameKind::log) && point.key.size() <= 4096 &&
                        (point.kind != static_cast<std::uint8_t>(FrameKind::log) || point.key.size() == 8);
  if (!is_known) {
    return Status::invalid({"after", "the last frame that the client has", "no frame of a backup", ""});
  }
  ended_ = false;
  index_ = point.frame + 1;
  crc_ = point.crc;
  kind_ = static_cast<FrameKind>(point.kind);
  after_ = point.key;
  if (kind_ == FrameKind::header) start(FrameKind::state);
  return {};
}

// Gathers entries after `from` until the frame is full.
Status StoreBackup::fill(Family family, const std::string& from,
                         const std::function<bool(std::string_view, std::string_view)>& take) {
  const std::unique_ptr<rocksdb::Iterator> it = scan(family);
  for (it->Seek(from); it->Valid() && payload_.size() < kFramePayloadBytes; it->Next()) {
    if (!take(view_of(it->key()), view_of(it->value()))) break;
  }
  return failed(it->status(), "reading it");
}

Status StoreBackup::fill_state() {
  return fill(Family::state, after_.empty() ? after_ : successor(after_), [this](auto key, auto value) {
    put_entry(key, value, &payload_);
    after_ = key;
    return true;
  });
}

// Without the generation, which only the directory needs.
Status StoreBackup::fill_sessions() {
  const std::string prefix = session_prefix();
  return fill(Family::sessions, after_.empty() ? prefix : successor(prefix + after_), [&](auto key, auto value) {
    if (!key.starts_with(prefix)) return false;
    put_entry(key.substr(prefix.size()), value, &payload_);
    after_ = key.substr(prefix.size());
    return true;
  });
}

Status StoreBackup::fill_log() {
  const BatchNumber next = after_.empty() ? header_.checkpoint.covers.batch + 1 : number_of_key(after_) + 1;
  return fill(Family::log, ordered_key(next), [this](auto key, auto value) {
    put_log_entry(value, &payload_);
    after_ = key;
    return true;
  });
}

Status StoreBackup::check_pin() const {
  if (!pin_->lost.load()) return {};
  return {
      StatusCode::aborted, ErrorReason::snapshot_too_old,
      "the log has grown by more than --archive-lag-max since the backup began, or the data disk is short of space, so "
      "the backup ends; start it again, with a larger --archive-lag-max or --backup-rate-max of the server"};
}

Result<bool> StoreBackup::next(std::string* frame) {
  frame->clear();
  if (ended_) return false;
  if (Status status = check_pin(); !status.ok()) return status;
  payload_.clear();
  if (kind_ == FrameKind::header) {
    payload_ = encode_header(header_);
    crc_ = encode_frame(FrameKind::header, index_++, crc_, payload_, frame);
    start(FrameKind::state);
    return true;
  }
  for (const auto& [kind, gather, following] :
       {std::tuple{FrameKind::state, &StoreBackup::fill_state, FrameKind::session},
        std::tuple{FrameKind::session, &StoreBackup::fill_sessions, FrameKind::log},
        std::tuple{FrameKind::log, &StoreBackup::fill_log, FrameKind::end}}) {
    if (kind_ != kind) continue;
    if (Status status = (this->*gather)(); !status.ok()) return status;
    // The log may have been trimmed while it was read.
    if (Status status = check_pin(); !status.ok()) return status;
    if (Status status = check_payload(payload_); !status.ok()) return status;
    if (payload_.empty()) {
      start(following);
      continue;
    }
    crc_ = encode_frame(kind, index_++, crc_, payload_, frame);
    return true;
  }
  crc_ = encode_frame(FrameKind::end, index_, crc_, encode_end({header_.boundary, index_ + 1}), frame);
  ended_ = true;
  store_->metrics().archive_gap_batches.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace kilokv::server::storage
