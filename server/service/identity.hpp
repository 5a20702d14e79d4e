// Who sends a request: session, number, acknowledgement.
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "engine/base/status.hpp"
#include "kilokv/v1/kilokv.pb.h"
#include "server/core/request.hpp"

namespace kilokv::server {

struct RequestIdentity {
  std::optional<SessionId> session;
  std::uint64_t number = 0;
  std::uint64_t acknowledged_through = 0;
};

// INVALID_ARGUMENT that names `field` unless `bytes` has the 16 bytes of a session.
Result<SessionId> parse_session(const std::string& bytes, const char* field);

// INVALID_ARGUMENT for a malformed session, or one without a request number.
Result<RequestIdentity> parse_identity(const v1::RequestId& id);

}  // namespace kilokv::server
