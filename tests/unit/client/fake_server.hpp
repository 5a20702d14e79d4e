// A KiloKV service in the test's process. Each test programs its behaviour. By default it commits every transaction,
// keeps the results of sessions, and applies a number once, as the real server promises.
// Thread safety: a test changes settings while no call runs; it may read counters at any time.
#pragma once

#include <grpcpp/server.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kilokv/client.hpp"
#include "kilokv/v1/kilokv.grpc.pb.h"

namespace kilokv::client {

class FakeServer final : public v1::KiloKV::Service {
 public:
  using Write = std::function<bool(const v1::SessionResponse&)>;
  // What the server does with a request of a session. A status ends the request's stream.
  using OnRequest = std::function<std::optional<grpc::Status>(const v1::SessionRequest&, const Write&)>;

  FakeServer() { start(); }
  ~FakeServer() override { stop(); }
  void start();  // at the same port as before
  void stop();
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  // Options with short retry delays.
  ClientOptions client_options() const;

  // Applies the request, once for each number of a session, and returns its answer.
  v1::SessionResponse apply(const v1::SessionRequest& request);
  std::optional<grpc::Status> answer(const v1::SessionRequest& request, const Write& write);
  std::uint64_t times_applied(std::uint64_t number);
  std::vector<std::uint64_t> holders();    // those of the other calls of sessions, in the order of arrival
  std::vector<v1::SessionRequest> seen();  // requests of sessions, in the order of arrival, with `session` filled in

  static v1::ResultColumns committed(int transactions, std::uint64_t batch = 1);
  static grpc::Status with_detail(grpc::StatusCode code, const std::string& message, const v1::ErrorDetail& detail,
                                  grpc::ServerContext* context);

  OnRequest on_request;
  std::uint64_t lease_us = 60'000'000;
  std::atomic<std::uint64_t> lease_us_asked = 0;  // by the last OpenSession
  std::function<grpc::Status(const v1::ExecuteRequest&, v1::ExecuteResponse*, grpc::ServerContext*)> on_execute;
  std::function<void(const v1::UploadReadSetRequest&)> on_upload;  // before the server answers
  std::function<grpc::Status(const v1::GetRequest&, v1::GetResponse*)> on_get;
  std::function<grpc::Status(const v1::ScanRequest&, v1::ScanResponse*)> on_scan;
  std::function<grpc::Status()> on_keep_alive;
  std::function<grpc::Status(const v1::AttachSessionRequest&, v1::AttachSessionResponse*, grpc::ServerContext*)>
      on_attach;  // without it, each attach gets the next holder, and an empty list
  std::function<grpc::Status(grpc::ServerContext*)> on_close;  // ok: closes the session
  std::function<grpc::Status(v1::StatusResponse*)> on_status;

  grpc::Status Execute(grpc::ServerContext* context, const v1::ExecuteRequest* request,
                       v1::ExecuteResponse* response) override;
  grpc::Status UploadReadSet(grpc::ServerContext* context, const v1::UploadReadSetRequest* request,
                             v1::UploadReadSetResponse* response) override;
  grpc::Status ExecuteBatch(grpc::ServerContext* context, const v1::ExecuteBatchRequest* request,
                            grpc::ServerWriter<v1::ExecuteBatchResponse>* writer) override;
  grpc::Status Session(grpc::ServerContext* context,
                       grpc::ServerReaderWriter<v1::SessionResponse, v1::SessionRequest>* stream) override;
  grpc::Status OpenSession(grpc::ServerContext* context, const v1::OpenSessionRequest* request,
                           v1::OpenSessionResponse* response) override;
  grpc::Status KeepSessionAlive(grpc::ServerContext* context, const v1::KeepSessionAliveRequest* request,
                                v1::KeepSessionAliveResponse* response) override;
  grpc::Status CloseSession(grpc::ServerContext* context, const v1::CloseSessionRequest* request,
                            v1::CloseSessionResponse* response) override;
  grpc::Status AttachSession(grpc::ServerContext* context, const v1::AttachSessionRequest* request,
                             v1::AttachSessionResponse* response) override;
  grpc::Status Get(grpc::ServerContext* context, const v1::GetRequest* request, v1::GetResponse* response) override;
  grpc::Status Scan(grpc::ServerContext* context, const v1::ScanRequest* request, v1::ScanResponse* response) override;
  grpc::Status ListParked(grpc::ServerContext* context, const v1::ListParkedRequest* request,
                          v1::ListParkedResponse* response) override;
  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelRequest* request,
                      v1::CancelResponse* response) override;
  grpc::Status Status(grpc::ServerContext* context, const v1::StatusRequest* request,
                      v1::StatusResponse* response) override;
  grpc::Status SetLogLevel(grpc::ServerContext* context, const v1::SetLogLevelRequest* request,
                           v1::SetLogLevelResponse* response) override;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::vector<v1::SessionRequest> seen_;
  std::map<std::uint64_t, std::uint64_t> applied_;
  std::map<std::uint64_t, v1::SessionResponse> stored_;
  std::set<std::string> sessions_;
  std::vector<std::uint64_t> holders_;
  std::uint64_t attached_ = 0;
  std::string log_level_ = "info";
};

}  // namespace kilokv::client
