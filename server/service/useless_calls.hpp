// The calls of each address that were answered or begun for nothing: without a valid login, on a server that needs one,
// or ended without their answer. The edge bounds them. A call may begin when its connection has ended already, so the
// connection alone would not do.
//
// Thread safety: all members.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "server/core/clients/client.hpp"

namespace kilokv::server {

class UselessCalls {
 public:
  struct Count {
    std::uint64_t without_login = 0, cancelled = 0;
  };
  using Counts = std::unordered_map<std::string, Count>;  // by the name of the address, as ClientTable::address_of

  void count_without_login(Client* connection) {
    connection->calls_without_login.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    ++counts_[connection->keeper()->name].without_login;
  }
  void count_cancelled(Client* connection) {
    connection->cancelled_calls.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    ++counts_[connection->keeper()->name].cancelled;
  }
  // Since the last time.
  Counts take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(counts_, {});
  }

 private:
  std::mutex mutex_;
  Counts counts_;
};

}  // namespace kilokv::server
