// The database that the handlers serve. There is none before recovery has ended and after draining has begun, but the
// port is open at these times, too. Thread safety: all members. The owner keeps the database alive until every RPC has
// ended.
#pragma once

#include <atomic>

#include "engine/base/status.hpp"
#include "server/core/database.hpp"

namespace kilokv::server {

class DatabaseGate {
 public:
  // Errors: UNAVAILABLE, with the reason RECOVERING before open(), and DRAINING after close().
  Result<Database*> get() const {
    if (closed_.load(std::memory_order_acquire))
      return Status(StatusCode::unavailable, ErrorReason::draining, "draining");
    Database* database = database_.load(std::memory_order_acquire);
    if (database == nullptr) return Status(StatusCode::unavailable, ErrorReason::recovering, "recovering");
    return database;
  }

  // The database for those who only look at it. It is there after close(), too; null before open().
  Database* database() const { return database_.load(std::memory_order_acquire); }
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  void open(Database* database) { database_.store(database, std::memory_order_release); }
  void close() { closed_.store(true, std::memory_order_release); }

 private:
  std::atomic<Database*> database_{nullptr};
  std::atomic<bool> closed_{false};
};

}  // namespace kilokv::server
