#include "server/core/pipeline/admission_queue.hpp"

#include <algorithm>
#include <string>

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

constexpr std::int64_t kRetryAfterUs = 10000;

// A limit on a sum, as an error names it.
struct Limit {
  ErrorReason reason;
  const char* field;
  std::uint64_t most;
  const char* unit;
  const char* setting;
};

// Adds `amount` unless the sum passes the limit. The error reports the sum that was refused. (A second read of the
// counter could show less than the limit, because other requests leave at the same time.)
Status charge_counter(std::atomic<std::uint64_t>* counter, std::uint64_t amount, const Limit& limit) {
  const std::uint64_t sum = counter->fetch_add(amount, std::memory_order_relaxed) + amount;
  if (sum <= limit.most) return {};
  counter->fetch_sub(amount, std::memory_order_relaxed);
  return Status::exhausted(limit.reason,
                           {limit.field, std::to_string(limit.most) + " " + limit.unit,
                            std::to_string(sum) + " " + limit.unit + " with this request", limit.setting},
                           kRetryAfterUs);
}

// The size of the largest value that the request may write. The constants of guards do not count, because they are only
// compared.
std::uint64_t largest_written(const engine::TransactionColumns& columns) {
  std::uint64_t largest = 0;
  if (columns.value_end.empty()) return largest;
  for (std::size_t i = 0; i < columns.op_kind.size(); ++i) {
    if (columns.op_operand[i] != static_cast<std::uint8_t>(engine::Operand::bytes)) continue;
    largest = std::max<std::uint64_t>(largest, columns.value(static_cast<std::size_t>(columns.op_value[i])).size());
  }
  return largest;
}

}  // namespace

void AdmissionQueue::estimate(AdmittedRequest* request) const {
  const engine::TransactionColumns& columns = request->content->transactions;
  request->largest_value = std::max(largest_value(), largest_written(columns));
  request->cost = {};
  request->costliest = {};
  for (std::uint32_t t = 0; t < columns.size(); ++t) {
    const TransactionCost cost =
        cost_of(columns, t, request->identity.session.has_value(), request->largest_value, options_.result_bytes_max);
    const std::uint64_t bytes = log_bytes(cost.log, request->largest_value);
    if (bytes > request->costliest.log_bytes) request->costliest = {t, bytes};
    request->cost += cost;
  }
}

Status AdmissionQueue::check_costliest(const AdmittedRequest& request) {
  if (request.costliest.log_bytes <= kTransactionLogBytesMax) return {};
  return Status::invalid({"transactions[" + std::to_string(request.index_of(request.costliest.transaction)) + "]",
                          std::to_string(kTransactionLogBytesMax) + " bytes of log",
                          "up to " + std::to_string(request.costliest.log_bytes) + " bytes", "--operations-max"});
}

Status AdmissionQueue::reserve(const AdmittedRequest& request, std::uint64_t largest_value) {
  const std::scoped_lock lock(log_mutex_);
  const std::uint64_t before = largest_value_.load(std::memory_order_relaxed);
  largest_value = std::max(largest_value, before);
  const std::uint64_t grown = log_bytes(admitted_log_, largest_value) - log_bytes(admitted_log_, before);
  Status status = log_->reserve(grown + log_bytes(request.cost.log, largest_value), request.cost.use);
  if (!status.ok()) return status;
  admitted_log_ += request.cost.log;
  largest_value_.store(largest_value, std::memory_order_release);
  return status;
}

Status AdmissionQueue::charge(AdmittedRequest* request) {
  const engine::TransactionColumns& columns = request->content->transactions;
  const std::uint64_t count = request->to_run;
  const auto& timeouts = columns.wait_timeout_us;
  request->queued_bytes = columns.memory_bytes();
  if (Status status = check_costliest(*request); !status.ok()) return status;
  request->waiting_transactions =
      static_cast<std::uint64_t>(std::count_if(timeouts.begin(), timeouts.end(), [](DurationUs t) { return t > 0; }));

  // A request with more transactions than the limit is admitted when the queue is empty.
  Status status = charge_counter(&transactions_, count,
                                 {ErrorReason::queue_full, "queue", std::max(options_.queue_transactions_max, count),
                                  "transactions", "--queue-transactions-max"});
  if (!status.ok()) return status;
  status = charge_counter(&bytes_, request->queued_bytes,
                          {ErrorReason::queue_full, "queue", options_.queue_bytes_max, "bytes", "--queue-bytes-max"});
  if (status.ok()) {
    status = charge_counter(
        &waiting_, request->waiting_transactions,
        {ErrorReason::parked_full, "parked", options_.parked_max, "transactions that may wait", "--parked-max"});
    if (status.ok()) {
      status = reserve(*request, request->largest_value);
      if (status.ok()) return status;
      waiting_.fetch_sub(request->waiting_transactions, std::memory_order_relaxed);
    }
    bytes_.fetch_sub(request->queued_bytes, std::memory_order_relaxed);
  }
  transactions_.fetch_sub(count, std::memory_order_relaxed);
  return status;
}

void AdmissionQueue::push(std::shared_ptr<AdmittedRequest> request) {
  const std::scoped_lock lock(mutex_);
  ready_.fetch_add(request->to_run, std::memory_order_release);
  requests_.push_back(std::move(request));
  pushed_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<AdmittedRequest> AdmissionQueue::front() const {
  const std::scoped_lock lock(mutex_);
  return requests_.empty() ? nullptr : requests_.front();
}

void AdmissionQueue::take(std::uint32_t count) {
  const std::scoped_lock lock(mutex_);
  AdmittedRequest& request = *requests_.front();
  request.batched += count;
  KILOKV_CHECK(request.batched <= request.to_run);
  ready_.fetch_sub(count, std::memory_order_relaxed);
  transactions_.fetch_sub(count, std::memory_order_relaxed);
  if (request.batched < request.to_run) return;
  bytes_.fetch_sub(request.queued_bytes, std::memory_order_relaxed);
  requests_.pop_front();
  taken_.fetch_add(1, std::memory_order_release);
}

TimeUs AdmissionQueue::oldest_us() const {
  const std::scoped_lock lock(mutex_);
  return requests_.empty() ? kNever : requests_.front()->admitted_us;
}

void AdmissionQueue::finished(const AdmittedRequest& request) {
  {
    const std::scoped_lock lock(log_mutex_);
    admitted_log_ -= request.cost.log;
    log_->release(log_bytes(request.cost.log, largest_value_.load(std::memory_order_relaxed)));
  }
  waiting_.fetch_sub(request.waiting_transactions, std::memory_order_relaxed);
}

}  // namespace kilokv::server
