// The commands that wait for the executor. Each client has a queue of its own, and the clients take turns. So a client
// with one command waits for one command of each other client, however many these have posted. What the server itself
// posts is a client of its own.
//
// Invariants: the commands of one client run in the order in which they were posted. A client that has commands is in
// `turns_` once.
//
// Thread safety: any thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "server/core/clients/client.hpp"

namespace kilokv::server {

class CommandQueue {
 public:
  using Command = std::function<void()>;

  // `client`: null for what the server posts.
  void push(std::shared_ptr<Client> client, Command command) {
    const std::scoped_lock lock(mutex_);
    std::deque<Command>& commands = commands_[client.get()];
    commands.push_back(std::move(command));
    if (commands.size() == 1) turns_.push_back(std::move(client));
  }
  // Removes the next command of the client whose turn it is.
  std::optional<Command> take() {
    const std::scoped_lock lock(mutex_);
    if (turns_.empty()) return std::nullopt;
    std::shared_ptr<Client> client = std::move(turns_.front());
    turns_.pop_front();
    const auto found = commands_.find(client.get());
    std::optional<Command> taken = std::move(found->second.front());
    found->second.pop_front();
    if (found->second.empty()) {
      commands_.erase(found);
    } else {
      turns_.push_back(std::move(client));
    }
    return taken;
  }
  bool empty() const {
    const std::scoped_lock lock(mutex_);
    return turns_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const Client*, std::deque<Command>> commands_;
  std::deque<std::shared_ptr<Client>> turns_;  // keep their clients alive
};

}  // namespace kilokv::server
