// Ends the handshakes of peers whose certificate holds a name that cannot be read, such as an IP address of five bytes.
//
// gRPC 1.51 reads the names of every peer when the handshake is done. Where it cannot read one, its own assertion ends
// the program (ssl_transport_security.cc, peer_from_x509). We let gRPC accept any certificate, so that our check says
// in plain words what is wrong (trust.hpp). So without this guard, any stranger could end a server that asks for
// certificates, and any false server its client.
//
// A server also bounds what the certificates of a client take in memory. They stay for as long as the connection, and a
// stranger chooses them. And no session stays after its connection, which would keep them: clients resume with tickets.
//
// Thread safety: any thread.
#pragma once

#include <cstddef>

namespace kilokv::tls {

// What a client may show in a handshake.
struct CertificateBounds {
  static constexpr int kCertificatesMax = 8;    // in the handshake
  static constexpr int kPartsMax = 32;          // extensions of a certificate, and parts of its subject or issuer
  static constexpr std::size_t kNamesMax = 64;  // subject alternative names of a certificate
  std::size_t bytes_max = 0;  // of all certificates in the handshake, in DER form; 0: clients are not bounded
};
// From now on, the servers of this process bound their clients. The bytes hold for contexts that are made later.
// Requires of the servers: they check the certificate of each client themselves, because OpenSSL does not do it any
// more.
void bound_certificates(const CertificateBounds& bounds);

// From now on, every handshake of this process is guarded, also those that a library makes. Called before the first
// one. Later calls change nothing.
void guard_handshakes();

}  // namespace kilokv::tls
