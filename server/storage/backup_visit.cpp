#include "server/storage/backup_visit.hpp"

#include <algorithm>

#include "engine/base/check.hpp"
#include "server/core/time_text.hpp"
#include "server/storage/bytes.hpp"

namespace kilokv::server::storage {
namespace {

Status lost(const std::string& message) { return {StatusCode::data_loss, message}; }

std::string text_of(BatchNumber batch) { return "batch " + std::to_string(batch); }

}  // namespace

Status VisitorTarget::header(const BackupHeader& header) {
  if (Status status = visitor_->identity(header.identity); !status.ok()) return status;
  return header.has_access ? visitor_->access_table(header.access) : Status();
}

Status BackupVisit::take(const Frame& frame) {
  const bool is_first = last_kind_ == FrameKind::end && !complete_;
  if (is_first != (frame.kind == FrameKind::header)) return lost("the header is not the first frame");
  const bool is_of_archive = frame.kind == FrameKind::archive || frame.kind == FrameKind::archive_end;
  const bool is_log = frame.kind == FrameKind::log;
  if (complete_ ? !(is_of_archive || is_log) : is_of_archive) return lost("a frame is not where it belongs");
  if (!complete_ && !is_first && frame.kind < last_kind_) return lost("the frames are not in their order");
  last_kind_ = frame.kind;
  switch (frame.kind) {
    case FrameKind::header: return take_header(frame);
    case FrameKind::state: return take_state(frame);
    case FrameKind::session: return take_sessions(frame);
    case FrameKind::log: return take_log(frame);
    case FrameKind::end: return take_end(frame);
    case FrameKind::archive: return take_archive(frame);
    case FrameKind::archive_end: return take_archive_end(frame);
  }
  return lost("a frame of an unknown kind");
}

Status BackupVisit::take_header(const Frame& frame) {
  Result<BackupHeader> header = decode_header(frame.payload);
  if (!header.ok()) return header.status();
  header_ = std::move(*header);
  position_ = seen_ = header_.checkpoint.covers;
  last_crc_ = header_.checkpoint.record_crc;
  highest_version_ = header_.boundary.next_version;
  return target_->header(header_);
}

Status BackupVisit::take_state(const Frame& frame) {
  return each_entry(frame.payload, [this](std::string_view key, std::string_view value) -> Status {
    if (!last_key_.empty() && key <= last_key_) return lost("the keys of the state are not in their order");
    last_key_ = key;
    StoredRecord record;
    record.key = key;
    if (Status status = decode_state(value, &record); !status.ok()) return status;
    state_version_ = std::max(state_version_, record.version);
    return target_->state(record, value);
  });
}

Status BackupVisit::take_sessions(const Frame& frame) {
  return each_entry(frame.payload, [this](std::string_view key, std::string_view value) -> Status {
    StoredSession session;
    std::uint64_t generation = 0;
    if (Status status = decode_session_key(ordered_key(0).append(key), &generation, &session); !status.ok()) {
      return status;
    }
    if (Status status = decode_session(value, &session); !status.ok()) return status;
    ++sessions_;
    return target_->session(session, key);
  });
}

Status BackupVisit::take_log(const Frame& frame) {
  return each_log_entry(frame.payload, [this](std::string_view bytes) { return take_record(bytes); });
}

bool BackupVisit::is_wanted(const RecordView& record) const {
  if (until_.batch && record.header().number > *until_.batch) return false;
  return !until_.time_us || record.header().time_us <= *until_.time_us;
}

// As a start checks the records of the log. An archive begins anywhere, so it may repeat records.
Status BackupVisit::take_record(std::string_view bytes) {
  const Result<RecordView> record = RecordView::parse(bytes);
  if (!record.ok()) return record.status();
  const BatchNumber batch = record->header().number;
  if (complete_ && batch <= seen_.batch) return {};
  if (batch != seen_.batch + 1) {
    return lost(text_of(seen_.batch + 1) + " is missing, " + text_of(batch) + " follows");
  }
  if (record->previous_crc() != last_crc_) return lost(text_of(batch) + " does not follow the record before it");
  if (record->header().first_version < seen_.next_version || record->header().time_us < seen_.time_us) {
    return lost("the versions or the time of " + text_of(batch) + " go back");
  }
  last_crc_ = record->crc();
  if (first_time_us_ == 0) first_time_us_ = record->header().time_us;
  seen_ = {.batch = batch,
           .checkpoint_batch = header_.checkpoint.covers.batch,
           .next_version = record->next_version(),
           .tombstone_floor = record->tombstone_floor(),
           .time_us = record->header().time_us,
           .state_hash = record->state_hash(),
           .log_bytes_since_checkpoint = seen_.log_bytes_since_checkpoint + bytes.size()};
  highest_version_ = std::max(highest_version_, seen_.next_version);
  if (!first_restorable_ && seen_.next_version > state_version_) first_restorable_ = batch;
  if (!is_wanted(*record)) return {};
  position_ = seen_;
  return target_->log(*record, bytes);
}

// The log has ended where the header says. The state may need no record of the log.
Status BackupVisit::take_end(const Frame& frame) {
  const Result<BackupEnd> end = decode_end(frame.payload);
  if (!end.ok()) return end.status();
  if (end->frames != frame.index + 1) return lost("the last frame counts other frames");
  if (sessions_ != header_.checkpoint.session_count) {
    return lost("the checkpoint has " + std::to_string(header_.checkpoint.session_count) +
                " session records, the backup " + std::to_string(sessions_));
  }
  const bool fits = end->position.batch == seen_.batch && end->position.state_hash == seen_.state_hash &&
                    end->position.time_us == seen_.time_us && header_.boundary.batch == seen_.batch;
  if (!fits) return lost("the log ends at " + text_of(seen_.batch) + ", the backup at " + text_of(end->position.batch));
  if (header_.checkpoint.covers.next_version > state_version_) first_restorable_ = header_.checkpoint.covers.batch;
  if (!first_restorable_) return lost("the state has a version that no batch has");
  highest_version_ = std::max(highest_version_, end->position.next_version);
  complete_ = true;
  return {};
}

Status BackupVisit::take_archive(const Frame& frame) {
  const Result<ArchiveHeader> archive = decode_archive(frame.payload);
  if (!archive.ok()) return archive.status();
  if (archive->database == header_.identity.id && archive->incarnation == header_.identity.incarnation.id) return {};
  return {StatusCode::failed_precondition, ErrorReason::failed,
          "the archive is of another database, or of another incarnation of this one"};
}

Status BackupVisit::take_archive_end(const Frame& frame) const {
  const Result<BackupEnd> end = decode_end(frame.payload);
  if (!end.ok()) return end.status();
  if (end->position.batch == seen_.batch && end->position.state_hash == seen_.state_hash) return {};
  return lost("the file ends with " + text_of(seen_.batch) + ", and should end with " + text_of(end->position.batch));
}

bool BackupVisit::is_enough() const {
  if (!complete_) return false;
  if (until_.batch) return seen_.batch >= *until_.batch;
  return until_.time_us && seen_.time_us > *until_.time_us;
}

Status BackupVisit::check_until() const {
  KILOKV_CHECK(complete_);
  const auto refused = [](const std::string& why) {
    return Status(StatusCode::failed_precondition, ErrorReason::failed, why);
  };
  const std::string range = "; what is there can be restored to each batch from " + std::to_string(*first_restorable_) +
                            " to " + std::to_string(seen_.batch);
  if (until_.batch && *until_.batch > seen_.batch) return refused(text_of(*until_.batch) + " is not there yet" + range);
  if (until_.batch && *until_.batch < *first_restorable_) {
    return refused(text_of(*until_.batch) + " is before the backup" + range);
  }
  if (until_.time_us && (position_.batch < *first_restorable_ || *until_.time_us < header_.checkpoint.covers.time_us)) {
    return refused("the time " + format_utc(*until_.time_us) + " is before the backup" + range);
  }
  // An empty database would look like a restore of something.
  if (until_.time_us && position_.batch == 0 && seen_.batch > 0) {
    return refused("the time " + format_utc(*until_.time_us) + " is before the first batch, of " +
                   format_utc(first_time_us_) + "; an empty database needs no restore");
  }
  if (until_.time_us && *until_.time_us > seen_.time_us) {
    return refused(
        "the time " + format_utc(*until_.time_us) + " is after the last batch that is there, of " +
        format_utc(seen_.time_us) +
        ": there may have been later ones. Give an archive that has them, or restore to the end, without a time" +
        range);
  }
  return {};
}

}  // namespace kilokv::server::storage
