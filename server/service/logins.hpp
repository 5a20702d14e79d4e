// Who makes a call: finds the user, by a token or by the client's certificate, and the client that its work counts for.
//
// The header `authorization: Bearer TOKEN` has the token. A call without this header logs in with the certificate that
// the client has shown in TLS. Its names (subject alternative names first, then the common name) are compared with
// those of the users. All connections of one user are one client: they share its turns and its parts of what is
// bounded.
//
// Refused logins are counted. The log has at most one line a second about them.
//
// When a login does not count any more, the connections end on which it was the last one.
//
// Thread safety: all members.
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/access/access.hpp"
#include "server/core/clients/client_table.hpp"
#include "server/service/gate.hpp"
#include "server/service/rare_line.hpp"

namespace kilokv::server {

struct Caller {
  std::shared_ptr<Client> client;      // never null
  std::shared_ptr<const Login> login;  // null: no login is needed, or it was refused
  Status status;                       // not ok: the call is refused
};

class Logins {
 public:
  // `required`: every call needs a login. Otherwise the client of a call is its connection, and may do everything.
  Logins(bool required, std::uint32_t connections_max, const DatabaseGate* gate)
      : required_(required), connections_max_(connections_max), gate_(gate) {}

  Caller caller_of(const grpc::CallbackServerContext& context);
  bool required() const { return required_; }
  std::uint64_t refused() const { return refused_.total(); }

  // Finds the connections whose last login does not count any more. Called when a change of the table is durable.
  void find_lost_connections(const AccessTable& table);
  // The peers of those that were found since the last call.
  std::vector<std::string> take_lost_connections();
  void forget_connection(const std::string& peer);

 private:
  Result<std::shared_ptr<const Login>> login_of(const grpc::CallbackServerContext& context, const AccessTable& table);
  void note_login(const std::string& peer, const std::shared_ptr<const Login>& login);
  void note_refused(const std::string& peer, const Status& why);

  const bool required_;
  const std::uint32_t connections_max_;
  const DatabaseGate* const gate_;
  ClientTable clients_;
  RareLine refused_;
  std::mutex mutex_;                                                          // of these:
  std::unordered_map<std::string, std::shared_ptr<const Login>> last_login_;  // of each connection, by its peer
  std::vector<std::string> lost_;
};

}  // namespace kilokv::server
