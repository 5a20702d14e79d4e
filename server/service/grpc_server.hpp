// The gRPC server around the service: port, health, reflection, shutdown.
// Thread safety: one thread at a time; set_serving() any thread.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <chrono>
#include <memory>
#include <string>

#include "engine/base/status.hpp"
#include "server/service/service.hpp"

namespace kilokv::server {

// Refuses what no service has, and names it.
class UnknownMethods final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
};

class GrpcServer {
 public:
  // Opens the port; health says NOT_SERVING until set_serving(true). `listen` is HOST:PORT, port 0 picks a free one.
  // Requires: `service` outlives the server. Errors: UNAVAILABLE when the port cannot be had.
  static Result<std::unique_ptr<GrpcServer>> start(const std::string& listen, KiloKvService* service,
                                                   const ServiceOptions& options);
  ~GrpcServer();

  int port() const { return port_; }
  const std::string& endpoint() const { return endpoint_; }  // HOST:PORT as clients reach it
  void set_serving(bool serving);
  // Accepts nothing more, gives RPCs under way `grace` to end, cancels the rest, and returns when all have ended.
  // Requires: every request submitted has been answered, or will be.
  void shut_down(std::chrono::milliseconds grace);

 private:
  GrpcServer(std::unique_ptr<UnknownMethods> unknown_methods, std::unique_ptr<grpc::Server> server,
             std::string endpoint, int port);

  std::unique_ptr<UnknownMethods> unknown_methods_;  // outlives the server
  std::unique_ptr<grpc::Server> server_;
  std::string endpoint_;
  int port_;
};

}  // namespace kilokv::server
