// The handlers of all calls. Those of Execute and Get (transaction_call.hpp), ExecuteBatch (batch_call.hpp) and Session
// (session_stream.hpp) only start an object that has a file of its own. Those of the administrator are in
// service_admin.cpp, and the lists of what goes on in service_activity.cpp. All other calls are here completely: their
// checks, the call of the database, and the answer.
#include "server/service/service.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "server/core/access/access_check.hpp"
#include "server/core/one_line.hpp"
#include "server/service/attach_call.hpp"
#include "server/service/audit_log.hpp"
#include "server/service/batch_call.hpp"
#include "server/service/call_sink.hpp"
#include "server/service/encode.hpp"
#include "server/service/identity.hpp"
#include "server/service/message_buffer.hpp"
#include "server/service/plain_call.hpp"
#include "server/service/read_set.hpp"
#include "server/service/reflection.hpp"
#include "server/service/resident_memory.hpp"
#include "server/service/status_map.hpp"
#include "server/service/transaction_call.hpp"

namespace kilokv::server {
namespace {

constexpr std::uint32_t kParkedDefault = 1000;
constexpr std::uint32_t kParkedMax = 10000;
constexpr std::int64_t kStreamRetryUs = 1000000;

// A call of a method that the server does not have. Its message is not read.
class UnknownCall final : public UnaryCall {
 public:
  UnknownCall(CallContext* context, CallEnvironment* environment)
      : UnaryCall(context, environment),
        refused_(StatusCode::unimplemented, "unknown method " + short_line(context->method())) {
    place_.forgive_message();
  }

 private:
  const KStatus& refused() const override { return caller_.status.ok() ? refused_ : caller_.status; }
  void on_message(grpc::ByteBuffer* /*message*/) override {}

  const KStatus refused_;
};

KStatus check_limit(const char* field, std::uint64_t actual, std::uint64_t limit, const char* unit,
                    const char* setting) {
  if (actual <= limit) return {};
  return KStatus::invalid({.field = field,
                           .limit = std::to_string(limit) + unit,
                           .actual = std::to_string(actual) + unit,
                           .setting = setting});
}

KStatus check_scan(const v1::ScanRequest& request, const ServiceOptions& options, const DatabaseOptions& database) {
  const std::uint64_t key_bytes_max = options.limits.key_bytes_max;
  KStatus status = check_limit("range.from", request.range().from().size(), key_bytes_max, " bytes", "--key-bytes-max");
  if (status.ok()) {
    status = check_limit("range.to", request.range().to().size(), key_bytes_max, " bytes", "--key-bytes-max");
  }
  if (status.ok())
    status = check_limit("limit", request.limit(), database.scan_pairs_max, " pairs", "--scan-pairs-max");
  if (status.ok() && !request.range().to().empty() && request.range().from() >= request.range().to()) {
    status = KStatus::invalid(
        {.field = "range.to", .limit = "greater than range.from", .actual = "not greater", .setting = ""});
  }
  return status;
}

// The lease that the request asks for. 0 asks for the default.
Result<DurationUs> lease_of(const v1::OpenSessionRequest& request, const DatabaseOptions& options) {
  if (request.lease_us() == 0) return options.session_lease_us_default;
  const auto min_us = static_cast<std::uint64_t>(options.session_lease_us_min);
  if (request.lease_us() < min_us) {
    return KStatus::invalid({.field = "lease_us",
                             .limit = "at least " + std::to_string(min_us) + " us",
                             .actual = std::to_string(request.lease_us()) + " us",
                             .setting = "--session-lease-min"});
  }
  KStatus status = check_limit("lease_us", request.lease_us(), static_cast<std::uint64_t>(options.session_lease_us_max),
                               " us", "--session-lease-max");
  if (!status.ok()) return status;
  return static_cast<DurationUs>(request.lease_us());
}

Result<CancelTarget> target_of(const v1::CancelParked& parked) {
  if (parked.client().empty() && parked.key_prefix().empty() && parked.older_than_us() == 0) {
    return KStatus::invalid({.field = "parked",
                             .limit = "at least one of client, key_prefix and older_than_us",
                             .actual = "none",
                             .setting = ""})
        .because(ErrorReason::missing_field);
  }
  constexpr std::uint64_t kLongestUs = std::uint64_t{1} << 60;
  KStatus status = check_limit("parked.older_than_us", parked.older_than_us(), kLongestUs, " us", "");
  if (!status.ok()) return status;
  CancelTarget target;
  target.filter = ParkedFilter{.client = parked.client(),
                               .key_prefix = parked.key_prefix(),
                               .older_than_us = static_cast<DurationUs>(parked.older_than_us())};
  return target;
}

Result<CancelTarget> target_of(const v1::CancelRequest& request, const engine::TransactionLimits& limits) {
  CancelTarget target;
  switch (request.target_case()) {
    case v1::CancelRequest::kParkedId: target.parked_id = request.parked_id(); return target;
    case v1::CancelRequest::kTransactions: {
      Result<SessionId> session = parse_session(request.transactions().session(), "transactions.session");
      if (!session.ok()) return session.status();
      target.session = *session;
      target.holder = request.transactions().holder();
      target.request = request.transactions().number();
      const auto& indices = request.transactions().indices();
      KStatus status = check_limit("transactions.indices", static_cast<std::uint64_t>(indices.size()),
                                   limits.request_transactions_max, " indices", "--request-transactions-max");
      if (!status.ok()) return status;
      target.indices.assign(indices.begin(), indices.end());
      return target;
    }
    case v1::CancelRequest::kParked: return target_of(request.parked());
    case v1::CancelRequest::TARGET_NOT_SET: break;
  }
  return KStatus::invalid(
             {.field = "target", .limit = "parked_id, transactions or parked", .actual = "not set", .setting = ""})
      .because(ErrorReason::missing_field);
}

void fill_info(const ServerInfo& info, v1::StatusResponse* response) {
  response->mutable_server()->set_server_version(info.version);
  response->mutable_server()->set_strategy(info.strategy);
  response->mutable_server()->set_threads(info.threads);
  response->mutable_server()->set_read_only(info.read_only);
  response->mutable_checks()->set_shadow_rate(info.shadow_rate);
  for (const auto& [name, text] : info.settings) add_text(name, text, response->mutable_settings());
}

void fill_memory(const ServerReport& report, v1::MemorySection* section) {
  for (const MemoryOwner& owner : report.memory) {
    v1::MemoryOwner* const message = section->add_owners();
    message->set_name(owner.name);
    message->set_bytes(owner.bytes);
    message->set_bound_bytes(owner.bound_bytes);
  }
  section->set_memory_sum_bytes(report.memory_sum);
  section->set_memory_limit_bytes(report.memory_limit);
  section->set_memory_rss_bytes(report.resident_bytes);
}

// The token that names the reader of a scan; 0: none.
Result<std::uint64_t> reader_of(const v1::ScanRequest& request) {
  std::uint64_t reader = 0;
  if (request.reader().empty()) return reader;
  if (request.reader().size() != sizeof reader) {
    return KStatus::invalid({.field = "reader",
                             .limit = std::to_string(sizeof reader) + " bytes, or empty",
                             .actual = std::to_string(request.reader().size()) + " bytes",
                             .setting = ""});
  }
  std::memcpy(&reader, request.reader().data(), sizeof reader);
  return reader;
}

// Everybody may cancel what is theirs: requests of a session of theirs, and what they have parked. The rest needs the
// admin right.
template <class AnyCall>
KStatus check_cancel(const AnyCall& call, const Database& database, const CancelTarget& target) {
  if (const auto rights = call.rights(database); !rights.ok()) return rights.status();
  if (target.session) {
    const KStatus status = database.check_session(call.client(), {*target.session, target.holder});
    return status.reason() == ErrorReason::session_unknown ? KStatus() : status;
  }
  if (target.filter && target.filter->client == call.client()->name) return {};
  return call.need_admin(database, target.filter ? "parked" : "parked_id");
}

// A call has done what it had to do. This answers it with the list, which may take long. So the answer worker, which
// calls this, passes long lists on.
template <class AnyCall>
void answer_with(const std::shared_ptr<SessionList>& list, const AttachTarget& target, const Database& database,
                 CallEnvironment* environment, const std::shared_ptr<AnyCall>& call) {
  const auto fill = [call, list, target, &database] {
    if (call->is_over()) return;
    const Result<std::shared_ptr<const Rights>> rights = call->rights(database);
    KStatus status = rights.ok() ? database.add_results(target, list.get()) : rights.status();
    if (status.ok()) fill_list(*list, target, *rights == nullptr ? nullptr : &(*rights)->read, &call->response);
    call->end(status);
  };
  const std::uint64_t bytes = std::min(list->bytes, target.bytes_max);  // more does not go into the answer
  if (const KStatus status = environment->run_by(call->client(), bytes, fill); !status.ok()) call->end(status);
}

// Leaves only keys that may be read.
void hide_keys(const Rights* rights, std::vector<ParkedTransaction>* parked) {
  if (rights == nullptr) return;
  for (ParkedTransaction& one : *parked) {
    if (!rights->read.contains(one.guard_key)) one.guard_key.clear();
  }
}

}  // namespace

KiloKvService::KiloKvService(ServiceOptions options, ServerInfo info)
    : environment_{.options = std::move(options)},
      info_(std::move(info)),
      streams_limit_(environment_.options.streams_max,
                     {ErrorReason::calls_full, "streams", " open streams", "--streams-max", kStreamRetryUs}) {}

// All methods of the protocol. The key is the name in the protocol, without the service.
const std::unordered_map<std::string_view, KiloKvService::Begin>& KiloKvService::methods() {
  static const std::unordered_map<std::string_view, Begin> kMethods = {
      {"Execute", &KiloKvService::Execute},
      {"UploadReadSet", &KiloKvService::UploadReadSet},
      {"ExecuteBatch", &KiloKvService::ExecuteBatch},
      {"Session", &KiloKvService::Session},
      {"OpenSession", &KiloKvService::OpenSession},
      {"KeepSessionAlive", &KiloKvService::KeepSessionAlive},
      {"CloseSession", &KiloKvService::CloseSession},
      {"AttachSession", &KiloKvService::AttachSession},
      {"Get", &KiloKvService::Get},
      {"Scan", &KiloKvService::Scan},
      {"ListParked", &KiloKvService::ListParked},
      {"Cancel", &KiloKvService::Cancel},
      {"Status", &KiloKvService::Status},
      {"ChangeAccess", &KiloKvService::ChangeAccess},
      {"ListAccess", &KiloKvService::ListAccess},
      {"ListHotKeys", &KiloKvService::ListHotKeys},
      {"ListSlow", &KiloKvService::ListSlow},
      {"ListSessions", &KiloKvService::ListSessions},
      {"ListConnections", &KiloKvService::ListConnections},
      {"SetLogLevel", &KiloKvService::SetLogLevel},
      {"Backup", &KiloKvService::Backup},
      {"Watch", &KiloKvService::Watch}};
  return kMethods;
}

grpc::ServerGenericBidiReactor* KiloKvService::CreateReactor(CallContext* context) {
  const std::string prefix = std::string("/") + v1::KiloKV::service_full_name() + '/';
  const std::string& method = context->method();
  if (method.compare(0, prefix.size(), prefix) == 0) {
    const auto found = methods().find(std::string_view(method).substr(prefix.size()));
    if (found != methods().end()) return (this->*found->second)(context);
  }
  if (method == kHealthCheckMethod) return health_.take_check(context, &environment_);
  if (method == kHealthWatchMethod) return health_.take_watch(context, &environment_);
  if (method == kReflectionMethod) return take_reflection(context, &environment_);
  return std::make_shared<UnknownCall>(context, &environment_)->adopted_by_rpc();
}

void KiloKvService::close() {
  environment_.gate.close();
  environment_.decode.drain();
  backups_.close();
  watches_.close();
  for (const auto& call : environment_.calls.all()) call->end_when_stopping(environment_.gate.get().status());
}

grpc::ServerGenericBidiReactor* KiloKvService::Execute(CallContext* context) {
  return make_call<ExecuteCall>(context, &environment_)->adopted_by_rpc();
}

grpc::ServerGenericBidiReactor* KiloKvService::UploadReadSet(CallContext* context) {
  return take_for_database<v1::UploadReadSetRequest, v1::UploadReadSetResponse>(
      &environment_, context, [this](const auto& call, Database* database) {
        Result<ReadSetChunk> chunk = decode_chunk(call->request, environment_.options);
        if (!chunk.ok()) return call->refuse(chunk.status());
        chunk->client = call->client();
        const Result<std::uint64_t> keys = database->upload(*chunk);
        if (keys.ok()) call->response.set_keys(*keys);
        call->end(keys.status());
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::ExecuteBatch(CallContext* context) {
  auto call = make_call<BatchCall>(context, &environment_);
  call->adopted_by_rpc();
  call->start();
  return call.get();
}

grpc::ServerGenericBidiReactor* KiloKvService::Session(CallContext* context) {
  auto stream = make_call<SessionStream>(context, &environment_);
  stream->adopted_by_rpc();
  if (const KStatus status = place_for(stream.get()); status.ok()) {
    stream->start();
  } else {
    stream->refuse(status.as_not_run());
  }
  // A revoke that was answered before the stream was among the open calls has not ended it.
  if (const Result<Database*> database = environment_.gate.get(); database.ok()) {
    stream->end_without_login(*(*database)->access().latest());
  }
  return stream.get();
}

// A session's stream, or a watch, has a place among those of all clients until gRPC has let go of it.
kilokv::Status KiloKvService::place_for(AnswerStream* stream) {
  if (!stream->login_status().ok()) return {};
  const std::shared_ptr<Client> client = stream->client();
  KStatus status = streams_limit_.charge(client->account(&Client::streams), 1);
  if (!status.ok()) return status;
  stream->hold(std::shared_ptr<void>(
      nullptr, [this, client](void*) { streams_limit_.release(client->account(&Client::streams), 1); }));
  return {};
}

grpc::ServerGenericBidiReactor* KiloKvService::OpenSession(CallContext* context) {
  return take_for_database<v1::OpenSessionRequest, v1::OpenSessionResponse>(
      &environment_, context, [](const auto& call, Database* database) {
        Result<DurationUs> lease_us = lease_of(call->request, database->options());
        if (!lease_us.ok()) return call->refuse(lease_us.status());
        database->open_session(call->client(), call->caller().login, *lease_us,
                               [call](Result<SessionId> session, DurationUs granted_us) {
                                 if (session.ok()) {
                                   call->response.set_session(session->bytes.data(), session->bytes.size());
                                   call->response.set_lease_us(static_cast<std::uint64_t>(granted_us));
                                 }
                                 call->end(session.status());
                               });
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::KeepSessionAlive(CallContext* context) {
  return take_for_database<v1::KeepSessionAliveRequest, v1::KeepSessionAliveResponse>(
      &environment_, context, [](const auto& call, Database* database) {
        const Result<SessionId> session = parse_session(call->request.session(), "session");
        if (!session.ok()) return call->refuse(session.status());
        call->end(database->keep_alive(call->client(), {*session, call->request.holder()}));
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::CloseSession(CallContext* context) {
  return take_for_database<v1::CloseSessionRequest, v1::CloseSessionResponse>(
      &environment_, context, [](const auto& call, Database* database) {
        const Result<SessionId> session = parse_session(call->request.session(), "session");
        if (!session.ok()) return call->refuse(session.status());
        database->close_session(call->client(), call->caller().login, {*session, call->request.holder()},
                                [call](const KStatus& status) { call->end(status); });
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::AttachSession(CallContext* context) {
  const std::string peer = context->peer();
  return take_for_database<v1::AttachSessionRequest, v1::AttachSessionResponse>(
      &environment_, context, [this, peer](const auto& call, Database* database) {
        const Result<AttachTarget> target = attach_target(call->request, environment_.options.message_bytes_max);
        if (!target.ok()) return call->refuse(target.status());
        // The process may end before the attach is answered. So the log tells of it before it can be in force.
        AttachBegins begins = [this, call, peer, session = target->session](BatchNumber batch, std::uint64_t holder) {
          note_attach(call->caller().login.get(), peer, {session, holder}, batch);
        };
        database->attach_session(
            call->client(), call->caller().login, *target,
            [this, call, database, peer, target = *target](Result<SessionList> list) {
              if (list.ok()) {
                auto shared = std::make_shared<SessionList>(std::move(*list));
                return answer_with(shared, target, *database, &environment_, call);
              }
              note_attach_refused(call->caller().login.get(), peer, target.session, list.status());
              call->end(list.status());
            },
            std::move(begins));
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::Get(CallContext* context) {
  return make_call<GetCall>(context, &environment_)->adopted_by_rpc();
}

grpc::ServerGenericBidiReactor* KiloKvService::Scan(CallContext* context) {
  return take_for_database<v1::ScanRequest, v1::ScanResponse>(
      &environment_, context, [this](const auto& call, Database* database) {
        const v1::ScanRequest& request = call->request;
        const KStatus status = check_scan(request, environment_.options, database->options());
        if (!status.ok()) return call->refuse(status);
        const Result<std::uint64_t> reader = reader_of(request);
        if (!reader.ok()) return call->refuse(reader.status());
        ScanRequest scan{.from = request.range().from(),
                         .to = request.range().to(),
                         .limit = request.limit(),
                         .boundary = {},
                         .keep_boundary = request.keep_boundary(),
                         .reader = *reader,
                         .bytes_max = environment_.options.message_bytes_max,
                         .client = call->client(),
                         .login = call->caller().login,
                         .reverse = request.reverse(),
                         .is_over = [call] { return call->is_over(); }};
        if (request.boundary() != 0) scan.boundary = request.boundary();
        database->scan(std::move(scan), [call](Result<ScanPage> page) {
          if (page.ok()) fill_page(*page, &call->response);
          call->end(page.status());
        });
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::ListParked(CallContext* context) {
  return take_for_database<v1::ListParkedRequest, v1::ListParkedResponse>(
      &environment_, context, [this](const auto& call, Database* database) {
        const v1::ListParkedRequest& request = call->request;
        const KStatus status = check_limit("limit", request.limit(), kParkedMax, " transactions", "");
        if (!status.ok()) return call->refuse(status);
        const KStatus allowed = call->need_admin(*database, "ListParked");
        if (!allowed.ok()) return call->refuse(allowed);
        const std::uint32_t limit = request.limit() == 0 ? kParkedDefault : request.limit();
        database->list_parked(
            call->client(), request.after_id(), limit,
            [call, database, bytes_max = environment_.options.message_bytes_max](Result<ParkedPage> page) {
              const Result<std::shared_ptr<const Rights>> rights = call->rights(*database);
              if (!rights.ok()) return call->end(rights.status().as_not_run());
              const KStatus still = call->need_admin(*database, "ListParked");
              if (!still.ok()) return call->end(still.as_not_run());
              if (page.ok()) {
                hide_keys(rights->get(), &page->parked);
                fill_list(*page, bytes_max, &call->response);
              }
              call->end(page.status());
            });
      });
}

grpc::ServerGenericBidiReactor* KiloKvService::Cancel(CallContext* context) {
  return take_for_database<v1::CancelRequest, v1::CancelResponse>(
      &environment_, context, [this](const auto& call, Database* database) {
        Result<CancelTarget> target = target_of(call->request, environment_.options.limits);
        if (!target.ok()) return call->refuse(target.status());
        const KStatus allowed = check_cancel(*call, *database, *target);
        if (!allowed.ok()) return call->refuse(allowed);
        // The caller may lose its right while the cancel waits for the executor.
        target->allowed = [call, database, named = *target] { return check_cancel(*call, *database, named); };
        database->cancel(call->client(), *target, [call](Result<std::uint64_t> cancelled) {
          if (cancelled.ok()) call->response.set_cancelled(*cancelled);
          call->end(cancelled.status());
        });
      });
}

// gRPC does not tell what it holds, so its quota counts.
std::vector<MemoryOwner> KiloKvService::memory_owners(const DatabaseStatus& status) const {
  std::vector<MemoryOwner> owners = status.memory;
  const ServiceOptions& options = environment_.options;
  owners.push_back({"connections", options.connection_bytes(environment_.open_connections.load()),
                    options.connection_bytes(options.connections_max)});
  owners.push_back({"calls", environment_.logins.open_call_bytes(), options.calls_bytes_max});
  owners.push_back({"answers", environment_.answers.unsent_bytes(), options.answers_bytes_max});
  owners.push_back({"grpc", options.grpc_memory_max, options.grpc_memory_max});
  owners.push_back({"decoding", environment_.decode.bytes(), options.decoding_bytes()});
  owners.push_back({"http", environment_.http_bytes.load(), info_.http_bound});
  owners.push_back({"storage", status.log.memory_bytes, info_.storage_bound});
  owners.push_back({"process", info_.process_bytes, info_.process_bytes});
  return owners;
}

KStatus KiloKvService::readiness() const {
  const Result<Database*> database = environment_.gate.get();
  if (!database.ok()) return database.status();
  if ((*database)->metrics().has_failed.load()) return {StatusCode::unavailable, ErrorReason::failed, "failed"};
  if (health_.serving()) return {};
  if (health_.has_served()) return {StatusCode::unavailable, ErrorReason::draining, "draining"};
  return {StatusCode::unavailable, ErrorReason::recovering, "recovering"};  // the gate has opened a moment ago
}

ServerReport KiloKvService::report() {
  ServerReport report;
  const Database* const database = environment_.gate.database();
  report.has_database = database != nullptr;
  if (database != nullptr) report.database = database->status();
  const bool is_closed = environment_.gate.closed();
  if (is_closed && report.database.state != DatabaseStatus::State::stopped) {
    report.database.state = DatabaseStatus::State::draining;
  }
  report.memory = memory_owners(report.database);
  for (const MemoryOwner& owner : report.memory) report.memory_sum += owner.bytes;
  report.memory_limit = info_.memory_limit;
  report.resident_bytes = resident_bytes();
  report.logins_refused = environment_.logins.refused();
  report.clients = environment_.logins.clients();
  report.connections = environment_.open_connections.load(std::memory_order_relaxed);
  report.is_ready = readiness().ok();
  report.is_insecure = insecure_.load(std::memory_order_relaxed);
  report.uptime_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  return report;
}

v1::StatusResponse KiloKvService::status() {
  const ServerReport report = this->report();
  v1::StatusResponse response;
  fill_status(report.database, &response);
  fill_info(info_, &response);
  fill_memory(report, response.mutable_memory());
  response.mutable_counts()->set_logins_refused(report.logins_refused);
  response.mutable_server()->set_insecure(report.is_insecure);
  response.mutable_server()->set_uptime_seconds(report.uptime_seconds);
  return response;
}

grpc::ServerGenericBidiReactor* KiloKvService::Status(CallContext* context) {
  return take<v1::StatusRequest, v1::StatusResponse>(&environment_, context, [this](const auto& call) {
    // Clients ask for the state of the server in every state. But without a database nobody's rights are known.
    const Result<Database*> database = environment_.gate.get();
    if (!database.ok() && environment_.logins.required()) return call->refuse(database.status());
    if (database.ok()) {
      const KStatus allowed = call->need_metrics(**database, "Status");
      if (!allowed.ok()) return call->refuse(allowed);
    }
    call->response = status();
    call->end({});
  });
}

void KiloKvService::note_attach(const Login* login, const std::string& peer, const HeldSession& session,
                                BatchNumber batch) {
  if (const auto left_out = attaches_.next()) log_attach_begins(login, peer, session, batch, *left_out);
}

// Only what a client could use to find sessions of others.
void KiloKvService::note_attach_refused(const Login* login, const std::string& peer, const SessionId& session,
                                        const KStatus& status) {
  const ErrorReason reason = status.reason();
  if (reason != ErrorReason::session_unknown && reason != ErrorReason::right_missing) return;
  if (const std::uint64_t count = attaches_refused_.count()) log_attach_refused(count, login, peer, session, status);
}

// Called when a change is durable, before it is answered.
void KiloKvService::end_without_login(const Database& database) {
  const Access::Table table = database.access().latest();
  for (const auto& call : environment_.calls.all()) call->end_without_login(*table);
  environment_.logins.find_lost_connections(*table);
}

void KiloKvService::end_late_calls(const std::string& peer, std::uint64_t bytes, bool is_again) {
  constexpr std::int64_t kAgainUs = 1000000;
  const KStatus status = KStatus::exhausted(
      ErrorReason::calls_full,
      {.field = "message",
       .limit = std::to_string(environment_.options.unread_bytes_max()) +
                " bytes of messages that lack their end, on all connections",
       .actual = "a message that has not come for a second, on a connection that may hold " + std::to_string(bytes),
       .setting = "--grpc-memory-max"},
      kAgainUs);
  const std::uint64_t ended = environment_.logins.end_late_calls(peer, status, is_again);
  if (ended == 0) return;
  if (const std::uint64_t times = late_calls_.count()) {
    spdlog::warn("kilokvd ended calls whose messages were late times={} last_peer={} last_ended={} reason=\"{}\"",
                 times, one_line(peer), ended, one_line(status.message()));
  }
}

// A call that ends here may have run in part or as a whole, so the status does not say that it did not.
void KiloKvService::end_without_certificate(const CertificateCheck& check) {
  for (const auto& call : environment_.calls.all()) {
    if (call->certificate() == nullptr) continue;
    const std::string problem = check(call->certificate().get());
    if (problem.empty()) continue;
    call->end_without_certificate(KStatus(StatusCode::unauthenticated, ErrorReason::login_wrong, problem));
  }
  environment_.logins.find_lost_connections(check);
}

}  // namespace kilokv::server
