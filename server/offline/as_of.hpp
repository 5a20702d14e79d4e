// What a backup holds, as of an earlier batch or time. A checkpoint copies sessions while requests go on. So a session
// can hold results of batches after the checkpoint, which the log of the backup has, too. Where a restore ends before
// such a batch, its results must not come back: what they tell of is undone.
//
// Thread safety: one thread.
#pragma once

#include <string_view>

#include "engine/base/status.hpp"
#include "server/core/commit_log.hpp"
#include "server/storage/backup_visit.hpp"

namespace kilokv::server::offline {

// Takes out the results of batches after this batch or time. DATA_LOSS: the results are malformed.
Status drop_later_results(const storage::BackupUntil& until, StoredSession* session);

// Gives everything to `next`, and sessions without later results.
class AsOf final : public storage::BackupTarget {
 public:
  AsOf(storage::BackupUntil until, storage::BackupTarget* next) : until_(until), next_(next) {}

  Status header(const storage::BackupHeader& header) override { return next_->header(header); }
  Status state(const StoredRecord& record, std::string_view value) override { return next_->state(record, value); }
  Status session(const StoredSession& session, std::string_view key) override;
  Status log(const storage::RecordView& record, std::string_view bytes) override { return next_->log(record, bytes); }

 private:
  const storage::BackupUntil until_;
  storage::BackupTarget* const next_;
};

}  // namespace kilokv::server::offline
