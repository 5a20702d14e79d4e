// Reads the frames of a backup, and then those of an archive, in their order. It checks everything that a start of the
// server checks, and gives what is in them to a target, up to the batch or the time that is wanted.
//
// The state of a backup is fuzzy: its records may be newer than the checkpoint. So the first batch to which it can be
// restored is the first one after which no record of the state is newer.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/storage/backup_format.hpp"
#include "server/storage/log_record.hpp"

namespace kilokv::server::storage {

// What is in a backup. If a call returns a Status that is not ok, the visit ends with it.
class BackupTarget {
 public:
  virtual ~BackupTarget() = default;
  virtual Status header(const BackupHeader& header) = 0;
  virtual Status state(const StoredRecord& record, std::string_view value) = 0;
  // `key`: that of the session record, without the generation.
  virtual Status session(const StoredSession& session, std::string_view key) = 0;
  virtual Status log(const RecordView& record, std::string_view bytes) = 0;
};

// Gives it to the visitor of a start.
class VisitorTarget final : public BackupTarget {
 public:
  explicit VisitorTarget(RecoveryVisitor* visitor) : visitor_(visitor) {}
  Status header(const BackupHeader& header) override;
  Status state(const StoredRecord& record, std::string_view) override { return visitor_->state_record(record); }
  Status session(const StoredSession& session, std::string_view) override { return visitor_->session(session); }
  Status log(const RecordView& record, std::string_view) override { return record.visit(visitor_); }

 private:
  RecoveryVisitor* const visitor_;
};

// Where to end. Empty: after everything.
struct BackupUntil {
  std::optional<BatchNumber> batch;  // after this batch
  std::optional<TimeUs> time_us;     // after the last batch with at most this stamp
};

class BackupVisit {
 public:
  explicit BackupVisit(BackupTarget* target, BackupUntil until = {}) : target_(target), until_(until) {}

  // Takes the next frame, whose chain was checked. DATA_LOSS: it does not fit to those before.
  Status take(const Frame& frame);
  // Whether the last frame of the backup was taken.
  bool complete() const { return complete_; }
  // Whether everything that is wanted was read after the end of the backup, so that nothing more is needed.
  bool is_enough() const;
  // Whether the last frame was the end of a file of the archive, whose last batch is this one.
  bool archive_ended_at(BatchNumber batch) const {
    return last_kind_ == FrameKind::archive_end && seen_.batch == batch;
  }
  // Requires: complete(). FAILED_PRECONDITION: what is wanted is not in them; the message says what is.
  Status check_until() const;

  const BackupHeader& header() const { return header_; }
  // After the last batch that the target has got.
  const RecoveredPosition& position() const { return position_; }
  // The highest next version that was named, also by batches that the target has not got.
  Version highest_version() const { return highest_version_; }

 private:
  Status take_header(const Frame& frame);
  Status take_state(const Frame& frame);
  Status take_sessions(const Frame& frame);
  Status take_log(const Frame& frame);
  Status take_record(std::string_view bytes);
  Status take_end(const Frame& frame);
  Status take_archive(const Frame& frame);
  Status take_archive_end(const Frame& frame) const;
  bool is_wanted(const RecordView& record) const;

  BackupTarget* const target_;
  const BackupUntil until_;
  BackupHeader header_;
  FrameKind last_kind_ = FrameKind::end;  // nothing was taken yet
  bool complete_ = false;
  std::string last_key_;
  std::uint64_t sessions_ = 0;
  Version state_version_ = 0;          // the highest in the state
  RecoveredPosition position_, seen_;  // of the target, and of all records
  std::uint32_t last_crc_ = 0;
  TimeUs first_time_us_ = 0;  // the stamp of the first record; 0: there was none
  Version highest_version_ = 0;
  std::optional<BatchNumber> first_restorable_;  // empty: not known yet
};

}  // namespace kilokv::server::storage
