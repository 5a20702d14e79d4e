// Checks a database or a backup without a server, and changes nothing.
//
// Everything is loaded into memory, as a start of the server does, because only then the hash of the state can be
// compared. So it takes as much memory as a server takes for its data.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "engine/base/status.hpp"
#include "server/offline/summary.hpp"

namespace kilokv::server::offline {

// Checks the database in a data directory. `tell` is told of each damage. The result is not ok if the check could not
// be made. INVALID_ARGUMENT: the directory has no file of a database. FAILED_PRECONDITION: it cannot be read, a server
// uses it, or its format is newer.
Result<Summary> check_directory(const std::string& path, const TellDamage& tell);

// The same for the file of a backup. INVALID_ARGUMENT: it is no backup.
Result<Summary> check_backup(const std::string& path, const TellDamage& tell);

}  // namespace kilokv::server::offline
