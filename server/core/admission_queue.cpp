#include "server/core/admission_queue.hpp"

#include <algorithm>
#include <string>

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

constexpr std::int64_t kRetryAfterUs = 10000;

// Adds `amount` unless the sum passes `limit`.
bool charge_counter(std::atomic<std::uint64_t>* counter, std::uint64_t amount, std::uint64_t limit) {
  const std::uint64_t before = counter->fetch_add(amount, std::memory_order_relaxed);
  if (before + amount <= limit) return true;
  counter->fetch_sub(amount, std::memory_order_relaxed);
  return false;
}

Status full(const char* field, std::uint64_t met, std::uint64_t limit, const char* unit, const char* knob) {
  return Status::exhausted(
      {field, std::to_string(limit) + " " + unit, std::to_string(met) + " " + unit + " with this request", knob},
      kRetryAfterUs);
}

}  // namespace

std::uint64_t log_bytes_bound(const engine::TransactionColumns& columns, std::size_t t, bool in_session,
                              std::uint64_t largest_value, const DatabaseOptions& options) {
  constexpr std::uint64_t kPerTransaction = 64, kPerOperation = 48, kPerRead = 256, kPerDeletedKey = 256;
  std::uint64_t bytes = kPerTransaction;
  for (std::uint32_t i = columns.then_begin(t); i < columns.else_end[t]; ++i) {
    const auto operand = static_cast<engine::Operand>(columns.op_operand[i]);
    bytes += kPerOperation;
    switch (static_cast<engine::OpKind>(columns.op_kind[i])) {
      case engine::OpKind::get: bytes += in_session ? kPerRead : 0; break;
      case engine::OpKind::range_get: bytes += in_session ? options.result_bytes_max : 0; break;
      case engine::OpKind::delete_range: bytes += columns.range_limit[columns.op_key[i]] * kPerDeletedKey; break;
      case engine::OpKind::put:
        if (operand == engine::Operand::bytes) {
          bytes += columns.value(static_cast<std::size_t>(columns.op_value[i])).size();
        } else if (operand == engine::Operand::get || operand == engine::Operand::get_negated) {
          bytes += largest_value;
        }
        [[fallthrough]];
      case engine::OpKind::del:
      case engine::OpKind::add: bytes += columns.key(columns.op_key[i]).size(); break;
    }
  }
  return bytes;
}

void AdmissionQueue::saw_value(std::uint64_t bytes) {
  std::uint64_t largest = largest_value();
  while (largest < bytes && !largest_value_.compare_exchange_weak(largest, bytes)) {
  }
}

Status AdmissionQueue::charge(RequestRun* run) {
  const Request& request = *run->request;
  const std::uint64_t count = run->to_run;
  const auto& timeouts = request.transactions.wait_timeout_us;
  run->queued_bytes = request.transactions.memory_bytes();
  for (std::size_t i = 0; i < request.transactions.value_end.size(); ++i) {
    saw_value(request.transactions.value(i).size());
  }
  run->largest_value = largest_value();
  run->reserved_bytes = 512;
  for (std::size_t t = 0; t < count; ++t) {
    run->reserved_bytes +=
        log_bytes_bound(request.transactions, t, run->session.has_value(), run->largest_value, options_);
  }
  run->waiting_transactions =
      static_cast<std::uint64_t>(std::count_if(timeouts.begin(), timeouts.end(), [](DurationUs t) { return t > 0; }));

  if (!charge_counter(&transactions_, count, std::max(options_.queue_transactions_max, count))) {
    return full("queue", transactions() + count, options_.queue_transactions_max, "transactions",
                "--queue-transactions-max");
  }
  Status status;
  if (!charge_counter(&bytes_, run->queued_bytes, options_.queue_bytes_max)) {
    status = full("queue", bytes() + run->queued_bytes, options_.queue_bytes_max, "bytes", "--queue-bytes-max");
  } else {
    if (!charge_counter(&waiting_, run->waiting_transactions, options_.parked_max)) {
      status = full("parked", waiting_.load() + run->waiting_transactions, options_.parked_max,
                    "transactions that may wait", "--parked-max");
    } else {
      status = log_->reserve(run->reserved_bytes);
      if (status.ok()) return status;
      waiting_.fetch_sub(run->waiting_transactions, std::memory_order_relaxed);
    }
    bytes_.fetch_sub(run->queued_bytes, std::memory_order_relaxed);
  }
  transactions_.fetch_sub(count, std::memory_order_relaxed);
  return status;
}

void AdmissionQueue::push(std::shared_ptr<RequestRun> run) {
  const std::scoped_lock lock(mutex_);
  ready_.fetch_add(run->to_run, std::memory_order_release);
  runs_.push_back(std::move(run));
  pushed_.fetch_add(1, std::memory_order_release);
}

std::shared_ptr<RequestRun> AdmissionQueue::front() const {
  const std::scoped_lock lock(mutex_);
  return runs_.empty() ? nullptr : runs_.front();
}

void AdmissionQueue::take(std::uint32_t count) {
  const std::scoped_lock lock(mutex_);
  RequestRun& run = *runs_.front();
  run.batched += count;
  KILOKV_CHECK(run.batched <= run.to_run);
  ready_.fetch_sub(count, std::memory_order_relaxed);
  transactions_.fetch_sub(count, std::memory_order_relaxed);
  if (run.batched < run.to_run) return;
  bytes_.fetch_sub(run.queued_bytes, std::memory_order_relaxed);
  runs_.pop_front();
  taken_.fetch_add(1, std::memory_order_release);
}

TimeUs AdmissionQueue::oldest_us() const {
  const std::scoped_lock lock(mutex_);
  return runs_.empty() ? kNever : runs_.front()->admitted_us;
}

void AdmissionQueue::finished(const RequestRun& run) {
  log_->release(run.reserved_bytes);
  waiting_.fetch_sub(run.waiting_transactions, std::memory_order_relaxed);
}

}  // namespace kilokv::server
