#include "server/service/logins.hpp"

#include <grpc/grpc_security_constants.h>

#include <optional>
#include <utility>
#include <vector>

#include "server/core/access/access_check.hpp"
#include "server/core/one_line.hpp"
#include "server/service/audit_log.hpp"

namespace kilokv::server {
namespace {

// gRPC has this text for each subject alternative name of a kind that it does not read.
constexpr std::string_view kOtherName = "other types of SAN";

std::string_view view_of(const grpc::string_ref& text) { return {text.data(), text.size()}; }

Status wrong(const std::string& why) {
  return Status(StatusCode::unauthenticated, ErrorReason::login_wrong, why).as_not_run();
}

Result<std::shared_ptr<const Login>> login_with(std::string_view header, const AccessTable& table, TimeUs now_us) {
  constexpr std::string_view kScheme = "Bearer ";
  if (header.substr(0, kScheme.size()) != kScheme) {
    return wrong("the header authorization is not \"Bearer TOKEN\"");
  }
  const std::optional<tls::TokenParts> parts = tls::parse_token(header.substr(kScheme.size()));
  if (!parts) return wrong("the token is malformed: a token is kilokv_, 16 hex digits, _ and 64 hex digits");
  const auto found = table.tokens().find(parts->id);
  // One text for both, so that nobody learns which ids there are.
  if (found == table.tokens().end() || !tls::same_hash(found->second.secret_hash, parts->secret_hash)) {
    return wrong("the token is unknown, or was removed");
  }
  const Token& token = found->second;
  auto login = std::make_shared<const Login>(
      Login{.user = token.user, .token = token.id, .certificate = {}, .expires_us = token.expires_us});
  if (login->expired(now_us)) return login_expired(*login).as_not_run();
  return login;
}

// The names of one kind in a certificate.
using Names = std::vector<std::string_view>;

// The common name counts only if there is no other.
Result<std::shared_ptr<const Login>> login_with_names(const Names& alternative, const Names& common,
                                                      const AccessTable& table) {
  std::string_view seen;
  for (const Names* names : {&alternative, &common}) {
    for (const std::string_view name : *names) {
      if (const CertificateHolder* holder = table.holder_of(name)) {
        return std::make_shared<const Login>(Login{
            .user = holder->user, .token = {}, .certificate = std::string(name), .certificate_since = holder->since});
      }
      if (seen.empty()) seen = name;
    }
    if (!names->empty()) break;
  }
  if (!seen.empty()) return wrong("no user has the name of the client certificate, \"" + one_line(seen) + '"');
  return Status(StatusCode::unauthenticated, ErrorReason::login_missing,
                "this server needs a login: a token, or a client certificate")
      .as_not_run();
}

Names names_of(const grpc::AuthContext* peer, const char* property) {
  Names names;
  if (peer == nullptr) return names;
  for (const grpc::string_ref& name : peer->FindPropertyValues(property)) {
    if (view_of(name) != kOtherName) names.push_back(view_of(name));
  }
  return names;
}

// The headers of a call that gRPC shows. It keeps some for itself.
std::uint64_t header_bytes(const CallContext& context) {
  std::uint64_t bytes = context.method().size() + context.host().size();
  for (const auto& [name, value] : context.client_metadata()) bytes += name.size() + value.size() + 32;
  return bytes;
}

}  // namespace

Result<std::shared_ptr<const Login>> Logins::login_of(const grpc::CallbackServerContext& context,
                                                      const AccessTable& table, TimeUs now_us) {
  const auto& headers = context.client_metadata();
  if (const auto header = headers.find("authorization"); header != headers.end()) {
    return login_with(view_of(header->second), table, now_us);
  }
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  return login_with_names(names_of(peer.get(), GRPC_X509_SAN_PROPERTY_NAME),
                          names_of(peer.get(), GRPC_X509_CN_PROPERTY_NAME), table);
}

std::string Logins::local_peer_of(const CallContext& context) const {
  if (!local_secret_) return {};
  const auto& metadata = context.client_metadata();
  const auto secret = metadata.find(kLocalSecretKey), peer = metadata.find(kLocalPeerKey);
  if (secret == metadata.end() || peer == metadata.end()) return {};
  if (!tls::same_hash(tls::hash_of(view_of(secret->second)), *local_secret_)) return {};
  return std::string(Client::kConsolePrefix).append(view_of(peer->second));
}

Caller Logins::caller_of(const CallContext& context, NeedsLogin needs_login, CallAccount::Place* place) {
  constexpr std::uint64_t kHiddenBytes = 512;
  const std::string local_peer = local_peer_of(context);
  const bool is_local = !local_peer.empty();
  const std::string peer = is_local ? local_peer : context.peer();
  std::shared_ptr<Client> connection = clients_.connection(peer);
  Caller caller{connection, nullptr, is_local ? Status() : check_certificate(context)};
  const bool is_accepted = caller.status.ok();
  if (is_accepted && required_ && needs_login == NeedsLogin::yes) caller = client_of(context, peer, connection);
  if (!is_accepted || (required_ && needs_login == NeedsLogin::no)) {
    without_login_.count(connection.get());
  }
  const std::uint64_t headers = header_bytes(context);
  connection->accounted_bytes.fetch_add(headers + kHiddenBytes, std::memory_order_relaxed);
  // So no connection has calls in both accounts, and no user has.
  CallAccount& account = required_ && caller.login == nullptr ? stranger_calls_ : calls_;
  Status status = account.enter(caller.client, connection, headers, place);
  if (caller.status.ok() && !status.ok()) caller.status = status.as_not_run();
  if (!caller.status.ok()) place->forgive_message();
  caller.connection = std::move(connection);
  if (is_local) return caller;  // no connection of gRPC ends with this login
  if (check_certificate_ && is_accepted) {
    caller.certificate = std::make_shared<ClientCertificate>(context.auth_context());
  }
  if (caller.login != nullptr || caller.certificate != nullptr) note_shown(peer, caller);
  return caller;
}

Caller Logins::client_of(const grpc::CallbackServerContext& context, const std::string& peer,
                         const std::shared_ptr<Client>& connection) {
  const Result<Database*> database = gate_->get();
  if (!database.ok()) return {connection, nullptr, database.status().as_not_run()};
  const Access::Table table = (*database)->access().latest();
  Result<std::shared_ptr<const Login>> login = login_of(context, *table, (*database)->time_of_day());
  if (!login.ok()) {
    note_refused(peer, login.status());
    without_login_.count(connection.get());
    return {connection, nullptr, login.status()};
  }
  std::shared_ptr<Client> client = clients_.client(std::string(Client::kUserPrefix) + (*login)->user);
  client->user_weight.store(table->weight((*login)->user), std::memory_order_relaxed);
  return {std::move(client), std::move(*login), {}};
}

void Logins::note_shown(const std::string& peer, const Caller& caller) {
  const std::lock_guard lock(mutex_);
  // A call may begin when its connection has ended. Such entries must not pile up.
  if (shown_.size() > connections_max_) shown_.clear();
  Shown& shown = shown_[peer];
  if (caller.login != nullptr) shown.login = caller.login;
  shown.certificate = caller.certificate;
}

void Logins::find_lost_connections(const AccessTable& table) {
  // Those with a stream that stays open make no new call, from which they would have their new weight.
  clients_.for_each([&table](Client* client) {
    if (!client->user().empty()) client->user_weight.store(table.weight(client->user()), std::memory_order_relaxed);
  });
  const std::lock_guard lock(mutex_);
  std::erase_if(shown_, [&](const auto& item) {
    const bool lost = item.second.login != nullptr && table.rights(*item.second.login) == nullptr;
    if (lost) lost_.push_back(item.first);
    return lost;
  });
}

void Logins::find_lost_connections(const CertificateCheck& check) {
  std::vector<std::pair<std::string, std::shared_ptr<ClientCertificate>>> certificates;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [peer, shown] : shown_) {
      if (shown.certificate != nullptr) certificates.emplace_back(peer, shown.certificate);
    }
  }
  for (const auto& [peer, certificate] : certificates) {  // without the lock, because a check may take a while
    if (check(certificate.get()).empty()) continue;
    const std::lock_guard lock(mutex_);
    if (shown_.erase(peer) > 0) lost_.push_back(peer);
  }
}

std::vector<std::string> Logins::take_lost_connections() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lost_, {});
}

std::size_t Logins::end_late_calls(const std::string& peer, const Status& status, bool is_again) {
  std::size_t ended = 0;
  for (const auto& call : clients_.late_calls(peer, CallAccount::now_ms())) {
    if (call->end_late(status, is_again)) ++ended;
  }
  return ended;
}

void Logins::forget_connection(const std::string& peer) {
  const std::lock_guard lock(mutex_);
  shown_.erase(peer);
}

std::string Logins::user_of(const std::string& peer) {
  const std::lock_guard lock(mutex_);
  const auto found = shown_.find(peer);
  return found == shown_.end() || found->second.login == nullptr ? std::string() : found->second.login->user;
}

void Logins::note_refused(const std::string& peer, const Status& why) {
  if (const std::uint64_t count = refused_.count()) {
    audit_log()->warn("kilokvd refused logins refused={} last_peer={} reason=\"{}\"", count, one_line(peer),
                      one_line(why.message()));
  }
}

Status Logins::check_certificate(const CallContext& context) {
  if (!check_certificate_) return {};
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  const std::string problem = check_certificate_(*peer);
  if (problem.empty()) return {};
  const std::vector<grpc::string_ref> subject = peer->FindPropertyValues(GRPC_X509_SUBJECT_PROPERTY_NAME);
  note_certificate(context.peer(), subject.empty() ? std::string_view() : view_of(subject.front()), problem);
  const ErrorReason reason = subject.empty() ? ErrorReason::login_missing : ErrorReason::login_wrong;
  return Status(StatusCode::unauthenticated, reason, problem).as_not_run();
}

void Logins::note_certificate(const std::string& peer, std::string_view subject, const std::string& problem) {
  if (const std::uint64_t count = refused_.count()) {
    audit_log()->warn("kilokvd refused logins refused={} last_peer={} last_certificate={} reason=\"{}\"", count,
                      one_line(peer), quoted(subject, AccessTable::kCertificateBytesMax), one_line(problem));
  }
}

Status Logins::check_page_certificate(const PageCaller& caller) {
  const std::string problem = check_page_certificate_ ? check_page_certificate_(caller) : "";
  if (problem.empty()) return {};
  const bool has_shown = !caller.certificate.empty();
  note_certificate(caller.peer, caller.common_names.empty() ? "" : caller.common_names.front(), problem);
  return {StatusCode::unauthenticated, has_shown ? ErrorReason::login_wrong : ErrorReason::login_missing, problem};
}

Status Logins::check_page(const PageCaller& caller, const std::string& page) {
  const Result<std::shared_ptr<const Login>> login = login_of_page(caller);
  if (!login.ok()) return login.status();
  if (*login == nullptr) return {};
  const Result<std::shared_ptr<const Rights>> rights = rights_of(**login);
  if (!rights.ok()) return rights.status();
  return (*rights)->metrics ? Status() : right_missing((*login)->user, "metrics", page);
}

Result<std::shared_ptr<const Rights>> Logins::rights_of(const Login& login) const {
  const Database* const database = gate_->database();
  if (database == nullptr) return Status{StatusCode::unavailable, ErrorReason::recovering, "recovering"};
  return rights_at(*database->access().latest(), login, database->time_of_day());
}

Result<std::shared_ptr<const Login>> Logins::login_of_page(const PageCaller& caller) {
  if (Status status = check_page_certificate(caller); !status.ok()) return status;
  if (!required_) return std::shared_ptr<const Login>();
  // While the server drains, its last numbers can still be read. The rights are not known before the recovery has
  // ended. The gate is looked at once: it may open at any time.
  const Database* const database = gate_->database();
  if (database == nullptr) return Status{StatusCode::unavailable, ErrorReason::recovering, "recovering"};
  const Access::Table table = database->access().latest();
  Result<std::shared_ptr<const Login>> login =
      caller.authorization ? login_with(*caller.authorization, *table, database->time_of_day())
                           : login_with_names(caller.alternative_names, caller.common_names, *table);
  if (!login.ok()) {
    note_refused(caller.peer, login.status());
  }
  return login;
}

}  // namespace kilokv::server
