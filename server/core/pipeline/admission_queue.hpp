// The admission queue: the bounded queue between the threads that submit and the executor. Clients share its limits
// (clients/shared_limit.hpp), and its requests leave in turns (turns.hpp).
//
// Invariants: a refused request is charged nothing, and the caller still owns it. After push() the executor owns it.
// Locks are taken per request, or per turn of a client, never per transaction.
//
// Thread safety: any thread; only the executor calls the functions from begin_batch() to drop().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "engine/base/status.hpp"
#include "server/core/clients/client.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/environment.hpp"
#include "server/core/memory/data_budget.hpp"
#include "server/core/options.hpp"
#include "server/core/pipeline/admitted_request.hpp"
#include "server/core/pipeline/transaction_cost.hpp"
#include "server/core/pipeline/turns.hpp"

namespace kilokv::server {

class AdmissionQueue {
 public:
  AdmissionQueue(const DatabaseOptions& options, CommitLog* log, DataBudget* data);

  // Estimates the highest cost of the request's transactions, at the largest value that is known now.
  void estimate(AdmittedRequest* request) const;
  // Charges queue, log, memory and parking lot for the request. RESOURCE_EXHAUSTED says which of them is full, or of
  // which the client has its share. INVALID_ARGUMENT: one of its transactions alone costs more than a transaction may.
  // Requires: the cost is estimated, and to_run is known.
  Status charge(AdmittedRequest* request);
  // Puts the request into the queue. Requires: it is charged.
  void push(std::shared_ptr<AdmittedRequest> request);

  // A new batch begins. Requests that were put off are offered again. `now_us`: monotonic.
  void begin_batch(TimeUs now_us);
  struct Turn {
    std::shared_ptr<AdmittedRequest> request;
    std::uint64_t cost_max = 0;  // of the transactions that its client may take now, after the first
  };
  // The request whose turn it is. It has none if the queue has no more requests for this batch. The request stays in
  // its place until take() has taken all of it. take() and put_off() end the turn; without one of them, the next call
  // returns the same request.
  Turn next();
  // Removes `count` transactions, which cost `cost`, from the request of next(): they went into a batch.
  void take(std::uint32_t count, std::uint64_t cost);
  // Estimates again what parts of a batch the queued transactions of a request take, because a larger value is known
  // now. `largest_value`: rounded up to a power of two, so that values that grow by a byte do not cause this often. The
  // log space that is charged for it does not change.
  void estimate_again(AdmittedRequest* request, std::uint64_t largest_value) const;
  // The request of next() does not fit into this batch.
  void put_off();
  // The transactions of this request that are still queued will not run. Does nothing if there are none.
  void drop(AdmittedRequest* request);

  // The largest value that is in the database or was admitted. It includes all values of a request that next()
  // returned.
  std::uint64_t largest_value() const { return largest_value_.load(std::memory_order_acquire); }
  // Recovery found a value of this size. Requires: nothing is admitted yet.
  void recovered_value(std::uint64_t bytes) { largest_value_.store(bytes, std::memory_order_release); }

  // The number of transactions that take() can have now.
  std::uint64_t ready() const { return ready_.load(std::memory_order_acquire); }
  // transactions() and bytes() count what is queued, and what is charged but not yet pushed. oldest_us() is the
  // monotonic time since which requests wait for the next batch: that of the last batch, or of the first request after
  // the queue was empty (kNever: empty).
  std::uint64_t transactions() const { return transactions_.held(); }
  std::uint64_t bytes() const { return bytes_.held(); }
  TimeUs oldest_us() const;
  // Whether this request of a session is queued, in whole or in part.
  bool holds(const RequestName& name) const;

  // Bytes of what waits beside the queue for the executor, such as a cancel with its indices. They count as bytes of
  // the queue, with the client's share.
  Status charge_bytes(Client* client, std::uint64_t bytes) {
    return bytes_.charge(client == nullptr ? nullptr : client->account(&Client::queued_bytes), bytes);
  }
  void release_bytes(Client* client, std::uint64_t bytes) {
    bytes_.release(client == nullptr ? nullptr : client->account(&Client::queued_bytes), bytes);
  }

  // All transactions of the request are answered: gives back log space, memory and parking places.
  void finished(const AdmittedRequest& request);

 private:
  static Status check_transactions(const AdmittedRequest& request, const DatabaseOptions& options);
  Status charge_parts(AdmittedRequest* request);
  Status reserve(const AdmittedRequest& request);
  Status check_log_share(const AdmittedRequest& request, std::uint64_t grown_bytes, std::uint64_t share_bytes);
  std::uint64_t log_bytes(const LogBound& bound, std::uint64_t largest_value) const {
    return bound.at(largest_value, options_.result_bytes_max);
  }
  void left(const AdmittedRequest& request);

  const DatabaseOptions& options_;
  CommitLog* log_;
  DataBudget* const data_;
  SharedLimit transactions_, bytes_, waiting_;
  std::atomic<std::uint64_t> ready_{0}, largest_value_{0};
  mutable std::mutex mutex_;
  Turns turns_;
  TimeUs oldest_us_ = kNever;
  std::unordered_set<RequestName, RequestNameHash> names_;  // of the queued requests that are in sessions
  // Invariant: admitted_log_.at(largest value) bytes are reserved. A request with a larger value than all before also
  // pays for the requests that are already admitted, because they may copy that value.
  std::mutex log_mutex_;
  LogBound admitted_log_;
  std::uint64_t log_shares_ = 0;  // bytes that the admitted requests count as parts of the clients' shares
};

}  // namespace kilokv::server
