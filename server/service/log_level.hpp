// The level of the log, which can be changed while the server runs. Lines about logins and changes of rights, and about
// changes of the level itself, have no level (audit_log.hpp).
// Thread safety: all functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.hpp"

namespace kilokv::server {

// trace, debug, info, warning, error, critical and off: each has fewer lines than the one before.
const std::vector<std::string>& log_levels();

std::string log_level();
// Returns the level before. INVALID_ARGUMENT: there is no such level.
Result<std::string> set_log_level(std::string_view level);

}  // namespace kilokv::server
