// The commit log on RocksDB: log, state, sessions and metadata are column families of one database in one directory.
// Formats: docs/log-format.md. Thread safety: as CommitLog says.
#pragma once

#include <memory>

#include "engine/base/status.hpp"
#include "server/core/commit_log.hpp"
#include "server/storage/options.hpp"

namespace kilokv::server {

// Opens or creates the database in data_dir, whose parent directory must exist. Errors: INVALID_ARGUMENT (options),
// FAILED_PRECONDITION (used by another process, not a KiloKV directory, unknown format), DATA_LOSS (names file and
// place), INTERNAL (I/O). With any of these errors, nothing that was acknowledged is lost.
Result<std::unique_ptr<CommitLog>> open_rocksdb_log(const StorageOptions& options);

}  // namespace kilokv::server
