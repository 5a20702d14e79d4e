// Writes what a backup holds into a new data directory: the checkpoint as it was, and the log records after it. The
// first start of the server then recovers from them as always. No RocksDB here.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>

#include "server/storage/backup_visit.hpp"

namespace kilokv::server::storage {

class RestoreWriter : public BackupTarget {
 public:
  // Creates the directory, whose parent must exist. Errors: as open_rocksdb_log.
  static Result<std::unique_ptr<RestoreWriter>> create(const std::string& directory);

  // Makes all durable, as a new incarnation: its versions begin at `first_version`.
  virtual Result<Incarnation> finish(const RecoveredPosition& position, Version first_version) = 0;
};

}  // namespace kilokv::server::storage
