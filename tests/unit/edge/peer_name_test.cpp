// What gRPC calls a peer, and the address for which the limits count it.
#include "server/edge/peer_name.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstdint>
#include <cstring>

namespace kilokv::server {
namespace {

PeerName of_v4(const char* address, std::uint16_t port) {
  sockaddr_storage storage = {};
  auto& peer = reinterpret_cast<sockaddr_in&>(storage);
  peer.sin_family = AF_INET;
  peer.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, address, &peer.sin_addr), 1);
  return name_of_peer(storage);
}

PeerName of_v6(const char* address, std::uint16_t port, std::uint32_t scope = 0) {
  sockaddr_storage storage = {};
  auto& peer = reinterpret_cast<sockaddr_in6&>(storage);
  peer.sin6_family = AF_INET6;
  peer.sin6_port = htons(port);
  peer.sin6_scope_id = scope;
  EXPECT_EQ(inet_pton(AF_INET6, address, &peer.sin6_addr), 1);
  return name_of_peer(storage);
}

TEST(PeerNameTest, AnAddressOfIpv4IsTheSameByBothKindsOfSocket) {
  EXPECT_EQ(of_v4("192.0.2.7", 1234).address, "192.0.2.7");
  EXPECT_EQ(of_v4("192.0.2.7", 1234).name, "ipv4:192.0.2.7:1234");
  EXPECT_EQ(of_v6("::ffff:192.0.2.7", 65535).address, "192.0.2.7");
  EXPECT_EQ(of_v6("::ffff:192.0.2.7", 65535).name, "ipv4:192.0.2.7:65535");
}

TEST(PeerNameTest, TheAddressesOfASlash64CountAsOne) {
  EXPECT_EQ(of_v6("2001:db8::1:2:3:4", 1).address, "2001:db8::/64");
  EXPECT_EQ(of_v6("2001:db8::ffff:0:0:1", 1).address, "2001:db8::/64");
  EXPECT_EQ(of_v6("2001:db8:0:1::1", 1).address, "2001:db8:0:1::/64");
  EXPECT_EQ(of_v6("2001:db8::1:2:3:4", 7117).name, "ipv6:%5B2001:db8::1:2:3:4%5D:7117");
  EXPECT_EQ(of_v6("fe80::1", 7117, 3).name, "ipv6:%5Bfe80::1%253%5D:7117");
}

TEST(PeerNameTest, TheNameOfAClientGivesTheSameAddress) {
  EXPECT_EQ(limited_address("ipv4:127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(limited_address("ipv6:2001:db8::"), "2001:db8::/64");
}

}  // namespace
}  // namespace kilokv::server
