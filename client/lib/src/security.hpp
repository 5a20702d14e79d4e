// TLS of a client: the credentials of its channels, and what is said when a handshake fails.
// Thread safety: pure functions.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "kilokv/client.hpp"

namespace kilokv::client {

// Reads the files that the options name. Errors: INVALID_ARGUMENT names the option and the file, and says what is
// wrong.
Expected<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const ClientOptions& options);

// Turns the error of a call into one that says why the handshake failed. Returns false if the error is about something
// else. `message` is gRPC's own text.
bool explain_handshake(const ClientOptions& options, const std::string& message, Error* error);

// Looks, after a failed call without TLS, whether the server uses TLS. If so, says so in `error`, and returns true.
bool explain_missing_tls(const ClientOptions& options, Error* error);

// INVALID_ARGUMENT: the token would go over a network without TLS, or it is not a token.
Error check_token(const ClientOptions& options);

}  // namespace kilokv::client
