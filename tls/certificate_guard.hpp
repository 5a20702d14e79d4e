// Ends the handshakes of peers whose certificate holds a name that cannot be read, such as an IP address of five bytes.
//
// gRPC 1.51 reads the names of every peer when the handshake is done. Where it cannot read one, its own assertion ends
// the program (ssl_transport_security.cc, peer_from_x509). We let gRPC accept any certificate, so that our check says
// in plain words what is wrong (trust.hpp). So without this guard, any stranger could end a server that asks for
// certificates, and any false server its client.
//
// Thread safety: any thread.
#pragma once

namespace kilokv::tls {

// From now on, every handshake of this process is guarded, also those that a library makes. Called before the first
// one. Later calls change nothing.
void guard_handshakes();

}  // namespace kilokv::tls
