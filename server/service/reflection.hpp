// gRPC's reflection: tools ask for the services and messages of this server. gRPC's own service for it is not used. It
// knows no logins, and each open stream of it holds a thread.
//
// A stream needs a login, as a call of the database does. Its requests are short. The next one is read when the answer
// to the last one is sent.
//
// Thread safety: all functions.
#pragma once

#include <grpc/reflection/v1alpha/reflection.pb.h>

#include <cstdint>

#include "server/service/call_environment.hpp"

namespace kilokv::server {

inline constexpr char kReflectionMethod[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
inline constexpr std::uint64_t kReflectionBytesMax = 4096;  // of a request

// Answers one request. A pure function.
grpc::reflection::v1alpha::ServerReflectionResponse reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request);

// A stream of requests begins. Requires: `environment` outlives it.
grpc::ServerGenericBidiReactor* take_reflection(CallContext* context, CallEnvironment* environment);

}  // namespace kilokv::server
