// The identity of a request: session, holder, number, acknowledgement.
// Thread safety: pure functions.
#pragma once

#include <string>

#include "engine/base/status.hpp"
#include "kilokv/v1/kilokv.pb.h"
#include "server/core/request_identity.hpp"

namespace kilokv::server {

// INVALID_ARGUMENT that names `field`, unless `bytes` has the length of a session ID, 16.
Result<SessionId> parse_session(const std::string& bytes, const char* field);

// Fills all but the digest. INVALID_ARGUMENT for a malformed session, or for a session without a request number.
Result<RequestIdentity> parse_identity(const v1::RequestId& id);

}  // namespace kilokv::server
