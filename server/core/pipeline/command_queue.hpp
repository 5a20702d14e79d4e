// The commands that wait for the executor, in the turns of their clients (core/clients/client_turns.hpp). The commands
// of one client run in the order in which they were posted.
//
// Thread safety: any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/core/clients/client_turns.hpp"

namespace kilokv::server {

class CommandQueue {
 public:
  using Command = std::function<void()>;

  // `client`: null for what the server posts.
  void push(std::shared_ptr<Client> client, Command command) {
    const std::scoped_lock lock(mutex_);
    commands_.push(std::move(client), std::move(command));
  }
  // Removes the next command of the client whose turn it is.
  std::optional<Command> take() {
    const std::scoped_lock lock(mutex_);
    auto taken = commands_.take([](const Command&) { return true; });
    if (!taken) return std::nullopt;
    return std::move(taken->item);
  }
  bool empty() const {
    const std::scoped_lock lock(mutex_);
    return commands_.empty();
  }

 private:
  mutable std::mutex mutex_;
  ClientTurns<Command> commands_;
};

}  // namespace kilokv::server
