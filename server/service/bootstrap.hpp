// The first administrator. Thread safety: none; called once, before the server serves.
#pragma once

#include <string>

#include "engine/base/status.hpp"
#include "server/core/database.hpp"

namespace kilokv::server {

// If nobody has the admin right yet, makes the role and the user "admin" with all rights, and gives the user the token
// in `file`. If the file is not there, makes it, with a new token; only its owner may read it. Does nothing if somebody
// has the admin right.
//
// FAILED_PRECONDITION: nobody has the admin right, and there is no file; others have rights to the file; it has no
// token; or it cannot be written.
Status bootstrap_admin(Database* database, const std::string& file);

}  // namespace kilokv::server
