// The admission queue: the bounded queue between the threads that submit and the executor.
//
// Invariants: a refused request is charged nothing, and the caller still owns it. After push() the executor owns it.
// Locks are taken per request, never per transaction.
//
// Thread safety: any thread; only the executor calls take().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/base/status.hpp"
#include "server/core/commit_log.hpp"
#include "server/core/environment.hpp"
#include "server/core/options.hpp"
#include "server/core/pipeline/admitted_request.hpp"
#include "server/core/pipeline/transaction_cost.hpp"

namespace kilokv::server {

class AdmissionQueue {
 public:
  AdmissionQueue(const DatabaseOptions& options, CommitLog* log) : options_(options), log_(log) {}

  // Estimates the highest cost of the request's transactions, at the largest value that is known now.
  void estimate(AdmittedRequest* request) const;
  // Charges queue, log and parking lot for the request. RESOURCE_EXHAUSTED says which of them is full.
  // INVALID_ARGUMENT: one of its transactions alone is larger than a log record may be. Requires: the cost is
  // estimated, and to_run is known.
  Status charge(AdmittedRequest* request);
  // Appends the request. Requires: it is charged.
  void push(std::shared_ptr<AdmittedRequest> request);

  // The oldest request; null if the queue is empty. It stays in its place until take() has taken all of it.
  std::shared_ptr<AdmittedRequest> front() const;
  // Removes `count` transactions of the oldest request, which went into a batch.
  void take(std::uint32_t count);

  // The largest value that is in the database or was admitted. It includes all values of a request that front()
  // returned.
  std::uint64_t largest_value() const { return largest_value_.load(std::memory_order_acquire); }
  // Recovery found a value of this size. Requires: nothing is admitted yet.
  void recovered_value(std::uint64_t bytes) { largest_value_.store(bytes, std::memory_order_release); }

  // The number of transactions that take() can have now.
  std::uint64_t ready() const { return ready_.load(std::memory_order_acquire); }
  // transactions() and bytes() count what is queued, and what is charged but not yet pushed. oldest_us() is the
  // monotonic time at which the oldest request came (kNever: empty).
  std::uint64_t transactions() const { return transactions_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  TimeUs oldest_us() const;

  // How many requests were pushed, and taken completely, since the start. The n-th pushed request has left the queue
  // when taken() >= n.
  std::uint64_t pushed() const { return pushed_.load(std::memory_order_acquire); }
  std::uint64_t taken() const { return taken_.load(std::memory_order_acquire); }

  // All transactions of the request are answered: gives back log space and parking places.
  void finished(const AdmittedRequest& request);

 private:
  static Status check_costliest(const AdmittedRequest& request);
  Status reserve(const AdmittedRequest& request, std::uint64_t largest_value);
  std::uint64_t log_bytes(const LogBound& bound, std::uint64_t largest_value) const {
    return bound.at(largest_value, options_.result_bytes_max);
  }

  const DatabaseOptions& options_;
  CommitLog* log_;
  std::atomic<std::uint64_t> transactions_{0}, ready_{0}, bytes_{0}, waiting_{0}, pushed_{0}, taken_{0},
      largest_value_{0};
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<AdmittedRequest>> requests_;
  // Invariant: admitted_log_.at(largest value) bytes are reserved. A request with a larger value than all before also
  // pays for the requests that are already admitted, because they may copy that value.
  std::mutex log_mutex_;
  LogBound admitted_log_;
};

}  // namespace kilokv::server
