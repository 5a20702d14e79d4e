// Finds the client of a call by its name, and makes it with its first call. A client that makes no calls for a while is
// forgotten. Until then the table keeps it, with its place in the turns.
//
// All connections of one address have one keeper (client.hpp). The address of IPv6 is its first half, because one host
// has all addresses with the same first half. (The limits of connections count them in the same way.)
//
// Thread safety: all members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/core/clients/client.hpp"

namespace kilokv::server {

// What the calls of a connection use, as its client counts it.
struct ConnectionUse {
  std::uint64_t accounted_bytes = 0, message_bytes = 0, forgiven_bytes = 0;
  std::uint64_t refused_calls = 0, calls_without_login = 0;
  std::int64_t late_since_ms = AwaitedMessages::kNever;
};

class ClientTable {
 public:
  // The client with this name, which is its own keeper.
  std::shared_ptr<Client> client(const std::string& name);
  // Calls `visit` for each that it knows.
  template <class Visit>
  void for_each(const Visit& visit) {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, known] : clients_) visit(known.client.get());
  }
  // The client of a connection. `peer`: as gRPC names it, such as ipv4:127.0.0.1:40000 or ipv6:%5B::1%5D:40000.
  std::shared_ptr<Client> connection(const std::string& peer);
  // When the table forgets the connection, the bytes begin again with 0. It keeps a connection with an open call.
  ConnectionUse use_of(const std::string& peer, std::int64_t now_ms);
  // Its calls whose messages are late.
  std::vector<std::shared_ptr<AwaitingCall>> late_calls(const std::string& peer, std::int64_t now_ms);
  // The name of the address of a peer. A peer that is neither of IPv4 nor of IPv6 has a name of its own.
  static std::string address_of(const std::string& peer);
  // How many it knows.
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return clients_.size();
  }

 private:
  struct Known {
    std::shared_ptr<Client> client;
    bool has_called = false;  // since the last sweep
  };
  Known& known(const std::string& name, bool is_connection);
  std::shared_ptr<Client> find(const std::string& name);  // null: not known
  void sweep();

  std::mutex mutex_;
  std::unordered_map<std::string, Known> clients_;
  std::size_t sweep_at_ = 1024;
};

}  // namespace kilokv::server
