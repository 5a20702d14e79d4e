// The handlers of the calls for the administrator: users, roles and tokens, backups, and the level of the log.
#include <memory>
#include <utility>

#include "server/core/one_line.hpp"
#include "server/service/access_calls.hpp"
#include "server/service/audit_log.hpp"
#include "server/service/backup_call.hpp"
#include "server/service/call_sink.hpp"
#include "server/service/log_level.hpp"
#include "server/service/plain_call.hpp"
#include "server/service/service.hpp"
#include "server/service/watch_call.hpp"

namespace kilokv::server {
namespace {

// A server without logins has no users to change.
KStatus check_logins(const Logins& logins) {
  if (logins.required()) return {};
  return {StatusCode::unimplemented, "this server runs without logins; start it with --login on"};
}

}  // namespace

grpc::ServerGenericBidiReactor* KiloKvService::ChangeAccess(CallContext* context) {
  const std::string peer = context->peer();
  return take_for_database<v1::ChangeAccessRequest, v1::ChangeAccessResponse>(
      &environment_, context, [this, peer](const auto& call, Database* database) {
        KStatus status = check_logins(environment_.logins);
        if (status.ok()) status = call->need_admin(*database, "ChangeAccess");
        if (!status.ok()) {
          if (call->caller().login != nullptr) {
            note_denied(&denied_, "users, roles or tokens", call->caller().login->user, peer);
          }
          return call->refuse(status);
        }
        const auto requested =
            std::make_shared<Result<RequestedChange>>(change_of(call->request, database->time_of_day()));
        if (!requested->ok()) return call->refuse(requested->status());
        // The caller may lose its own right while the change waits for the executor.
        AccessEdit edit = [call, requested, database](const AccessTable& table) -> Result<AccessChange> {
          if (KStatus allowed = call->need_admin(*database, "ChangeAccess"); !allowed.ok()) return allowed;
          return (*requested)->edit(table);
        };
        // The process may end before the change is answered. So the log tells of it before it can be in force.
        AccessChangeBegins begins = [call, requested, peer](BatchNumber batch, const std::string& replaced_token) {
          log_change_begins(call->caller().login.get(), peer, (*requested)->what, batch, replaced_token);
        };
        database->change_access(
            call->client(), std::move(edit),
            [this, call, requested, database, peer](Result<BatchNumber> batch) {
              const RequestedChange& change = **requested;
              if (batch.ok()) {
                end_without_login(*database);
                call->response.set_token(change.token);
                call->response.set_token_id(change.token_id);
              }
              log_change(call->caller().login.get(), peer, change.what, batch);
              call->end(batch.status());
            },
            std::move(begins));
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::ListAccess(CallContext* context) {
  return take_for_database<v1::ListAccessRequest, v1::ListAccessResponse>(
      &environment_, context, [this](const auto& call, Database* database) {
        KStatus status = check_logins(environment_.logins);
        if (status.ok()) status = call->need_admin(*database, "ListAccess");
        if (!status.ok()) return call->refuse(status);
        call->end(fill_list(*database->durable_access(), call->request, environment_.options.message_bytes_max,
                            &call->response));
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::Backup(CallContext* context) {
  auto call = make_call<BackupCall>(context, &environment_, &backups_);
  call->adopted_by_rpc();
  call->start();
  return call.get();
}

grpc::ServerGenericBidiReactor* KiloKvService::Watch(CallContext* context) {
  auto watch = make_call<WatchCall>(context, &environment_, &watches_);
  watch->adopted_by_rpc();
  if (const KStatus status = place_for(watch.get()); status.ok()) {
    watch->start();
  } else {
    watch->refuse(status.as_not_run());
  }
  return watch.get();
}

grpc::ServerGenericBidiReactor* KiloKvService::SetLogLevel(CallContext* context) {
  const std::string peer = context->peer();
  return take_for_database<v1::SetLogLevelRequest, v1::SetLogLevelResponse>(
      &environment_, context, [this, peer](const auto& call, Database* database) {
        const KStatus allowed = call->need_admin(*database, "SetLogLevel");
        if (!allowed.ok()) {
          if (call->caller().login != nullptr) {
            note_denied(&level_denied_, "the log level", call->caller().login->user, peer);
          }
          return call->refuse(allowed);
        }
        std::string before = log_level();
        if (!call->request.level().empty()) {
          Result<std::string> changed = set_log_level(call->request.level());
          if (!changed.ok()) return call->refuse(changed.status());
          before = std::move(*changed);
          log_level_change(call->caller().login.get(), peer, before, call->request.level());
        }
        call->response.set_level(log_level());
        call->response.set_level_before(before);
        call->end({});
      });
}

void KiloKvService::note_denied(RareLine* line, const char* what, const std::string& user, const std::string& peer) {
  if (const std::uint64_t count = line->count()) {
    audit_log()->warn("kilokvd audit refused changes of {} refused={} last_user={} last_peer={}", what, count, user,
                      one_line(peer));
  }
}

}  // namespace kilokv::server
