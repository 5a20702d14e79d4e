// The commit log on RocksDB: log, state, sessions and metadata are column families of one database in one directory.
// Formats: docs/log-format.md. Thread safety: as CommitLog says.
#pragma once

#include <memory>

#include "engine/base/status.hpp"
#include "server/core/commit_log.hpp"
#include "server/storage/options.hpp"

namespace kilokv::server {

// Opens the database in data_dir, or creates it if StorageOptions::create allows that. The parent directory must exist.
// Errors: INVALID_ARGUMENT (options), FAILED_PRECONDITION (used by another process, not a KiloKV directory, unknown
// format, no database), DATA_LOSS (names file and place), INTERNAL (I/O). With any of these errors, nothing that was
// acknowledged is lost.
Result<std::unique_ptr<CommitLog>> open_rocksdb_log(const StorageOptions& options);

// Makes a new, empty database in data_dir if there is none, whatever StorageOptions::create says. Returns whether there
// was none. It is durable then. Errors: those of open_rocksdb_log.
Result<bool> create_rocksdb_database(StorageOptions options);

}  // namespace kilokv::server
