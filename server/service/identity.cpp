#include "server/service/identity.hpp"

#include <algorithm>
#include <string>

namespace kilokv::server {

Result<SessionId> parse_session(const std::string& bytes, const char* field) {
  SessionId session;
  if (bytes.size() != session.bytes.size()) {
    return Status::invalid({.field = field,
                            .limit = std::to_string(session.bytes.size()) + " bytes",
                            .actual = std::to_string(bytes.size()) + " bytes",
                            .setting = ""})
        .because(bytes.empty() ? ErrorReason::missing_field : ErrorReason::out_of_range);
  }
  std::copy(bytes.begin(), bytes.end(), session.bytes.begin());
  return session;
}

Result<RequestIdentity> parse_identity(const v1::RequestId& id) {
  RequestIdentity identity;
  identity.number = id.number();
  identity.acknowledged_through = id.acknowledged_through();
  if (id.session().empty()) {
    if (id.holder() == 0) return identity;
    return Status::invalid({.field = "id.holder",
                            .limit = "0 without a session",
                            .actual = std::to_string(id.holder()),
                            .setting = ""})
        .because(ErrorReason::not_allowed);
  }
  Result<SessionId> session = parse_session(id.session(), "id.session");
  if (!session.ok()) return session.status();
  if (id.number() == 0) {
    return Status::invalid({.field = "id.number", .limit = "1 or more in a session", .actual = "0", .setting = ""})
        .because(ErrorReason::missing_field);
  }
  identity.session = *session;
  identity.holder = id.holder();
  return identity;
}

}  // namespace kilokv::server
