// The messages of ChangeAccess and ListAccess, as changes and lists of core's access table.
// Thread safety: pure functions.
#pragma once

#include <string>

#include "engine/base/status.hpp"
#include "kilokv/v1/kilokv.pb.h"
#include "server/core/access/access.hpp"

namespace kilokv::server {

struct RequestedChange {
  AccessEdit edit;
  std::string what;                       // for the log: what it changes, without secrets
  std::string token = {}, token_id = {};  // of a new token
};

// Errors: INVALID_ARGUMENT if no change is set; INTERNAL if there is no randomness for a token. `edit` checks the rest.
Result<RequestedChange> change_of(const v1::ChangeAccessRequest& request, TimeUs now_us);

// Errors: INVALID_ARGUMENT if the kind is unknown.
Status fill_list(const AccessTable& table, const v1::ListAccessRequest& request, std::uint64_t message_bytes_max,
                 v1::ListAccessResponse* response);

}  // namespace kilokv::server
