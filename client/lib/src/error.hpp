// Turns gRPC statuses and the service's error messages into Errors.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <string_view>

#include "kilokv/error.hpp"
#include "kilokv/v1/kilokv.pb.h"

namespace kilokv::client {

ErrorCode error_code(std::uint32_t grpc_code);
Error make_error(ErrorCode code, std::string message);
// `where` names the call and the endpoint. The context has the ErrorDetail of the server. If gRPC itself refused a
// message as too large, the Error is INVALID_ARGUMENT and names --message-bytes-max.
Error to_error(const grpc::Status& status, const grpc::ClientContext& context, std::string_view where);
Error to_error(const v1::Error& error);
bool is_too_large_for_grpc(const Error& error);
// The error of a call of which another attempt may have run. The server's promise `not_run` is about one sending only,
// so the client must not pass it on.
Error without_promise(Error error);
// The same for a request of a session. If the code sounds as if nothing ran, the message says more.
Error of_many_sendings(Error error);
constexpr const char* kOtherSending = "; another sending of the request may have run";

}  // namespace kilokv::client
