// Who makes a call: finds the user, by a token or by the client's certificate, and the client that its work counts for.
//
// The header `authorization: Bearer TOKEN` has the token. A call without this header logs in with the certificate that
// the client has shown in TLS. Its subject alternative names are compared with those of the users. Its common name is
// compared only if it has no alternative name. All connections of one user are one client: they share its turns and its
// parts of what is bounded.
//
// A page over HTTP needs the same login as a call, and the metrics right (check_page()).
//
// Refused logins are counted. The log has at most one line a second about them.
//
// If the server asks clients for certificates, every call needs one, also a call that needs no login.
//
// The console calls the service over a channel within the process (local_calls.hpp). Such a call shows a secret of the
// process, and names the peer of the browser. Its connection is then this peer, with a prefix. The pages have checked
// its client certificate.
//
// When a login does not count any more, the connections end on which it was the last one. So do the connections whose
// client certificate is not accepted any more.
//
// Thread safety: all members.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/status.hpp"
#include "server/core/access/access.hpp"
#include "server/core/clients/client_table.hpp"
#include "server/service/call_account.hpp"
#include "server/service/calls_without_login.hpp"
#include "server/service/client_certificates.hpp"
#include "server/service/gate.hpp"
#include "server/service/options.hpp"
#include "server/service/rare_line.hpp"
#include "tls/token.hpp"

namespace kilokv::server {

using CallContext = grpc::GenericCallbackServerContext;

// A call that needs none is one of its connection, also on a server with logins.
enum class NeedsLogin : bool { no, yes };

// The metadata of a call from within the process.
inline constexpr char kLocalSecretKey[] = "kilokv-local-secret", kLocalPeerKey[] = "kilokv-local-peer";

struct Caller {
  std::shared_ptr<Client> client;                       // never null
  std::shared_ptr<const Login> login;                   // null: no login is needed, or it was refused
  Status status;                                        // not ok: the call is refused
  std::shared_ptr<Client> connection = {};              // the client that stands for the connection; never null
  std::shared_ptr<ClientCertificate> certificate = {};  // null: the server asks for none, or it was refused
};

// Who asks for a page over HTTP, and what shows who it is. The texts live as long as the call of check_page().
struct PageCaller {
  std::string peer = {};                                 // as gRPC names it, for the log
  std::optional<std::string_view> authorization = {};    // the header
  std::string_view certificate = {}, issuers = {};       // PEM; empty: the client has shown none
  std::vector<std::string_view> alternative_names = {};  // of the certificate
  std::vector<std::string_view> common_names = {};       // likewise: at most one
};

// Says what is wrong with a certificate now; empty: nothing.
using CertificateCheck = std::function<std::string(ClientCertificate*)>;

class Logins {
 public:
  // If `options` do not ask for logins, the client of a call is its connection, and may do everything.
  Logins(const ServiceOptions& options, const DatabaseGate* gate)
      : required_(options.login),
        connections_max_(options.connections_max),
        calls_(options.calls_bytes_max - options.stranger_calls_bytes_max(), options.ahead_bytes()),
        stranger_calls_(options.stranger_calls_bytes_max(), options.ahead_bytes(),
                        " bytes of open calls without a login"),
        gate_(gate) {}

  // Called once for each call, when its headers have come. The call has `place` from then on. If there is none, the
  // status of the caller is not ok.
  Caller caller_of(const CallContext& context, NeedsLogin needs_login, CallAccount::Place* place);
  std::uint64_t open_call_bytes() const { return calls_.bytes() + stranger_calls_.bytes(); }
  CallsWithoutLogin::Counts take_calls_without_login() { return without_login_.take(); }
  bool required() const { return required_; }
  // From now on, each call needs a certificate for which `check` gives no problem. Called before the first call.
  using CertificateOfCall = std::function<std::string(const grpc::AuthContext& peer)>;
  void check_certificates_with(CertificateOfCall check) { check_certificate_ = std::move(check); }
  // The same for pages over HTTP.
  using CertificateOfPage = std::function<std::string(const PageCaller& caller)>;
  void check_page_certificates_with(CertificateOfPage check) { check_page_certificate_ = std::move(check); }
  std::uint64_t refused() const { return refused_.total(); }
  // How many clients have open calls, without those who lack a valid login and need one.
  std::uint64_t clients() const { return calls_.clients(); }

  // Whether the caller may see a page that needs the metrics right. UNAUTHENTICATED; PERMISSION_DENIED, with the name
  // of the page; UNAVAILABLE: nobody's rights are known yet. On a server without logins, everybody may whose
  // certificate is accepted, if the server asks for one.
  Status check_page(const PageCaller& caller, const std::string& page);
  // Who asks for a page of the console. Null: the server has no logins. UNAUTHENTICATED; UNAVAILABLE, as above.
  Result<std::shared_ptr<const Login>> login_of_page(const PageCaller& caller);
  // The rights of this login now. PERMISSION_DENIED, UNAUTHENTICATED: it does not count any more.
  Result<std::shared_ptr<const Rights>> rights_of(const Login& login) const;
  // What a call from within the process shows. Called before the first call.
  void set_local_secret(const std::string& secret) { local_secret_ = tls::hash_of(secret); }

  // Finds the connections whose last login does not count any more, and gives users their new weights. Called when a
  // change of the table is durable.
  void find_lost_connections(const AccessTable& table);
  // Finds the connections whose certificate is not accepted any more. Called once a second.
  void find_lost_connections(const CertificateCheck& check);
  // The peers of those that were found since the last call.
  std::vector<std::string> take_lost_connections();
  void forget_connection(const std::string& peer);
  // The user of the last call with a login on the connection of this peer; empty: none.
  std::string user_of(const std::string& peer);
  // Ends the calls of a connection whose messages are late. Returns their number.
  std::size_t end_late_calls(const std::string& peer, const Status& status, bool is_again);
  // What the calls of a connection use (ClientTable::use_of).
  ConnectionUse use_of(const std::string& peer) { return clients_.use_of(peer, CallAccount::now_ms()); }

 private:
  // What the last call on a connection has shown.
  struct Shown {
    std::shared_ptr<const Login> login;              // of the last call with one
    std::shared_ptr<ClientCertificate> certificate;  // null: the server asks for none
  };

  // The peer that a call from within the process names; empty: the call comes from outside.
  std::string local_peer_of(const CallContext& context) const;
  Status check_page_certificate(const PageCaller& caller);
  // UNAUTHENTICATED, if the certificate of the client is missing or not accepted.
  Status check_certificate(const CallContext& context);
  // The client of a call that needs a login.
  Caller client_of(const grpc::CallbackServerContext& context, const std::string& peer,
                   const std::shared_ptr<Client>& connection);
  Result<std::shared_ptr<const Login>> login_of(const grpc::CallbackServerContext& context, const AccessTable& table,
                                                TimeUs now_us);
  void note_shown(const std::string& peer, const Caller& caller);
  void note_refused(const std::string& peer, const Status& why);
  void note_certificate(const std::string& peer, std::string_view subject, const std::string& problem);

  const bool required_;
  const std::uint32_t connections_max_;
  CertificateOfCall check_certificate_;       // empty: the server asks clients for none
  CertificateOfPage check_page_certificate_;  // likewise
  CallsWithoutLogin without_login_;
  CallAccount calls_;
  CallAccount stranger_calls_;  // without a valid login, if logins are required; else it has no room, and no calls
  const DatabaseGate* const gate_;
  std::optional<tls::SecretHash> local_secret_;  // null: there are no calls from within the process
  ClientTable clients_;
  RareLine refused_;
  std::mutex mutex_;                              // of these:
  std::unordered_map<std::string, Shown> shown_;  // on each connection, by its peer
  std::vector<std::string> lost_;
};

}  // namespace kilokv::server
