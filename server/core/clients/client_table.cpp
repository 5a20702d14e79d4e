#include "server/core/clients/client_table.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kilokv::server {

std::shared_ptr<Client> ClientTable::client(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Known& known = clients_[name];
  known.has_called = true;
  if (known.client != nullptr) return known.client;
  std::shared_ptr<Client> client = known.client = std::make_shared<Client>(name);
  if (clients_.size() >= sweep_at_) sweep();
  return client;
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
