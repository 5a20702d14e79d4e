// The access table of a running database.
//
// Only the executor changes the table, between two batches, and the log has the change with the next batch. From then
// on nothing is admitted or put into a batch that the new table does not allow. A change is answered when its batch is
// durable. So after the answer to a revoke, nothing runs that needs what was taken away: what ran before is in earlier
// batches. What the new table gives can be used a moment before it is durable. That is safe, because whatever uses it
// is later in the same log.
//
// Thread safety: all members, but only one thread calls change(), and only one calls set_durable().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "server/core/access/access_table.hpp"

namespace kilokv::server {

// Chooses a change, from the newest table.
using AccessEdit = std::function<Result<AccessChange>(const AccessTable&)>;

class Access {
 public:
  using Table = std::shared_ptr<const AccessTable>;

  // At the start: the recovered table.
  void recovered(AccessTable table) {
    durable_ = latest_ = std::make_shared<const AccessTable>(std::move(table));
    hash_ = latest_->hash();
  }

  Table latest() const {
    const std::scoped_lock lock(mutex_);
    return latest_;
  }
  // Changes with each change of the table.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Only for the thread that calls change().
  const Hash128& hash() const { return hash_; }

  // Makes a change. Requires: the latest table's check() allows it. Returns the table after it.
  Table change(const AccessChange& change) {
    AccessTable next = *latest();
    next.apply(change);
    auto table = std::make_shared<const AccessTable>(std::move(next));
    hash_ = table->hash();
    const std::scoped_lock lock(mutex_);
    latest_ = table;
    version_.fetch_add(1, std::memory_order_release);
    return table;
  }

  // The table that the durable batches have made, for checkpoints.
  Table durable() const {
    const std::scoped_lock lock(mutex_);
    return durable_;
  }
  void set_durable(Table table) {
    const std::scoped_lock lock(mutex_);
    durable_ = std::move(table);
  }

 private:
  mutable std::mutex mutex_;
  Table latest_ = std::make_shared<const AccessTable>(), durable_ = latest_;
  Hash128 hash_;
  std::atomic<std::uint64_t> version_{1};
};

// The hash of the database's whole state: that of the keys, and that of the access table. Without users it is that of
// the keys alone.
inline Hash128 state_hash_with(const Hash128& keys, const Hash128& access) {
  return {keys.low + access.low, keys.high + access.high};
}

}  // namespace kilokv::server
