#include "server/core/clients/client_table.hpp"

#include <algorithm>

namespace kilokv::server {

std::shared_ptr<Client> ClientTable::client(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Client>& known = clients_[name];
  std::shared_ptr<Client> client = known.lock();
  if (client != nullptr) return client;
  client = std::make_shared<Client>(name);
  known = client;
  if (clients_.size() >= sweep_at_) sweep();
  return client;
}

// Removes the clients that have ended. The next sweep comes when the table is twice as large, so that a sweep costs
// little for each new client.
void ClientTable::sweep() {
  std::erase_if(clients_, [](const auto& entry) { return entry.second.expired(); });
  sweep_at_ = std::max<std::size_t>(1024, 2 * clients_.size());
}

}  // namespace kilokv::server
