// The client that a session counts for: the keeper of the one who opened the session, or after a restart of the server,
// was the first to use it. Copies count once. Thread safety: as a shared_ptr.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "server/core/clients/client.hpp"

namespace kilokv::server {

class SessionOwner {
 public:
  SessionOwner() = default;
  // Counts one more session for the keeper of the client. Null: nobody in particular.
  explicit SessionOwner(const std::shared_ptr<Client>& user) {
    const std::shared_ptr<Client> client = keeper_of(user);
    if (client == nullptr || client->account(&Client::sessions) == nullptr) return;
    client->sessions.add(1);
    client_ = std::shared_ptr<Client>(client.get(), [client](Client* counted) { counted->sessions.subtract(1); });
  }

  bool known() const { return client_ != nullptr; }
  std::uint64_t sessions() const { return known() ? client_->sessions.load() : 0; }
  // Where the session counts its bytes of this kind; null if the owner is not known.
  Held* account(Held Client::*thing) const { return known() ? client_->account(thing) : nullptr; }

 private:
  std::shared_ptr<Client> client_;  // its end counts the session off
};

}  // namespace kilokv::server
