#include "server/core/pipeline/batcher.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

namespace kilokv::server {
namespace {

constexpr std::size_t kParkedTriedMin = 64;

// Ascending runs of LiveItem need increasing indices; parked transactions of one request come one at a time.
LiveItem item_of(const BatchPart& part, std::uint32_t t) {
  return {t, part.request->index_of(part.first + (t - part.begin)), part.admitted_batch, false};
}

}  // namespace

Batcher::Batcher(const DatabaseOptions& options, const Clock* clock, AdmissionQueue* queue, Pool<Request>* requests,
                 Waiting* waiting, TimeUs last_stamp_us, std::function<void(const ClockChange&)> clock_changed)
    : options_(options),
      queue_(queue),
      requests_(requests),
      waiting_(waiting),
      stamps_(clock, options.clock_jump_us_max, last_stamp_us, std::move(clock_changed)) {}

bool Batcher::must_form(TimeUs now, std::uint32_t in_flight, bool at_once) const {
  if (in_flight >= options_.batch_in_flight_max) return false;
  const std::uint64_t waiting = queue_->ready() + waiting_->awake();
  const bool other_work =
      !attached_.empty() || (!waiting_->empty() && waiting_->next_deadline_us() <= stamps_.now_us());
  if (waiting == 0 && !other_work) return false;
  if (in_flight == 0 || at_once) return true;
  if (waiting >= options_.batch_max_transactions) return true;
  const TimeUs oldest = queue_->oldest_us();
  return oldest != kNever && now - oldest >= options_.batch_max_delay_us;
}

TimeUs Batcher::next_due(TimeUs now, std::uint32_t in_flight) const {
  if (in_flight >= options_.batch_in_flight_max) return kNever;
  TimeUs due = kNever;
  if (const TimeUs oldest = queue_->oldest_us(); oldest != kNever) due = oldest + options_.batch_max_delay_us;
  if (!waiting_->empty()) {
    // A deadline that is already due waits for the batches in flight.
    const TimeUs left_us = waiting_->next_deadline_us() - stamps_.now_us();
    if (left_us > 0 || in_flight == 0) due = std::min(due, now + std::max<TimeUs>(left_us, 0));
  }
  return due;
}

void Batcher::fill(const Position& before, RefusedBatch* refused, Batch* batch) {
  batch->header.number = before.batch + 1;
  batch->header.time_us = stamps_.take();
  batch->header.first_version = before.next_version;
  cost_ = {};
  if (!refused->empty()) {
    refused->append_next(batch);
  } else {
    // If one parked transaction filled a batch, the next batch has none.
    if (!queue_held_up_) append_parked(batch);
    const std::uint64_t ready = queue_->ready();
    append_queued(batch);
    queue_held_up_ = ready > 0 && queue_->ready() == ready;
  }
  batch->parts.insert(batch->parts.end(), std::make_move_iterator(attached_.cancelled.begin()),
                      std::make_move_iterator(attached_.cancelled.end()));
  attached_.cancelled.clear();
  batch->session_entries.swap(attached_.entries);
  batch->when_durable.swap(attached_.when_durable);
}

// Takes at most half of the batch in number, and in cost if requests wait in the queue, so that these also progress.
// The first transaction always goes. The last batch shows how many are likely to fit; not many more are tried.
void Batcher::append_parked(Batch* batch) {
  const std::size_t half = std::max<std::size_t>(options_.batch_max_transactions / 2, 1);
  const std::size_t max = std::min<std::size_t>(half, 2 * parked_taken_ + kParkedTriedMin);
  const std::uint64_t share = queue_->ready() > 0 ? 2 : 1;
  parked_taken_ = waiting_->hand_out(batch->header.time_us, max, [&](const Parked& parked) {
    scratch_.clear();
    engine::unpack_transaction(parked.packed, &scratch_);
    const TransactionCost cost =
        cost_of(scratch_, 0, parked.session.has_value(), queue_->largest_value(), options_.result_bytes_max);
    if (!batch->parts.empty() && !has_room(cost, share)) return false;
    cost_ += cost;
    append_one_parked(parked, batch);
    return true;
  });
}

// Appends the transaction that is unpacked in scratch_.
void Batcher::append_one_parked(const Parked& parked, Batch* batch) {
  BatchPart part;
  part.request = std::static_pointer_cast<AdmittedRequest>(parked.owner);
  part.begin = static_cast<std::uint32_t>(batch->columns.size());
  part.end = part.begin + 1;
  part.admitted_batch = parked.admitted_batch;
  part.first_arrival = parked.arrival;
  part.parked_id = parked.id;
  part.deadline_us = parked.deadline_us;
  part.whole = false;
  part.items = {LiveItem{part.begin, parked.index, parked.admitted_batch, false}};
  batch->columns.append(scratch_, 0, 1);
  batch->expires.push_back(parked.deadline_us <= batch->header.time_us);
  batch->parts.push_back(std::move(part));
}

// Whether the current batch (`share` 2: half of it) can take this too. It uses the largest value known now, because the
// value of the newest request in the batch counts.
bool Batcher::has_room(TransactionCost more, std::uint64_t share) const {
  const std::uint64_t largest_value = queue_->largest_value();
  more += cost_;
  return more.log.at(largest_value, options_.result_bytes_max) <= options_.batch_max_bytes / share &&
         more.reads_at(largest_value) <= options_.batch_max_reads / share;
}

// How many of the request's next transactions the batch takes. The first transaction of a batch always fits. A
// transaction that has its own batch fits only into an empty one.
std::uint32_t Batcher::fitting(const Batch& batch, const AdmittedRequest& request) {
  if (request.own_batch) {
    if (!batch.columns.empty()) return 0;
    cost_ += request.cost;
    return request.to_run;
  }
  const std::size_t room = options_.batch_max_transactions - batch.columns.size();
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(request.to_run - request.batched, room));
  if (wanted == request.to_run && has_room(request.cost, 1)) {
    cost_ += request.cost;
    return wanted;
  }
  std::uint32_t count = 0;
  for (; count < wanted; ++count) {
    const TransactionCost cost =
        cost_of(request.content->transactions, request.batched + count, request.identity.session.has_value(),
                queue_->largest_value(), options_.result_bytes_max);
    if (!has_room(cost, 1) && batch.columns.size() + count > 0) break;
    cost_ += cost;
  }
  return count;
}

void Batcher::append_queued(Batch* batch) {
  while (batch->columns.size() < options_.batch_max_transactions) {
    const std::shared_ptr<AdmittedRequest> request = queue_->front();
    if (request == nullptr) return;
    if (request->failed) {
      queue_->take(request->to_run - request->batched);
      continue;
    }
    const std::uint32_t count = fitting(*batch, *request);
    if (count == 0) return;
    BatchPart part;
    part.request = request;
    part.begin = static_cast<std::uint32_t>(batch->columns.size());
    part.end = part.begin + count;
    part.first = request->batched;
    part.admitted_batch = batch->header.number;
    part.first_arrival = next_arrival_;
    next_arrival_ += count;
    engine::TransactionColumns& columns = request->content->transactions;
    for (std::uint32_t i = 0; i < count; ++i) {
      batch->expires.push_back(columns.wait_timeout_us[request->batched + i] == 0);
    }
    if (request->own_batch) {
      std::swap(batch->columns, columns);  // a copy would delay all others
    } else {
      batch->columns.append(columns, request->batched, request->batched + count);
    }
    if (!request->indices.empty()) {
      part.whole = false;
      for (std::uint32_t t = part.begin; t < part.end; ++t) part.items.push_back(item_of(part, t));
    }
    batch->parts.push_back(std::move(part));
    queue_->take(count);
    if (request->batched == request->to_run) {
      request->content->clear();
      requests_->give(std::move(request->content));
    }
    if (request->own_batch) return;
  }
}

bool Batcher::has_cancelled_of_failed() const {
  return std::any_of(attached_.cancelled.begin(), attached_.cancelled.end(),
                     [](const BatchPart& part) { return part.request->failed; });
}

void Batcher::take_back_attached(Batch* batch) {
  attached_.entries.insert(attached_.entries.begin(), batch->session_entries.begin(), batch->session_entries.end());
  attached_.when_durable.insert(attached_.when_durable.begin(), std::make_move_iterator(batch->when_durable.begin()),
                                std::make_move_iterator(batch->when_durable.end()));
  std::vector<BatchPart> parts;
  for (BatchPart& part : batch->parts) {
    (part.begin == part.end ? attached_.cancelled : parts).push_back(std::move(part));
  }
  batch->parts = std::move(parts);
}

}  // namespace kilokv::server
