// The first administrator. Thread safety: none; called once, before the server serves.
#pragma once

#include "engine/base/status.hpp"
#include "server/core/database.hpp"
#include "server/service/options.hpp"

namespace kilokv::server {

// FAILED_PRECONDITION: the options alone show that no administrator can be made.
Status check_bootstrap(const BootstrapOptions& options);

// On a server without users, makes the role and the user "admin" with all rights, and gives the user the token in the
// file. If the file is not there, makes it, with a new token; only its owner may read it. Goes on with it if the last
// start ended in the middle.
//
// With `again`, and if there are users, makes one more administrator, of a new name, and always with a new token in a
// new file. So a token that was removed never counts again. If the file is there, the refusal says how to go on.
//
// FAILED_PRECONDITION: there are users, but nobody with the admin right can log in; there is no file; the file is not
// ours alone; it has no token; or it cannot be written.
Status bootstrap_admin(Database* database, const BootstrapOptions& options);

}  // namespace kilokv::server
