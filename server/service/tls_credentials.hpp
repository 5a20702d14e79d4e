// TLS for gRPC, with certificates that can change while the server runs.
//
// gRPC asks for the certificate and the key at each handshake. A key stays in memory: gRPC's own watcher of files
// (FileWatcherCertificateProvider) may pass on a certificate and a key that do not match. It would need a checked copy
// of the key on the disk.
//
// If clients must show a certificate, gRPC takes any certificate, and each call is checked here before its handler
// runs. A bad one gets UNAUTHENTICATED with the reason. A check in the handshake would only end the connection. So a
// call is refused also on an old connection, if its certificate is not accepted any more. Open calls are not checked
// here: the service ends them (open_calls.hpp).
//
// Thread safety: gRPC calls it in any thread.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <functional>
#include <memory>
#include <string>

#include "server/service/client_certificates.hpp"
#include "server/service/tls_files.hpp"

namespace kilokv::server {

// Gets the client of a call that is refused, as its certificate names it (empty: it has none), and the reason. gRPC
// does not tell the address here.
using OnRefusedCertificate = std::function<void(const std::string& subject, const std::string& reason)>;

// Credentials for a port of a server. They hold the files, and what checks the certificates of clients.
std::shared_ptr<grpc::ServerCredentials> tls_credentials(const std::shared_ptr<TlsFiles>& files,
                                                         const std::shared_ptr<ClientCertificates>& certificates,
                                                         OnRefusedCertificate on_refused);

}  // namespace kilokv::server
