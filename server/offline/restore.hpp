// Makes a new data directory from a backup, and the archive after it if there is one.
//
// The directory is DIRECTORY.partial until it is whole and was checked. It is a new incarnation of the database: its
// versions are far above all that the backup and the archive name, because clients may have seen later ones. How far is
// chosen at random, because a backup may be restored twice.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/base/status.hpp"
#include "server/offline/summary.hpp"

namespace kilokv::server::offline {

struct RestoreOptions {
  std::string backup;                   // the file
  std::string directory;                // the new data directory, which must not be there yet, or must be empty
  std::string archive;                  // the directory of --archive-dir; empty: none
  std::optional<std::uint64_t> batch;   // restore to after this batch
  std::optional<std::int64_t> time_us;  // restore to after the last batch with at most this stamp
  // Is told what could not be read, although the restore goes on. Empty: nobody is.
  std::function<void(const std::string& what)> warn = {};
};

// Errors: DATA_LOSS: the backup or the archive is damaged; INVALID_ARGUMENT: the file is no backup;
// FAILED_PRECONDITION: the wanted batch or time is not in them, or the directory cannot be used.
Result<Summary> restore(const RestoreOptions& options);

}  // namespace kilokv::server::offline
