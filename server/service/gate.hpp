// Which database the handlers serve, if any: the port is open before recovery has ended and after draining has begun.
// Thread safety: all of it. The owner keeps the database alive until every RPC has ended.
#pragma once

#include <atomic>

#include "engine/base/status.hpp"
#include "server/core/database.hpp"

namespace kilokv::server {

class DatabaseGate {
 public:
  // UNAVAILABLE: RECOVERING before open(), DRAINING after close().
  Result<Database*> get() const {
    if (closed_.load(std::memory_order_acquire))
      return Status(StatusCode::unavailable, "draining").because(ErrorReason::draining);
    Database* database = database_.load(std::memory_order_acquire);
    if (database == nullptr) return Status(StatusCode::unavailable, "recovering").because(ErrorReason::recovering);
    return database;
  }

  bool closed() const { return closed_.load(std::memory_order_acquire); }
  void open(Database* database) { database_.store(database, std::memory_order_release); }
  void close() { closed_.store(true, std::memory_order_release); }

 private:
  std::atomic<Database*> database_{nullptr};
  std::atomic<bool> closed_{false};
};

}  // namespace kilokv::server
