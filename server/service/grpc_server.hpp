// The gRPC server around the service: port, connections, TLS, shutdown.
// Thread safety: one thread at a time.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <chrono>
#include <memory>
#include <string>

#include "engine/base/status.hpp"
#include "server/edge/connections.hpp"
#include "server/service/service.hpp"
#include "server/service/tls_files.hpp"

namespace kilokv::server {

class GrpcServer {
 public:
  // Opens the port, and raises the limit of descriptors. Connections wait until accept().
  // `listen` is HOST:PORT; port 0 picks a free port. Requires: `service` outlives the server. Errors: UNAVAILABLE if
  // the port cannot be opened, and INVALID_ARGUMENT if a file of TLS cannot be used.
  static Result<std::unique_ptr<GrpcServer>> start(const std::string& listen, KiloKvService* service,
                                                   const ServiceOptions& options);
  ~GrpcServer();
  // Requires: called once.
  void accept();

  int port() const { return port_; }
  const std::string& endpoint() const { return endpoint_; }  // HOST:PORT that clients connect to
  // Whether clients of other machines can connect.
  bool is_public() const { return public_; }
  ConnectionCounts connections() const { return connections_->counts(); }
  // The files of TLS as they are now, for the pages over HTTP; null: no TLS.
  const std::shared_ptr<TlsFiles>& tls_files() const { return tls_files_; }

  // For LocalCalls.
  grpc::Server* server() const { return server_.get(); }

  // Accepts no new RPCs. Waits up to `grace` for the running RPCs, then cancels the rest. Returns when all have ended.
  // Requires: every submitted request has been answered, or will be.
  void shut_down(std::chrono::milliseconds grace);

 private:
  GrpcServer() = default;
  Status choose_credentials(const TlsOptions& options, KiloKvService* service);

  std::shared_ptr<TlsFiles> tls_files_;                   // null: no TLS
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // outlive the server
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Connections> connections_;  // hands connections to the server, so it stops first
  std::string endpoint_;
  int port_ = 0;
  bool public_ = false;
};

}  // namespace kilokv::server
