// What the edge asks of the system for a connected socket, and for sockets that wait.
#pragma once

#include <cstdint>

#include "server/edge/connection_account.hpp"

namespace kilokv::server {

// Adds a descriptor to an epoll. Returns false if the system has no room for it.
bool watch(int epoll, int descriptor, std::uint32_t events);

// Zeros if the system does not know.
SocketBytes socket_bytes(int socket);

// Holds a connection back, or lets it be read. Who waits for bytes of a socket that is held back does not see them,
// unless the socket's memory is full or the peer has ended its side.
void hold_back(int socket, bool is_held);

// Ends a connection, and drops what nobody has read yet. After the shutdown nothing arrives. gRPC may have read the
// begin of what is dropped. It finds nothing after the gap, unless an urgent byte makes the system stop there for a
// moment.
void end_unread(int socket);

}  // namespace kilokv::server
