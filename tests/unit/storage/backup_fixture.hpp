// Backups of the sample batches of log_fixture.hpp. Thread safety: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/core/backup.hpp"
#include "server/storage/backup_visit.hpp"
#include "tests/unit/storage/log_fixture.hpp"

namespace kilokv::server::storage {

// All frames that are left.
std::vector<std::string> frames_of(BackupSource* source);

// What the frames give to the visitor of a start, as lines of text.
struct VisitedBackup {
  explicit VisitedBackup(const std::vector<std::string>& frames, BackupUntil until = {});

  Transcript transcript;
  VisitorTarget target{&transcript};
  BackupVisit visit;
  Status status;  // of the first frame that was refused
};

}  // namespace kilokv::server::storage
