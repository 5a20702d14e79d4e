// The handlers of the calls that list what goes on at present (activity_calls.hpp).
#include <memory>
#include <utility>
#include <vector>

#include "server/service/activity_calls.hpp"
#include "server/service/plain_call.hpp"
#include "server/service/service.hpp"

namespace kilokv::server {
namespace {

// As take_for_database, for a list that the metrics right shows. `handle` also gets the number of entries that are
// asked for, and shows keys through a viewer.
template <class Request, class Response, class Handle>
grpc::ServerGenericBidiReactor* take_list(CallEnvironment* environment, CallContext* context, const char* method,
                                          const ListLimit& limits, const Handle& handle) {
  return take_for_database<Request, Response>(
      environment, context, [method, limits, handle](const auto& call, Database* database) {
        const Result<std::uint32_t> limit = limit_of(call->request.limit(), limits);
        if (!limit.ok()) return call->refuse(limit.status());
        const KStatus allowed = call->need_metrics(*database, method);
        if (!allowed.ok()) return call->refuse(allowed);
        const Result<std::shared_ptr<const Rights>> rights = call->rights(*database);
        if (!rights.ok()) return call->refuse(rights.status());
        handle(call, database, *limit, KeyViewer(rights->get(), &database->key_secret()));
      });
}

}  // namespace

grpc::ServerGenericBidiReactor* KiloKvService::ListHotKeys(CallContext* context) {
  return take_list<v1::ListHotKeysRequest, v1::ListHotKeysResponse>(
      &environment_, context, "ListHotKeys", kHotKeysLimit,
      [this](const auto& call, Database* database, std::uint32_t limit, const KeyViewer& viewer) {
        const Result<std::vector<KeyUse>> uses = uses_of(call->request.use());
        if (!uses.ok()) return call->refuse(uses.status());
        std::vector<HotKeys> hot;
        for (const KeyUse use : *uses) hot.push_back(database->hot_keys(use, limit));
        fill_hot_keys(*uses, hot, viewer, environment_.options.message_bytes_max, &call->response);
        call->end({});
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::ListSlow(CallContext* context) {
  return take_list<v1::ListSlowRequest, v1::ListSlowResponse>(
      &environment_, context, "ListSlow", kSlowLimit,
      [this](const auto& call, Database* database, std::uint32_t limit, const KeyViewer& viewer) {
        fill_slow(database->slow_transactions(), limit, viewer, environment_.options.message_bytes_max,
                  &call->response);
        fill_slow_counts(database->status().slow, &call->response);
        call->response.set_threshold_us(static_cast<std::uint64_t>(database->options().slow_transaction_us));
        call->end({});
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::ListSessions(CallContext* context) {
  return take_list<v1::ListSessionsRequest, v1::ListSessionsResponse>(
      &environment_, context, "ListSessions", kSessionsLimit,
      [this](const auto& call, Database* database, std::uint32_t limit, const KeyViewer& /*viewer*/) {
        constexpr std::uint64_t kWorkBytes = 100;  // one session costs as much work as decoding this many bytes
        const auto fill = [this, call, database, limit] {
          if (call->is_over()) return;
          fill_sessions(database->list_sessions(limit), database->status().sessions,
                        environment_.options.message_bytes_max, &call->response);
          call->end({});
        };
        const KStatus status = environment_.run_by(call->client(), kWorkBytes * database->status().sessions, fill);
        if (!status.ok()) call->refuse(status);
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::ListConnections(CallContext* context) {
  return take_list<v1::ListConnectionsRequest, v1::ListConnectionsResponse>(
      &environment_, context, "ListConnections", kConnectionsLimit,
      [this](const auto& call, Database* /*database*/, std::uint32_t limit, const KeyViewer& /*viewer*/) {
        std::vector<ConnectionInfo> open;
        if (environment_.connections) open = environment_.connections();
        fill_connections(
            std::move(open), limit, [this](const std::string& peer) { return environment_.logins.user_of(peer); },
            environment_.options.message_bytes_max, &call->response);
        call->end({});
      });
}

}  // namespace kilokv::server
