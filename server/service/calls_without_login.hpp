// The calls without a valid login, by address, on a server that needs logins. The edge bounds them. A call may begin
// when its connection has ended already, so it does not do to count them by connection.
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

class CallsWithoutLogin {
 public:
  using Counts = std::unordered_map<std::string, std::uint64_t>;  // by the name that ClientTable::address_of gives

  void count(Client* connection) {
    connection->calls_without_login.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    ++counts_[connection->keeper()->name];
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
