// TLS for gRPC, with certificates that can change while the server runs.
//
// gRPC asks for the certificate and the key at each handshake. A key stays in memory: gRPC's own watcher of files
// (FileWatcherCertificateProvider) may pass on a certificate and a key that do not match. It would need a checked copy
// of the key on the disk.
//
// If clients must show a certificate, gRPC takes any certificate, and each call is checked when it begins (logins.hpp).
// A bad one gets UNAUTHENTICATED with the reason. A check in the handshake would only end the connection. So a call is
// refused also on an old connection, if its certificate is not accepted any more.
//
// Thread safety: gRPC calls it in any thread.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/service/tls_files.hpp"

namespace kilokv::server {

// Credentials for a port of a server. They hold the files.
std::shared_ptr<grpc::ServerCredentials> tls_credentials(const std::shared_ptr<TlsFiles>& files);

}  // namespace kilokv::server
