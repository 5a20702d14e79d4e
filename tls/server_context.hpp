// TLS of a server that is not gRPC: the context of OpenSSL for its connections, and what a client has shown in the
// handshake.
//
// The client's certificate is asked for, and not checked, as for gRPC: the server checks it when the client asks for
// something (trust.hpp). So a client without a certificate can still get what needs none, and the other one hears why
// it gets nothing. No session is resumed: a client that resumes one would not show the certificates of its issuers.
//
// Thread safety: any thread may make a context; one thread at a time uses a connection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tls/files.hpp"

struct ssl_ctx_st;  // SSL_CTX of OpenSSL
struct ssl_st;      // SSL

namespace kilokv::tls {

// Its owner counts references, so it can be given to a library that takes one.
struct FreeServerContext {
  void operator()(ssl_ctx_st* context) const;
};
using ServerContext = std::unique_ptr<ssl_ctx_st, FreeServerContext>;

// `authorities`: PEM; clients are told that the server takes certificates of these. Empty: it asks for none. Null:
// OpenSSL does not take the pair, which read_pair() has found to be good, so there is no memory. Requires:
// bound_certificates() was called, if it asks for certificates (certificate_guard.hpp).
ServerContext server_context(const Pair& pair, const std::string& authorities);

// What the client of a connection has shown.
struct ShownCertificate {
  std::string own, issuers;                    // PEM; empty: none
  std::vector<std::string> alternative_names;  // hosts, addresses, e-mail addresses and URIs
  std::vector<std::string> common_names;       // at most one
};
ShownCertificate shown_by(const ssl_st* connection);

}  // namespace kilokv::tls
