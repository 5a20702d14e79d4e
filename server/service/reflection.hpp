// gRPC's reflection: tools ask for the services and messages of this server. gRPC's own service for it is not used. It
// knows no logins, and each open stream of it holds a thread.
//
// A stream needs a login, as a call of the database does. Its requests are short. The next one is read when the answer
// to the last one is sent.
//
// Thread safety: all members.
#pragma once

#include <grpc/reflection/v1alpha/reflection.grpc.pb.h>

#include "server/service/call_environment.hpp"

namespace kilokv::server {

// Answers one request. Thread safety: a pure function.
grpc::reflection::v1alpha::ServerReflectionResponse reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request);

class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::WithRawCallbackMethod_ServerReflectionInfo<
          grpc::reflection::v1alpha::ServerReflection::Service> {
 public:
  static constexpr std::uint64_t kRequestBytesMax = 4096;

  // Requires: `environment` outlives the service.
  explicit ReflectionService(CallEnvironment* environment) : environment_(environment) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* ServerReflectionInfo(
      grpc::CallbackServerContext* context) override;

 private:
  CallEnvironment* const environment_;
};

}  // namespace kilokv::server
