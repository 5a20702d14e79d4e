// Queues of items, one for each client. The clients take turns. So a client with one item waits for one item of each
// other client, however many these have. Null is a client of its own: the server itself.
//
// Invariants: a client that has items is in `turns_` once. The items of a client are in the order in which they came.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "server/core/clients/client.hpp"

namespace kilokv::server {

template <class Item>
class ClientTurns {
 public:
  struct Taken {
    std::shared_ptr<Client> client;
    Item item;
  };

  void push(std::shared_ptr<Client> client, Item item) {
    std::deque<Item>& items = items_[client.get()];
    items.push_back(std::move(item));
    if (items.size() == 1) turns_.push_back(std::move(client));
    ++size_;
  }

  // Removes the first item that `is_ready` accepts, of the first client in turn that has one. All others then come
  // before this client.
  template <class IsReady>
  std::optional<Taken> take(const IsReady& is_ready) {
    for (auto turn = turns_.begin(); turn != turns_.end(); ++turn) {
      const auto found = items_.find(turn->get());
      std::deque<Item>& items = found->second;
      const auto ready = std::find_if(items.begin(), items.end(), is_ready);
      if (ready == items.end()) continue;
      std::optional<Taken> taken(Taken{std::move(*turn), std::move(*ready)});
      turns_.erase(turn);
      items.erase(ready);
      --size_;
      if (items.empty()) {
        items_.erase(found);
      } else {
        turns_.push_back(taken->client);
      }
      return taken;
    }
    return std::nullopt;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::unordered_map<const Client*, std::deque<Item>> items_;
  std::deque<std::shared_ptr<Client>> turns_;  // keep their clients alive
  std::size_t size_ = 0;
};

}  // namespace kilokv::server
