#include "server/edge/peer_name.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <utility>

namespace kilokv::server {
namespace {

std::string text_of(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, address, text.data(), text.size());
  return text.data();
}

}  // namespace

PeerName name_of_peer(const sockaddr_storage& peer) {
  const bool is_v4 = peer.ss_family == AF_INET;
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  const std::string port = std::to_string(ntohs(is_v4 ? v4.sin_port : v6.sin6_port));
  if (is_v4 || IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    const std::string host =
        text_of(AF_INET, is_v4 ? static_cast<const void*>(&v4.sin_addr) : &v6.sin6_addr.s6_addr[12]);
    std::string name = "ipv4:" + host;
    name += ":" + port;
    return {host, std::move(name)};
  }
  in6_addr address = v6.sin6_addr;
  std::string name = "ipv6:%5B" + text_of(AF_INET6, &address);
  // As in a URI, where %25 stands for the % before the number of an interface.
  if (v6.sin6_scope_id != 0) name += "%25" + std::to_string(v6.sin6_scope_id);
  name += "%5D:" + port;
  for (std::size_t i = 8; i < 16; ++i) address.s6_addr[i] = 0;
  return {text_of(AF_INET6, &address) + "/64", std::move(name)};
}

std::string limited_address(std::string_view client) {
  const bool is_v6 = client.starts_with("ipv6:");
  client.remove_prefix(client.find(':') + 1);
  return std::string(client) + (is_v6 ? "/64" : "");
}

}  // namespace kilokv::server
