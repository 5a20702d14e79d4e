// The fake service (fake_server.hpp).
#include "tests/unit/client/fake_server.hpp"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <stdexcept>

namespace kilokv::client {

void FakeServer::start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port_), grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (!server_) throw std::runtime_error("the fake server cannot listen");
}

void FakeServer::stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());  // open streams are cut
  server_->Wait();
  server_.reset();
}

ClientOptions FakeServer::client_options() const {
  ClientOptions options;
  options.endpoint = endpoint();
  options.backoff_us_min = 1'000;
  options.backoff_us_max = 20'000;
  return options;
}

v1::ResultColumns FakeServer::committed(int transactions, std::uint64_t batch) {
  v1::ResultColumns columns;
  columns.set_batch(batch);
  columns.set_first_version(100);
  for (int i = 0; i < transactions; ++i) {
    columns.mutable_outcome()->push_back(v1::OUTCOME_COMMITTED);
    columns.add_rank(static_cast<std::uint32_t>(i));
  }
  return columns;
}

grpc::Status FakeServer::with_detail(grpc::StatusCode code, const std::string& message, const v1::ErrorDetail& detail,
                                     grpc::ServerContext* context) {
  context->AddTrailingMetadata("kilokv-error-bin", detail.SerializeAsString());
  return {code, message};
}

v1::SessionResponse FakeServer::apply(const v1::SessionRequest& request) {
  std::lock_guard lock(mutex_);
  if (const auto found = stored_.find(request.number()); found != stored_.end()) return found->second;
  ++applied_[request.number()];
  v1::SessionResponse response;
  response.set_number(request.number());
  response.set_last(true);
  if (request.has_rows()) {
    for (int i = 0; i < request.rows().transactions_size(); ++i) {
      v1::TransactionResult* row = response.mutable_rows()->add_results();
      row->set_index(static_cast<std::uint32_t>(i));
      row->set_outcome(v1::OUTCOME_COMMITTED);
      row->set_version(100 + static_cast<std::uint64_t>(i));
    }
  } else {
    *response.mutable_columns() = committed(request.columns().guard_ends_size());
  }
  stored_[request.number()] = response;
  return response;
}

std::optional<grpc::Status> FakeServer::answer(const v1::SessionRequest& request, const Write& write) {
  write(apply(request));
  return std::nullopt;
}

std::uint64_t FakeServer::times_applied(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  return applied_[number];
}

std::vector<v1::SessionRequest> FakeServer::seen() {
  std::lock_guard lock(mutex_);
  return seen_;
}

grpc::Status FakeServer::Session(grpc::ServerContext*,
                                 grpc::ServerReaderWriter<v1::SessionResponse, v1::SessionRequest>* stream) {
  v1::SessionRequest request;
  std::string session;
  std::uint64_t holder = 0;
  const Write write = [stream](const v1::SessionResponse& response) { return stream->Write(response); };
  while (stream->Read(&request)) {
    if (!request.session().empty()) {
      session = request.session();
      holder = request.holder();
    }
    request.set_session(session);
    request.set_holder(holder);
    {
      std::lock_guard lock(mutex_);
      seen_.push_back(request);
      if (!sessions_.contains(session)) return {grpc::StatusCode::FAILED_PRECONDITION, "unknown session"};
    }
    const auto end = on_request ? on_request(request, write) : answer(request, write);
    if (end) return *end;
  }
  return {};
}

grpc::Status FakeServer::Execute(grpc::ServerContext* context, const v1::ExecuteRequest* request,
                                 v1::ExecuteResponse* response) {
  if (on_execute) return on_execute(*request, response, context);
  response->mutable_result()->set_outcome(v1::OUTCOME_COMMITTED);
  response->mutable_result()->set_version(7);
  return {};
}

grpc::Status FakeServer::ExecuteBatch(grpc::ServerContext*, const v1::ExecuteBatchRequest* request,
                                      grpc::ServerWriter<v1::ExecuteBatchResponse>* writer) {
  const int n = request->has_columns() ? request->columns().guard_ends_size() : request->rows().transactions_size();
  for (int i = n - 1; i >= 0; --i) {  // one slice for each, the last first
    v1::ExecuteBatchResponse slice;
    *slice.mutable_columns() = committed(1, static_cast<std::uint64_t>(i) + 1);
    slice.mutable_columns()->add_index(static_cast<std::uint32_t>(i));
    writer->Write(slice);
  }
  return {};
}

grpc::Status FakeServer::OpenSession(grpc::ServerContext*, const v1::OpenSessionRequest* request,
                                     v1::OpenSessionResponse* response) {
  lease_us_asked = request->lease_us();
  std::lock_guard lock(mutex_);
  const std::string id = std::string(15, '\x5a') + static_cast<char>(sessions_.size() + 1);
  sessions_.insert(id);
  response->set_session(id);
  response->set_lease_us(lease_us);
  return {};
}

std::vector<std::uint64_t> FakeServer::holders() {
  std::lock_guard lock(mutex_);
  return holders_;
}

grpc::Status FakeServer::AttachSession(grpc::ServerContext* context, const v1::AttachSessionRequest* request,
                                       v1::AttachSessionResponse* response) {
  {
    std::lock_guard lock(mutex_);
    sessions_.insert(request->session());
    response->set_holder(request->holder() != 0 ? request->holder() : ++attached_);
    response->set_lease_us(lease_us);
  }
  return on_attach ? on_attach(*request, response, context) : grpc::Status();
}

grpc::Status FakeServer::KeepSessionAlive(grpc::ServerContext*, const v1::KeepSessionAliveRequest* request,
                                          v1::KeepSessionAliveResponse*) {
  {
    std::lock_guard lock(mutex_);
    holders_.push_back(request->holder());
  }
  return on_keep_alive ? on_keep_alive() : grpc::Status();
}

grpc::Status FakeServer::UploadReadSet(grpc::ServerContext*, const v1::UploadReadSetRequest* request,
                                       v1::UploadReadSetResponse* response) {
  if (on_upload) on_upload(*request);
  response->set_keys(request->offset() + static_cast<std::uint64_t>(request->keys_size()));
  return {};
}

grpc::Status FakeServer::CloseSession(grpc::ServerContext* context, const v1::CloseSessionRequest* request,
                                      v1::CloseSessionResponse*) {
  if (on_close) {
    if (grpc::Status status = on_close(context); !status.ok()) return status;
  }
  std::lock_guard lock(mutex_);
  holders_.push_back(request->holder());
  sessions_.erase(request->session());
  return {};
}

grpc::Status FakeServer::Get(grpc::ServerContext*, const v1::GetRequest* request, v1::GetResponse* response) {
  if (on_get) return on_get(*request, response);
  for (const std::string& key : request->keys()) response->add_reads()->set_key(key);
  return {};
}

grpc::Status FakeServer::Scan(grpc::ServerContext*, const v1::ScanRequest* request, v1::ScanResponse* response) {
  return on_scan ? on_scan(*request, response) : grpc::Status();
}

grpc::Status FakeServer::ListParked(grpc::ServerContext*, const v1::ListParkedRequest* request,
                                    v1::ListParkedResponse* response) {
  v1::ParkedTransaction* parked = response->add_parked();
  parked->set_id(request->after_id() + 1);
  parked->set_guard_key(std::string("k").append(std::to_string(parked->id())));
  response->set_more(parked->id() < 3);
  return {};
}

grpc::Status FakeServer::Cancel(grpc::ServerContext*, const v1::CancelRequest*, v1::CancelResponse* response) {
  response->set_cancelled(1);
  return {};
}

grpc::Status FakeServer::Status(grpc::ServerContext*, const v1::StatusRequest*, v1::StatusResponse* response) {
  if (on_status) return on_status(response);
  response->mutable_server()->set_state(v1::ServerSection::STATE_READY);
  response->mutable_counts()->set_committed(42);
  return {};
}

grpc::Status FakeServer::SetLogLevel(grpc::ServerContext*, const v1::SetLogLevelRequest* request,
                                     v1::SetLogLevelResponse* response) {
  if (request->level() == "loud") return {grpc::StatusCode::INVALID_ARGUMENT, "there is no such level"};
  const std::lock_guard lock(mutex_);
  response->set_level_before(log_level_);
  if (!request->level().empty()) log_level_ = request->level();
  response->set_level(log_level_);
  return {};
}

}  // namespace kilokv::client
