// Finds the client of a call by its name, and makes it with its first call. A client that makes no calls for a while is
// forgotten. Until then the table keeps it, with its place in the turns. Thread safety: all members.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "server/core/clients/client.hpp"

namespace kilokv::server {

class ClientTable {
 public:
  // The client with this name.
  std::shared_ptr<Client> client(const std::string& name);
  // Calls `visit` for each that it knows.
  template <class Visit>
  void for_each(const Visit& visit) {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, known] : clients_) visit(known.client.get());
  }
  // How many it knows.
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return clients_.size();
  }

 private:
  void sweep();

  std::mutex mutex_;
  struct Known {
    std::shared_ptr<Client> client;
    bool has_called = false;  // since the last sweep
  };
  std::unordered_map<std::string, Known> clients_;
  std::size_t sweep_at_ = 1024;
};

}  // namespace kilokv::server
