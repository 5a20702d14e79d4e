// The Client on top of a Connection: one short function for each call of the service.
#include "kilokv/client.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/lib/src/attach.hpp"
#include "client/lib/src/connection.hpp"
#include "client/lib/src/encode.hpp"
#include "client/lib/src/hex.hpp"
#include "client/lib/src/reach.hpp"
#include "client/lib/src/result_columns.hpp"
#include "client/lib/src/session.hpp"
#include "client/lib/src/trace.hpp"

namespace kilokv::client {
namespace {

using google::protobuf::FieldDescriptor;

// Adds every number of a section, by the name of its field. Returns their names.
std::vector<std::string> add_numbers(const google::protobuf::Message& section,
                                     std::map<std::string, std::uint64_t>* counters) {
  std::vector<std::string> names;
  const auto* fields = section.GetDescriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    const FieldDescriptor* field = fields->field(i);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_UINT64) continue;
    (*counters)[field->name()] = section.GetReflection()->GetUInt64(section, field);
    names.push_back(field->name());
  }
  return names;
}

void add_sections(const v1::StatusResponse& response, ServerStatus* status) {
  const auto* fields = response.GetDescriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    const FieldDescriptor* field = fields->field(i);
    if (field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const google::protobuf::Message& section = response.GetReflection()->GetMessage(response, field);
    status->sections.emplace_back(field->name(), add_numbers(section, &status->counters));
  }
}

std::vector<std::pair<std::string, std::string>> to_texts(
    const google::protobuf::RepeatedPtrField<v1::NamedText>& texts) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const v1::NamedText& text : texts) out.emplace_back(text.name(), text.text());
  return out;
}

ServerStatus to_status(const v1::StatusResponse& response) {
  ServerStatus status;
  status.version = response.server().server_version();
  status.state = state_name(response.server().state());
  status.strategy = response.server().strategy();
  status.threads = response.server().threads();
  status.insecure = response.server().insecure();
  status.read_only = response.server().read_only();
  status.uptime_seconds = response.server().uptime_seconds();
  status.recovery_seconds = response.server().recovery_seconds();
  status.state_hash = to_hex(response.position().state_hash());
  status.incarnation = to_hex(response.server().incarnation());
  status.device = response.device().device();
  status.device_model = response.device().device_model();
  status.device_reason = response.device().device_reason();
  status.shadow_rate = response.checks().shadow_rate();
  status.settings = to_texts(response.settings());
  status.details = to_texts(response.details());
  for (const v1::MemoryOwner& owner : response.memory().owners()) {
    status.memory.push_back({owner.name(), owner.bytes(), owner.bound_bytes()});
  }
  add_sections(response, &status);
  return status;
}

Pair to_pair(v1::Read* read) {
  Pair pair;
  pair.key = std::move(*read->mutable_key());
  pair.version = read->version();
  pair.expires_at_us = read->expires_at_us();
  if (read->value().has_bytes()) {
    pair.value = std::move(*read->mutable_value()->mutable_bytes());
  } else {
    pair.value = read->value().integer();
  }
  return pair;
}

ParkedTransaction to_parked(const v1::ParkedTransaction& from) {
  ParkedTransaction parked;
  parked.id = from.id();
  parked.session = to_hex(from.session());
  parked.request = from.request();
  parked.index = from.index();
  parked.guard = from.guard();
  parked.guard_key = from.guard_key();
  parked.admitted_batch = from.admitted_batch();
  parked.deadline_us = from.deadline_us();
  parked.since_us = from.since_us();
  parked.client = from.client();
  return parked;
}

// Checks the endpoint here, because gRPC takes a port modulo 2^16, and another port for a missing one. It would then
// call another server.
class RemoteClient final : public Client {
 public:
  RemoteClient(const ClientOptions& options, const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : connection_(std::make_shared<Connection>(options, credentials)) {}

  Expected<std::unique_ptr<Session>> open_session(const SessionOptions& options) override {
    v1::OpenSessionRequest request;
    request.set_lease_us(options.lease_us);
    v1::OpenSessionResponse response;
    // A retry may open a second session. Nobody uses the first one, so it ends with its lease.
    const Error error = call("OpenSession", {},
                             [&](auto* stub, auto* context) { return stub->OpenSession(context, request, &response); });
    if (error) return error;
    return handle({.id = response.session(), .lease_us = response.lease_us()}, options.requests_in_flight_max);
  }

  Expected<AttachedSession> attach_session(std::string_view id, const AttachOptions& options) override {
    const auto bytes = from_hex(id);
    if (!bytes) return make_error(ErrorCode::invalid_argument, "a session id must be hexadecimal digits");
    auto attached = attach(connection_.get(), *bytes, options.numbers_used, connection_->deadline({}));
    if (!attached) return attached.error();
    AttachedSession out;
    out.acknowledged_through = attached->identity.acknowledged_through;
    out.requests = std::move(attached->requests);
    out.frozen = attached->frozen;
    out.incarnation = to_hex(attached->incarnation);
    out.session = handle(std::move(attached->identity), options.requests_in_flight_max);
    return out;
  }

  Expected<Results> execute(const Batch& batch, const CallOptions& options) override {
    if (Error error = check_batch(batch)) return error;
    const TimePoint deadline = connection_->deadline(options, longest_wait_us(batch));
    Results results;
    const Error error = batch.size() == 1 ? execute_one(batch, options, deadline, &results)
                                          : execute_many(batch, options, deadline, &results);
    if (error) return error;
    return results;
  }

  Expected<Results> get(const std::vector<std::string>& keys, const CallOptions& options) override {
    v1::GetRequest request;
    for (const std::string& key : keys) request.add_keys(key);
    v1::GetResponse response;
    Error error =
        call("Get", options, [&](auto* stub, auto* context) { return stub->Get(context, request, &response); });
    if (error) return error;
    auto rows = std::make_unique<v1::ResultRows>();
    v1::TransactionResult* row = rows->add_results();
    row->set_outcome(v1::OUTCOME_COMMITTED);
    row->mutable_reads()->Swap(response.mutable_reads());
    row->set_batch(response.batch());
    row->set_rank(response.rank());
    row->set_admitted_batch(response.admitted_batch());
    row->set_batch_time_us(response.batch_time_us());
    Results results;
    error = add(std::move(rows), 1, &results);
    if (error) return error;
    return results;
  }

  Expected<ScanPosition> scan(std::string_view from, std::string_view to, const std::function<bool(const Pair&)>& visit,
                              const ScanOptions& options) override {
    v1::ScanRequest request;
    request.mutable_range()->set_from(std::string(from));
    request.mutable_range()->set_to(std::string(to));
    request.set_limit(options.page_pairs);
    request.set_keep_boundary(true);
    request.set_reverse(options.reverse);
    v1::ScanResponse page;
    do {
      Error error = read_page(request, options.call, &page);
      if (error.field == "limit" && request.limit() != 0) {  // more than the server has in a page
        request.set_limit(0);
        error = read_page(request, options.call, &page);
      }
      if (error) return error;
      if (options.reverse && !page.reverse()) {
        return make_error(ErrorCode::unimplemented, "the server does not know reverse scans");
      }
      for (v1::Read& read : *page.mutable_pairs()) {
        if (visit(to_pair(&read))) continue;
        if (!page.reader().empty()) give_up_boundary(page, options.call, &request);
        return position_of(page);
      }
      request.set_boundary(page.boundary());
      request.set_reader(page.reader());
      go_on_after(page, &request);
    } while (page.more());
    return position_of(page);
  }

  Expected<std::vector<ParkedTransaction>> list_parked(const CallOptions& options) override {
    v1::ListParkedRequest request;
    v1::ListParkedResponse response;
    std::vector<ParkedTransaction> all;
    do {
      const Error error = call("ListParked", options, [&](auto* stub, auto* context) {
        return stub->ListParked(context, request, &response);
      });
      if (error) return error;
      for (const v1::ParkedTransaction& parked : response.parked()) all.push_back(to_parked(parked));
      if (!all.empty()) request.set_after_id(all.back().id);
    } while (response.more() && response.parked_size() != 0);
    return all;
  }

  Expected<std::uint64_t> cancel_parked(std::uint64_t id, const CallOptions& options) override {
    v1::CancelRequest request;
    request.set_parked_id(id);
    return cancel(request, options);
  }

  Expected<std::uint64_t> cancel_parked(const ParkedFilter& filter, const CallOptions& options) override {
    if (filter.client.empty() && filter.key_prefix.empty() && filter.older_than_us == 0) {
      Error error = make_error(ErrorCode::invalid_argument,
                               "the filter has no condition: give client, key_prefix or older_than_us");
      error.not_run = true;
      return error;
    }
    v1::CancelRequest request;
    request.mutable_parked()->set_client(filter.client);
    request.mutable_parked()->set_key_prefix(filter.key_prefix);
    request.mutable_parked()->set_older_than_us(filter.older_than_us);
    return cancel(request, options);
  }

  Expected<std::uint64_t> cancel(std::string_view session_hex, std::uint64_t request,
                                 std::optional<std::uint32_t> index, const CallOptions& options,
                                 std::uint64_t holder) override {
    const auto id = from_hex(session_hex);
    if (!id) return make_error(ErrorCode::invalid_argument, "a session id must be hexadecimal digits");
    return cancel_request(connection_.get(), *id, holder, request, index, options);
  }

  Expected<ServerStatus> status(const CallOptions& options) override {
    v1::StatusResponse response;
    const Error error =
        call("Status", options, [&](auto* stub, auto* context) { return stub->Status(context, {}, &response); });
    if (error) return error;
    return to_status(response);
  }

  Expected<std::string> log_level(const CallOptions& options) override {
    const auto response = change_log_level({}, options);
    if (!response) return response.error();
    return response->level();
  }

  Expected<std::string> set_log_level(const std::string& level, const CallOptions& options) override {
    if (level.empty()) return make_error(ErrorCode::invalid_argument, "the level of the log must not be empty");
    const auto response = change_log_level(level, options);
    if (!response) return response.error();
    return response->level_before();
  }

  const ClientOptions& options() const override { return connection_->options(); }

  Error reach() { return reach_server(connection_.get()); }

 private:
  std::unique_ptr<Session> handle(SessionIdentity identity, std::uint32_t requests_in_flight_max) {
    return std::make_unique<SessionHandle>(
        std::make_shared<SessionState>(connection_, std::move(identity), requests_in_flight_max));
  }

  // For calls that may run twice without harm.
  template <class Attempt>
  Error call(const char* name, const CallOptions& options, const Attempt& attempt) {
    return call(name, options, connection_->deadline(options), Retry::always, attempt);
  }
  template <class Attempt>
  Error call(const char* name, const CallOptions& options, TimePoint deadline, Retry retry, const Attempt& attempt) {
    if (Error error = check_trace(options)) return error;
    return connection_->call(name, deadline, retry, [&](auto* stub, auto* context) {
      add_trace(options, context);
      return attempt(stub, context);
    });
  }

  template <class Message>
  static Error add(std::unique_ptr<Message> message, std::size_t transactions, Results* results) {
    std::vector<std::uint32_t> fresh;
    results->columns().reset(transactions);
    return results->columns().add(std::move(message), &fresh);
  }

  // Gives up the boundary of a scan, which the server keeps for the next page. It reads one more page, and does not ask
  // to keep the boundary. If the call fails, the server drops the boundary when it is too old.
  void give_up_boundary(const v1::ScanResponse& page, const CallOptions& options, v1::ScanRequest* request) {
    go_on_after(page, request);
    request->set_boundary(page.boundary());
    request->set_reader(page.reader());
    request->set_keep_boundary(false);
    request->set_limit(1);
    v1::ScanResponse last;
    static_cast<void>(read_page(*request, options, &last));
  }

  Error read_page(const v1::ScanRequest& request, const CallOptions& options, v1::ScanResponse* page) {
    return call("Scan", options, [&](auto* stub, auto* context) { return stub->Scan(context, request, page); });
  }

  // Cuts the range of the request to what comes after the page.
  static void go_on_after(const v1::ScanResponse& page, v1::ScanRequest* request) {
    if (request->reverse()) {
      request->mutable_range()->set_to(page.next_to());
    } else {
      request->mutable_range()->set_from(page.next_from());
    }
  }

  static ScanPosition position_of(const v1::ScanResponse& page) {
    return {page.boundary(), page.boundary_version(), page.batch_time_us()};
  }

  Expected<std::uint64_t> cancel(const v1::CancelRequest& request, const CallOptions& options) {
    v1::CancelResponse response;
    const Error error =
        call("Cancel", options, [&](auto* stub, auto* context) { return stub->Cancel(context, request, &response); });
    if (error) return error;
    return response.cancelled();
  }

  Expected<v1::SetLogLevelResponse> change_log_level(const std::string& level, const CallOptions& options) {
    v1::SetLogLevelRequest request;
    request.set_level(level);
    v1::SetLogLevelResponse response;
    const Error error = call("SetLogLevel", options,
                             [&](auto* stub, auto* context) { return stub->SetLogLevel(context, request, &response); });
    if (error) return error;
    return response;
  }

  Error execute_one(const Batch& batch, const CallOptions& options, TimePoint deadline, Results* results) {
    v1::ExecuteRequest request;
    request.set_detached(options.detached);
    fill_transaction(batch, 0, request.mutable_transaction());
    v1::ExecuteResponse response;
    Error error = call("Execute", options, deadline, Retry::when_refused,
                       [&](auto* stub, auto* context) { return stub->Execute(context, request, &response); });
    if (error) return error;
    auto rows = std::make_unique<v1::ResultRows>();
    rows->add_results()->Swap(response.mutable_result());
    return add(std::move(rows), 1, results);
  }

  Error execute_many(const Batch& batch, const CallOptions& options, TimePoint deadline, Results* results) {
    v1::ExecuteBatchRequest request;
    request.set_detached(options.detached);
    fill_transactions(batch, options.encoding, &request);
    Error malformed;
    Error error = call("ExecuteBatch", options, deadline, Retry::when_refused, [&](auto* stub, auto* context) {
      results->columns().reset(batch.size());
      const auto reader = stub->ExecuteBatch(context, request);
      v1::ExecuteBatchResponse response;
      while (!malformed && reader->Read(&response)) malformed = add_slice(&response, results);
      if (malformed) context->TryCancel();
      return reader->Finish();
    });
    if (malformed) return malformed;
    if (error) return error;
    if (results->columns().complete()) return {};
    return make_error(ErrorCode::internal, "the server did not answer every transaction of the batch");
  }

  static Error add_slice(v1::ExecuteBatchResponse* response, Results* results) {
    std::vector<std::uint32_t> fresh;
    if (response->has_columns()) {
      return results->columns().add(std::unique_ptr<v1::ResultColumns>(response->release_columns()), &fresh);
    }
    if (!response->has_rows()) return {};
    return results->columns().add(std::unique_ptr<v1::ResultRows>(response->release_rows()), &fresh);
  }

  std::shared_ptr<Connection> connection_;
};

}  // namespace

std::int64_t monotonic_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch()).count();
}

Expected<std::unique_ptr<Client>> Client::connect(const ClientOptions& options) {
  return connect_as<RemoteClient, Client>(options);
}

}  // namespace kilokv::client
