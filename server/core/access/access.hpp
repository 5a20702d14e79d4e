// The access table of a running database.
//
// Only the executor changes the table, between two batches, and the log has the change with the next batch. From then
// on nothing is admitted or put into a batch that the new table does not allow. A change is answered when its batch is
// durable. So after the answer to a revoke, nothing runs that needs what was taken away: what ran before is in earlier
// batches. What the new table gives can be used a moment before it is durable. That is safe, because whatever uses it
// is later in the same log. A page or a list, which is not in the log, is answered after last_change().
//
// A checkpoint needs the table of the batch that it covers, which may be older than the newest one. So there are at
// most two tables, beside the one that is being made: that of an answered batch, and the newest one. What lies between
// them is kept as changes.
//
// Thread safety: all members, but only one thread calls install().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "server/core/access/access_table.hpp"
#include "server/core/position.hpp"

namespace kilokv::server {

// Chooses a change, from the newest table.
using AccessEdit = std::function<Result<AccessChange>(const AccessTable&)>;
// The change goes into this batch. `replaced_token`: the id of an expired token whose place a new one takes; empty:
// none.
using AccessChangeBegins = std::function<void(BatchNumber, const std::string& replaced_token)>;

class Access {
 public:
  using Table = std::shared_ptr<const AccessTable>;

  // At the start: the recovered table.
  void recovered(AccessTable table) {
    answered_ = latest_ = std::make_shared<const AccessTable>(std::move(table));
    hash_ = latest_->hash();
  }

  Table latest() const {
    const std::scoped_lock lock(mutex_);
    return latest_;
  }
  // Changes with each change of the table.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // The batch with which the log has the newest change.
  BatchNumber last_change() const { return last_change_.load(std::memory_order_acquire); }
  // Only for the thread that calls install().
  const Hash128& hash() const { return hash_; }

  // The changes are made: `next` is the latest table after them. They are in the log with the batch `batch`. `bytes`:
  // of the changes. `position`: of the last answered batch.
  void install(AccessTable next, std::vector<AccessChange> changes, std::uint64_t bytes, BatchNumber batch,
               const SharedPosition& position) {
    auto table = std::make_shared<const AccessTable>(std::move(next));
    hash_ = table->hash();
    const std::scoped_lock lock(answered_mutex_);
    const BatchNumber through = position.batch();
    // To make only some of the changes needs one more table for a moment, so it is not done for each of them.
    if (is_all(through) || pending_bytes_ > kPendingBytes) forget_changes_through(through);
    pending_.push_back({batch, bytes, std::move(changes)});
    pending_bytes_ += bytes;
    const std::scoped_lock latest_lock(mutex_);
    latest_ = std::move(table);
    last_change_.store(batch, std::memory_order_release);
    version_.fetch_add(1, std::memory_order_release);
  }

  // The table after the last answered batch, whose position is stored to `at`.
  Table answered(const SharedPosition& position, Position* at) {
    const std::scoped_lock lock(answered_mutex_);
    *at = position.get();
    forget_changes_through(at->batch);
    return answered_;
  }

 private:
  static constexpr std::uint64_t kPendingBytes = std::uint64_t{1} << 20;
  struct Pending {
    BatchNumber batch;
    std::uint64_t bytes;
    std::vector<AccessChange> changes;
  };

  // Both require the answered_mutex_.
  bool is_all(BatchNumber through) const { return pending_.empty() || pending_.back().batch <= through; }
  void forget_changes_through(BatchNumber through) {
    if (pending_.empty() || pending_.front().batch > through) return;
    if (is_all(through)) {
      answered_ = latest();
      pending_.clear();
      pending_bytes_ = 0;
      return;
    }
    AccessTable table = *answered_;
    answered_.reset();
    for (; pending_.front().batch <= through; pending_.pop_front()) {
      for (const AccessChange& change : pending_.front().changes) table.apply(change);
      pending_bytes_ -= pending_.front().bytes;
    }
    answered_ = std::make_shared<const AccessTable>(std::move(table));
  }

  mutable std::mutex mutex_;
  Table latest_ = std::make_shared<const AccessTable>();
  Hash128 hash_;
  std::atomic<std::uint64_t> version_{1};
  std::atomic<BatchNumber> last_change_{0};

  std::mutex answered_mutex_;  // taken before mutex_
  Table answered_ = latest_;
  std::deque<Pending> pending_;  // the changes from answered_ to latest_
  std::uint64_t pending_bytes_ = 0;
};

// The hash of the database's whole state: that of the keys, and that of the access table. Without users it is that of
// the keys alone.
inline Hash128 state_hash_with(const Hash128& keys, const Hash128& access) {
  return {keys.low + access.low, keys.high + access.high};
}

}  // namespace kilokv::server
