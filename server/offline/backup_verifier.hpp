// Compares the hash of the state of a backup, and takes no memory for the records of the state.
//
// While the frames come, the verifier keeps the newest write of each key that the log writes, and the sessions. At the
// end it reads the file once more. It adds up the shares of all records that count: those that the log does not
// replace, and that the tombstone floor does not drop.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "engine/base/status.hpp"
#include "server/core/commit_log.hpp"
#include "server/offline/summary.hpp"

namespace kilokv::server::offline {

class BackupVerifier {
 public:
  BackupVerifier();
  ~BackupVerifier();
  BackupVerifier(const BackupVerifier&) = delete;
  BackupVerifier& operator=(const BackupVerifier&) = delete;

  // Takes what the frames hold. It does not look at the records of the state.
  RecoveryVisitor* visitor();
  // All frames were visited, and `path` holds them. Fills the summary. DATA_LOSS: the file is damaged, or the state
  // does not have the hash of this position. FAILED_PRECONDITION: the file cannot be read.
  Status finish(const std::string& path, const RecoveredPosition& position, Summary* summary);

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace kilokv::server::offline
