// The names of a peer: what gRPC calls it, and the address for which the limits count it.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace kilokv::server {

struct PeerName {
  std::string address;  // for the limits, such as 127.0.0.1 or 2001:db8::/64
  std::string name;     // as gRPC says it, such as ipv4:127.0.0.1:1234
};

// For the limits, an address of IPv4 counts as one, also where it comes by a socket of IPv6. The addresses of a /64 of
// IPv6 count as one address, because one machine can have all of them.
PeerName name_of_peer(const sockaddr_storage& peer);

// The address as the limits name it. `client`: as ClientTable::address_of, such as ipv4:127.0.0.1 or ipv6:2001:db8::
std::string limited_address(std::string_view client);

}  // namespace kilokv::server
