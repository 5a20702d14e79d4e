// Admission: the bounded queue between those who submit and the executor.
//
// Thread safety: all of it, any thread; take() by the executor alone. Locks are per request, never per transaction.
// On refusal nothing is charged and the caller still owns the request; once push() has it, the executor owns it.
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

  // Fills in what the transactions of the request may cost, at the largest value that is known now.
  void estimate(AdmittedRequest* request) const;
  // Charges queue, log and parking lot for the request, or says which of them is full. INVALID_ARGUMENT: one of its
  // transactions alone is more than the log takes. Requires: the cost
  // is estimated, and to_run known.
  Status charge(AdmittedRequest* request);
  // Requires: charged.
  void push(std::shared_ptr<AdmittedRequest> request);

  // The oldest request, left in its place until take() has all of it; null: empty.
  std::shared_ptr<AdmittedRequest> front() const;
  // `count` transactions of the oldest request went into a batch.
  void take(std::uint32_t count);

  // The largest value that the database holds or that was admitted; of a request that front() returned, all values
  // count.
  std::uint64_t largest_value() const { return largest_value_.load(std::memory_order_acquire); }
  // Recovery met a value. Requires: nothing is admitted yet.
  void recovered_value(std::uint64_t bytes) { largest_value_.store(bytes, std::memory_order_release); }

  // Transactions that take() can have now.
  std::uint64_t ready() const { return ready_.load(std::memory_order_acquire); }
  // The same and those that are charged already, on their way to push(); and when the oldest request came (monotonic;
  // kNever: empty).
  std::uint64_t transactions() const { return transactions_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  TimeUs oldest_us() const;

  // How many requests were pushed, and taken whole, since the start: one pushed as the n-th is out of the queue when
  // taken() >= n.
  std::uint64_t pushed() const { return pushed_.load(std::memory_order_acquire); }
  std::uint64_t taken() const { return taken_.load(std::memory_order_acquire); }

  // All transactions of the request are answered: gives log space and parking places back.
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
  // Invariant: admitted_log_.at(largest value) is reserved. A request that brings a larger value than all before pays
  // for what is admitted already, too: it may be copied by that.
  std::mutex log_mutex_;
  LogBound admitted_log_;
};

}  // namespace kilokv::server
