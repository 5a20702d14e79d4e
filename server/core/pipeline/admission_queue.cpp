#include "server/core/pipeline/admission_queue.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"

namespace kilokv::server {
namespace {

constexpr std::int64_t kRetryAfterUs = 10000, kDiskRetryAfterUs = 100000;
// So many dropped requests leave the queue before the lock is given back to those who submit.
constexpr std::size_t kRemovedAtOnce = 64;
// What a request in the queue takes beside its columns, with its sink.
constexpr std::uint64_t kQueuedRequestBytes = sizeof(Request) + sizeof(AdmittedRequest) + 512;

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

AdmissionQueue::AdmissionQueue(const DatabaseOptions& options, CommitLog* log, DataBudget* data)
    : options_(options),
      log_(log),
      data_(data),
      transactions_(options.queue_transactions_max,
                    {ErrorReason::queue_full, "queue", " transactions", "--queue-transactions-max", kRetryAfterUs}),
      bytes_(options.queue_bytes_max, {ErrorReason::queue_full, "queue", " bytes", "--queue-bytes-max", kRetryAfterUs},
             SharedLimit::kLittleBytes),
      waiting_(options.parked_max,
               {ErrorReason::parked_full, "parked", " transactions that may wait", "--parked-max", kRetryAfterUs}) {}

void AdmissionQueue::estimate(AdmittedRequest* request) const {
  const engine::TransactionColumns& columns = request->content->transactions;
  request->largest_value = std::max(largest_value(), largest_written(columns));
  request->cost = {};
  request->parts_value = std::bit_ceil(request->largest_value);
  request->cost_left = 0;
  std::vector<std::uint32_t>& parts_of_batch = request->content->parts_of_batch;
  parts_of_batch.resize(columns.size());
  request->most_log_bytes = request->most_copies = request->most_reads = {};
  const BatchParts parts(request->parts_value, options_);
  const auto count = static_cast<std::uint32_t>(columns.size());
  for (std::uint32_t t = 0; t < count;) {
    const TransactionCost cost =
        cost_of(columns, t, request->identity.session.has_value(), request->largest_value, options_.result_bytes_max);
    const std::uint32_t part = parts.of(cost);
    request->most_log_bytes.look(t, log_bytes(cost.log, request->largest_value));
    request->most_copies.look(t, cost.log.copied_values);
    // Guards that were uploaded have a limit of their own.
    request->most_reads.look(t, cost.reads + (request->uploaded.keys == 0 ? cost.guards : 0));
    const std::uint32_t first = t++;
    while (t < count && costs_as_before(columns, t)) ++t;
    std::fill(parts_of_batch.begin() + first, parts_of_batch.begin() + t, part);
    request->cost_left += std::uint64_t{part} * (t - first);
    request->cost += cost.times(t - first);
  }
}

void AdmissionQueue::estimate_again(AdmittedRequest* request, std::uint64_t largest_value) const {
  const engine::TransactionColumns& columns = request->content->transactions;
  request->parts_value = largest_value;
  request->cost_left = 0;
  const BatchParts parts(largest_value, options_);
  for (std::uint32_t t = request->batched; t < columns.size(); ++t) {
    const TransactionCost cost =
        cost_of(columns, t, request->identity.session.has_value(), largest_value, options_.result_bytes_max);
    const std::uint32_t part = parts.of(cost);
    request->content->parts_of_batch[t] = part;
    request->cost_left += part;
  }
}

Status AdmissionQueue::check_transactions(const AdmittedRequest& request, const DatabaseOptions& options) {
  struct Check {
    AdmittedRequest::Highest highest;
    std::uint64_t most;
    const char* unit;
    const char* setting;
  };
  for (const Check& check :
       {Check{request.most_reads, options.transaction_reads_max, " reads of keys", "--transaction-reads-max"},
        Check{request.most_copies, options.transaction_copies_max, " PUTs that copy a value",
              "--transaction-copies-max"},
        Check{request.most_log_bytes, kTransactionLogBytesMax, " bytes of log", "--operations-max"}}) {
    if (check.highest.amount <= check.most) continue;
    return Status::invalid({"transactions[" + std::to_string(request.index_of(check.highest.transaction)) + "]",
                            std::to_string(check.most) + check.unit,
                            "up to " + std::to_string(check.highest.amount) + check.unit, check.setting});
  }
  return {};
}

// Requires: the lock of the log. `share_bytes`: what the request counts as a part of its client's share: the same until
// it is answered, although its reservation grows with the largest value.
Status AdmissionQueue::check_log_share(const AdmittedRequest& request, std::uint64_t grown_bytes,
                                       std::uint64_t share_bytes) {
  const Held* const client = request.holder()->account(&Client::log_bytes);
  if (client == nullptr || log_shares_ == 0) return {};
  const std::uint64_t room = log_->room(request.cost.use);
  if (room < grown_bytes) return {};  // reserve() says what is full
  const std::uint64_t sum = log_shares_ + share_bytes;
  const auto beyond = SharedLimit::beyond_share(room - grown_bytes + sum, sum, *client, share_bytes);
  if (!beyond) return {};
  return Status::exhausted(
      ErrorReason::disk_full,
      {"disk", std::to_string(beyond->most) + " bytes of log" + beyond->for_whom + " at the moment",
       std::to_string(beyond->held) + " bytes that unanswered requests" + beyond->whose +
           " may write, with this request",
       request.cost.use == LogUse::new_data ? "--disk-reserve" : ""},
      kDiskRetryAfterUs);
}

Status AdmissionQueue::reserve(const AdmittedRequest& request) {
  const std::scoped_lock lock(log_mutex_);
  const std::uint64_t before = largest_value_.load(std::memory_order_relaxed);
  const std::uint64_t largest_value = std::max(request.largest_value, before);
  const std::uint64_t grown = log_bytes(admitted_log_, largest_value) - log_bytes(admitted_log_, before) +
                              log_bytes(request.cost.log, largest_value);
  const std::uint64_t share = log_bytes(request.cost.log, request.largest_value);
  if (Status status = check_log_share(request, grown, share); !status.ok()) return status;
  if (Status status = log_->reserve(grown, request.cost.use); !status.ok()) return status;
  admitted_log_ += request.cost.log;
  log_shares_ += share;
  if (Held* client = request.holder()->account(&Client::log_bytes)) {
    client->add(share);
  }
  largest_value_.store(largest_value, std::memory_order_release);
  return {};
}

Status AdmissionQueue::charge(AdmittedRequest* request) {
  const engine::TransactionColumns& columns = request->content->transactions;
  const auto& timeouts = columns.wait_timeout_us;
  request->queued_bytes = capacity_bytes(*request->content) + kQueuedRequestBytes;
  if (Status status = check_transactions(*request, options_); !status.ok()) return status;
  request->waiting_transactions =
      static_cast<std::uint64_t>(std::count_if(timeouts.begin(), timeouts.end(), [](DurationUs t) { return t > 0; }));
  return charge_parts(request);
}

Status AdmissionQueue::charge_parts(AdmittedRequest* request) {
  const std::uint64_t count = request->to_run;
  Client* const client = request->client.get();
  Client* const holder = request->holder();
  // A request with more transactions than the limit is admitted when the queue is empty.
  Status status = transactions_.charge(client->account(&Client::queued_transactions), count, count);
  if (!status.ok()) return status;
  status = bytes_.charge(client->account(&Client::queued_bytes), request->queued_bytes);
  if (status.ok()) {
    status = waiting_.charge(holder->account(&Client::waiting), request->waiting_transactions);
    if (status.ok()) {
      Held* const data = holder->account(&Client::data_bytes);
      // What waits for long would keep the room from others.
      bool* const in_room = request->waiting_transactions == 0 ? &request->data_in_room : nullptr;
      status = data_->reserve(request->cost.data, request->largest_value, data, in_room);
      if (status.ok()) {
        status = reserve(*request);
        if (status.ok()) return status;
        data_->release(request->cost.data, request->largest_value, data, request->data_in_room);
      }
      waiting_.release(holder->account(&Client::waiting), request->waiting_transactions);
    }
    bytes_.release(client->account(&Client::queued_bytes), request->queued_bytes);
  }
  transactions_.release(client->account(&Client::queued_transactions), count);
  return status;
}

void AdmissionQueue::push(std::shared_ptr<AdmittedRequest> request) {
  const std::scoped_lock lock(mutex_);
  ready_.fetch_add(request->to_run, std::memory_order_release);
  if (request->identity.session) names_.insert({*request->identity.session, request->identity.number});
  if (turns_.empty()) oldest_us_ = request->admitted_us;
  turns_.push(std::move(request));
}

void AdmissionQueue::begin_batch(TimeUs now_us) {
  const std::scoped_lock lock(mutex_);
  oldest_us_ = now_us;
  turns_.begin_batch();
}

AdmissionQueue::Turn AdmissionQueue::next() {
  std::vector<std::shared_ptr<AdmittedRequest>> dropped;  // freed without the lock
  for (;;) {
    {
      const std::scoped_lock lock(mutex_);
      for (;;) {
        std::shared_ptr<AdmittedRequest> request = turns_.next();
        if (request == nullptr) return {};
        if (request->batched < request->to_run) return {std::move(request), turns_.turn()};
        turns_.remove();
        dropped.push_back(std::move(request));
        if (dropped.size() == kRemovedAtOnce) break;
      }
    }
    dropped.clear();
  }
}

// The last transaction of the request has left the queue. Requires: the lock.
void AdmissionQueue::left(const AdmittedRequest& request) {
  bytes_.release(request.client->account(&Client::queued_bytes), request.queued_bytes);
  if (request.identity.session) names_.erase({*request.identity.session, request.identity.number});
}

void AdmissionQueue::take(std::uint32_t count, std::uint64_t cost) {
  const std::scoped_lock lock(mutex_);
  const std::shared_ptr<AdmittedRequest> request = turns_.next();
  request->batched += count;
  request->cost_left -= std::min(cost, request->cost_left);
  KILOKV_CHECK(request->batched <= request->to_run);
  ready_.fetch_sub(count, std::memory_order_relaxed);
  transactions_.release(request->client->account(&Client::queued_transactions), count);
  const bool all = request->batched == request->to_run;
  turns_.took(cost, all);
  if (all) left(*request);
}

void AdmissionQueue::put_off() {
  const std::scoped_lock lock(mutex_);
  turns_.put_off();
}

// The request keeps its place, and next() passes it over.
void AdmissionQueue::drop(AdmittedRequest* request) {
  const std::scoped_lock lock(mutex_);
  const std::uint32_t count = request->to_run - request->batched;
  if (count == 0) return;
  request->batched = request->to_run;
  ready_.fetch_sub(count, std::memory_order_relaxed);
  transactions_.release(request->client->account(&Client::queued_transactions), count);
  left(*request);
}

TimeUs AdmissionQueue::oldest_us() const {
  const std::scoped_lock lock(mutex_);
  return ready_.load(std::memory_order_relaxed) == 0 ? kNever : oldest_us_;
}

bool AdmissionQueue::holds(const RequestName& name) const {
  const std::scoped_lock lock(mutex_);
  return names_.contains(name);
}

void AdmissionQueue::finished(const AdmittedRequest& request) {
  Client* const holder = request.holder();
  {
    const std::scoped_lock lock(log_mutex_);
    admitted_log_ -= request.cost.log;
    log_->release(log_bytes(request.cost.log, largest_value_.load(std::memory_order_relaxed)));
    const std::uint64_t share = log_bytes(request.cost.log, request.largest_value);
    log_shares_ -= share;
    if (Held* client = holder->account(&Client::log_bytes)) client->subtract(share);
  }
  data_->release(request.cost.data, request.largest_value, holder->account(&Client::data_bytes), request.data_in_room);
  waiting_.release(holder->account(&Client::waiting), request.waiting_transactions);
}

}  // namespace kilokv::server
