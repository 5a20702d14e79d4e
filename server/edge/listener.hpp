// The listening sockets. Thread safety: none; the start makes it, and one thread accepts.
#pragma once

#include <netdb.h>

#include <string>
#include <vector>

#include "engine/base/status.hpp"
#include "server/edge/descriptor.hpp"

namespace kilokv::server {

struct Listener {
  std::vector<Descriptor> sockets;  // one for each address of the host; they do not block
  int port = 0;
  std::string endpoint;  // HOST:PORT that clients connect to

  // Whether every address is of this machine alone.
  bool loopback_only = true;
};

// Listens on HOST:PORT; port 0 picks a free port. An IPv6 address is in brackets. A host with several addresses listens
// on each of them. Errors: UNAVAILABLE, which names the address, the setting and the reason.
Result<Listener> listen_on(const std::string& endpoint, const std::string& setting = "--listen");

// Whether each address of the host is of this machine alone. Opens no port. Errors: as listen_on.
Result<bool> is_for_this_machine(const std::string& endpoint, const std::string& setting);

// Whether a list of addresses has the same address before this one: two lines of /etc/hosts may say the same.
bool is_repeated(const addrinfo& list, const addrinfo& info);

}  // namespace kilokv::server
