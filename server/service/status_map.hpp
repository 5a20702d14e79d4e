// Only this file turns a Status into what gRPC carries: a code, a message, and an ErrorDetail.
// Thread safety: pure functions.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "engine/base/status.hpp"
#include "kilokv/v1/kilokv.pb.h"

namespace kilokv::server {

grpc::StatusCode to_grpc_code(StatusCode code);
// The other way; INTERNAL for the codes that only gRPC has.
StatusCode from_grpc_code(grpc::StatusCode code);
v1::ErrorReason to_proto_reason(ErrorReason reason);

// The status that ends an RPC. The ErrorDetail goes into the trailing metadata `kilokv-error-bin`.
// Requires: the RPC of `context` has not been finished.
grpc::Status to_grpc(const Status& status, grpc::ServerContextBase* context);

// The ErrorDetail of a call that this process made itself, and that has ended; empty: the error comes from gRPC.
v1::ErrorDetail detail_of(const grpc::ClientContext& context);

// Fills an error that is a message of a stream. The stream goes on.
void fill_error(const Status& status, v1::Error* error);

}  // namespace kilokv::server
