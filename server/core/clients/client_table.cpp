#include "server/core/clients/client_table.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

namespace kilokv::server {

std::shared_ptr<Client> ClientTable::client(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Client> client = known(name, /*is_connection=*/false).client;
  if (clients_.size() >= sweep_at_) sweep();
  return client;
}

std::shared_ptr<Client> ClientTable::connection(const std::string& peer) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Client> client = known(peer, /*is_connection=*/true).client;
  if (clients_.size() >= sweep_at_) sweep();
  return client;
}

std::shared_ptr<Client> ClientTable::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(name);
  return found == clients_.end() ? nullptr : found->second.client;
}

std::vector<std::shared_ptr<AwaitingCall>> ClientTable::late_calls(const std::string& peer, std::int64_t now_ms) {
  const std::shared_ptr<Client> client = find(peer);
  if (client == nullptr) return {};
  return client->awaited.late_calls(now_ms);
}

ConnectionUse ClientTable::use_of(const std::string& peer, std::int64_t now_ms) {
  const std::shared_ptr<Client> client = find(peer);
  if (client == nullptr) return {};
  const auto now = [](const std::atomic<std::uint64_t>& number) { return number.load(std::memory_order_relaxed); };
  return {now(client->accounted_bytes), now(client->message_bytes),       now(client->forgiven_bytes),
          now(client->refused_calls),   now(client->calls_without_login), client->awaited.late_since_ms(now_ms)};
}

// The name of an address is never that of a connection, because it has no port.
ClientTable::Known& ClientTable::known(const std::string& name, bool is_connection) {
  Known& found = clients_[name];
  found.has_called = true;
  if (found.client != nullptr) return found;
  const std::string address = is_connection ? address_of(name) : name;
  std::shared_ptr<Client> keeper = address == name ? nullptr : known(address, false).client;
  found.client = std::make_shared<Client>(name, std::move(keeper));
  return found;
}

std::string ClientTable::address_of(const std::string& full_peer) {
  constexpr std::string_view kConsole = Client::kConsolePrefix;
  std::string peer = full_peer.starts_with(kConsole) ? full_peer.substr(kConsole.size()) : full_peer;
  constexpr std::string_view kV4 = "ipv4:", kV6 = "ipv6:";
  const std::size_t port = peer.rfind(':');
  if (peer.starts_with(kV4) && port >= kV4.size()) return peer.substr(0, port);
  if (!peer.starts_with(kV6) || port < kV6.size()) return peer;
  std::string host = peer.substr(kV6.size(), port - kV6.size());
  for (const std::string_view open : {"[", "%5B"}) {
    if (host.starts_with(open)) host.erase(0, open.size());
  }
  host.resize(std::min(host.size(), host.find_first_of("]%")));  // without its end, and without a zone
  in6_addr address{};
  if (::inet_pton(AF_INET6, host.c_str(), &address) != 1) return peer;
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    ::inet_ntop(AF_INET, &address.s6_addr[12], text.data(), text.size());
    return std::string(kV4) + text.data();
  }
  std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), std::uint8_t{0});
  ::inet_ntop(AF_INET6, &address, text.data(), text.size());
  return std::string(kV6) + text.data();
}

// Removes the clients that hold nothing and have not called since the last sweep. The next sweep comes when the table
// is twice as large, so that a sweep costs little for each new client.
void ClientTable::sweep() {
  for (auto it = clients_.begin(); it != clients_.end();) {
    Known& known = it->second;
    const bool stays = std::exchange(known.has_called, false) || known.client.use_count() > 1;
    it = stays ? std::next(it) : clients_.erase(it);
  }
  sweep_at_ = std::max<std::size_t>(1024, 2 * clients_.size());
}

}  // namespace kilokv::server
