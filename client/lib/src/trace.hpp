// The trace that a call names (CallOptions::traceparent). Thread safety: pure functions.
#pragma once

#include <grpcpp/client_context.h>

#include "kilokv/client.hpp"

namespace kilokv::client {

// INVALID_ARGUMENT if there is a traceparent and it is malformed. gRPC would end the program at some of these.
Error check_trace(const CallOptions& options);

// Puts the traceparent, if there is one, into the metadata of a call. Requires: check_trace() gave no error.
void add_trace(const CallOptions& options, grpc::ClientContext* context);

}  // namespace kilokv::client
