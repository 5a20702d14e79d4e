#include "server/service/grpc_server.hpp"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "server/service/status_map.hpp"

namespace kilokv::server {

grpc::ServerGenericBidiReactor* UnknownMethods::CreateReactor(grpc::GenericCallbackServerContext* context) {
  class Refusal final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Refusal(const grpc::Status& status) { Finish(status); }
    void OnDone() override { delete this; }
  };
  const Status status(StatusCode::unimplemented, "unknown method " + context->method());
  return new Refusal(to_grpc(status.as_not_run(), context));
}

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(const std::string& listen, KiloKvService* service,
                                                      const ServiceOptions& options) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service);
  auto unknown_methods = std::make_unique<UnknownMethods>();
  builder.RegisterCallbackGenericService(unknown_methods.get());
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.message_bytes_max * kMessageSlack));
  builder.SetMaxSendMessageSize(-1);
  grpc::ResourceQuota quota("kilokvd");
  quota.Resize(options.grpc_memory_max);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsPerConnectionMax);
  // Without this, a second server could open the same port, and would silently take half of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return Status(StatusCode::unavailable, ErrorReason::unspecified,
                  "cannot listen on " + listen + " (--listen): is the port in use?");
  }
  std::string endpoint = listen.substr(0, listen.rfind(':') + 1) + std::to_string(port);
  std::unique_ptr<GrpcServer> started(
      new GrpcServer(std::move(unknown_methods), std::move(server), std::move(endpoint), port));
  started->set_serving(false);
  return started;
}

GrpcServer::GrpcServer(std::unique_ptr<UnknownMethods> unknown_methods, std::unique_ptr<grpc::Server> server,
                       std::string endpoint, int port)
    : unknown_methods_(std::move(unknown_methods)),
      server_(std::move(server)),
      endpoint_(std::move(endpoint)),
      port_(port) {}

GrpcServer::~GrpcServer() { shut_down(std::chrono::milliseconds(0)); }

void GrpcServer::set_serving(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus("", serving);  // each name once: who watches is told of changes alone
  health->SetServingStatus(v1::KiloKV::service_full_name(), serving);
}

void GrpcServer::shut_down(std::chrono::milliseconds grace) {
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
}

}  // namespace kilokv::server
