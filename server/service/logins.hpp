// Who makes a call: finds the user, by a token or by the client's certificate, and the client that its work counts for.
//
// The header `authorization: Bearer TOKEN` has the token. A call without this header logs in with the certificate that
// the client has shown in TLS. Its names (subject alternative names first, then the common name) are compared with
// those of the users. All connections of one user are one client: they share its turns and its parts of what is
// bounded.
//
// Refused logins are counted. The log has at most one line a second about them.
//
// Thread safety: all members.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/base/status.hpp"
#include "server/core/access/access.hpp"
#include "server/core/clients/client_table.hpp"
#include "server/service/gate.hpp"

namespace kilokv::server {

struct Caller {
  std::shared_ptr<Client> client;      // never null
  std::shared_ptr<const Login> login;  // null: no login is needed, or it was refused
  Status status;                       // not ok: the call is refused
};

class Logins {
 public:
  // `required`: every call needs a login. Otherwise the client of a call is its connection, and may do everything.
  Logins(bool required, const DatabaseGate* gate) : required_(required), gate_(gate) {}

  Caller caller_of(const grpc::CallbackServerContext& context);
  bool required() const { return required_; }
  std::uint64_t refused() const;

 private:
  Result<std::shared_ptr<const Login>> login_of(const grpc::CallbackServerContext& context, const AccessTable& table);
  void note_refused(const std::string& peer, const Status& why);

  const bool required_;
  const DatabaseGate* const gate_;
  ClientTable clients_;
  mutable std::mutex mutex_;  // of these:
  std::uint64_t refused_ = 0, refused_logged_ = 0;
  std::chrono::steady_clock::time_point log_at_;
};

}  // namespace kilokv::server
