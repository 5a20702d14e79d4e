// Checks the database in a data directory, and changes nothing. No RocksDB here.
// Thread safety: pure function; one process at a time, which the lock of the directory makes sure of.
#pragma once

#include "engine/base/status.hpp"
#include "server/core/commit_log.hpp"
#include "server/storage/damage.hpp"
#include "server/storage/options.hpp"

namespace kilokv::server::storage {

struct CheckedLog {
  RecoveredPosition position;
  BatchNumber first_batch = 0;  // of the log records that are kept; 0: none
};

// Reads everything: the manifest, the write-ahead logs, all blocks of all table files, the checkpoint, its sessions and
// users, and all log records with their order. `visitor` gets what a start would get. `found` is told of each damage.
// Errors: DATA_LOSS: a damage after which nothing more can be read; FAILED_PRECONDITION: no database, a newer format,
// or in use.
Result<CheckedLog> check_directory(const StorageOptions& options, RecoveryVisitor* visitor, const OnDamage& found);

}  // namespace kilokv::server::storage
