// What gRPC counts of each connection of this process: its channelz. Thread safety: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "server/edge/connection_account.hpp"

namespace kilokv::server {

class Channelz {
 public:
  // The counts of the connection of this peer, as gRPC names it. Nothing if gRPC has no such connection, or if its
  // connections were listed a moment ago.
  std::optional<CallCounts> counts_of(const std::string& peer);

 private:
  void list_sockets();

  std::chrono::steady_clock::time_point listed_at_;
  std::unordered_map<std::string, std::int64_t> sockets_;  // gRPC's number of each, by the name of the peer
};

}  // namespace kilokv::server
