#include "server/core/pipeline/batcher.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>
#include <utility>

#include "server/core/access/access_check.hpp"

namespace kilokv::server {
namespace {

// The most requests, and the most clients with parked transactions, that are put off in one batch. Then the batch takes
// no more.
constexpr std::size_t kPutOffMax = 16, kParkedPutOffMax = 64;
// So many batches may pass by what does not fit beside unanswered reads. Then nothing passes until it fits.
constexpr std::uint32_t kPassedByMax = 64;
// After too many batches have passed by a parked transaction, two batches wait until all is answered. The one takes
// those that are awake first, the other those that are due.
constexpr std::uint32_t kDrainedHandOuts = 2;
// Batches that delete expired keys: one is executed while the other one is synced. More would make the sync longer for
// which a batch of clients waits.
constexpr std::uint32_t kExpiriesInFlightMax = 2;

// Ascending runs of LiveItem need increasing indices; parked transactions of one request come one at a time.
LiveItem item_of(const BatchPart& part, std::uint32_t t) {
  return {t, part.request->index_of(part.first + (t - part.begin)), part.admitted_batch, false};
}

}  // namespace

Batcher::Batcher(const DatabaseOptions& options, const Clock* clock, const Access* access, AdmissionQueue* queue,
                 Pool<Request>* requests, Waiting* waiting, TimeUs last_stamp_us,
                 std::function<void(const ClockChange&)> clock_changed)
    : options_(options),
      clock_(clock),
      access_(access),
      queue_(queue),
      requests_(requests),
      waiting_(waiting),
      stamps_(clock, options.clock_jump_us_max, last_stamp_us, std::move(clock_changed)) {}

bool Batcher::must_form(TimeUs now, BatchesInFlight in_flight, bool at_once) const {
  if (in_flight.all() >= options_.batch_in_flight_max) return false;
  const std::uint64_t waiting = queue_->ready() + waiting_->awake();
  const bool other_work = !attached_.empty() || waiting_->next_due_us() <= stamps_.now_us();
  if (waiting == 0 && !other_work) return false;
  if (in_flight.of_clients == 0 || at_once) return true;
  if (waiting >= options_.batch_max_transactions) return true;
  const TimeUs oldest = queue_->oldest_us();
  return oldest != kNever && now - oldest >= options_.batch_max_delay_us;
}

TimeUs Batcher::next_due(TimeUs now, BatchesInFlight in_flight) const {
  if (in_flight.all() >= options_.batch_in_flight_max) return kNever;
  TimeUs due = kNever;
  if (const TimeUs oldest = queue_->oldest_us(); oldest != kNever) due = oldest + options_.batch_max_delay_us;
  if (const TimeUs waiting_us = waiting_->next_due_us(); waiting_us != kNever) {
    // What is already due waits for the batches in flight.
    const TimeUs left_us = waiting_us - stamps_.now_us();
    if (left_us > 0 || in_flight.of_clients == 0) due = std::min(due, now + std::max<TimeUs>(left_us, 0));
  }
  return due;
}

// By the stamps. While a batch is in flight, keys that are due wait a little, so that one batch takes many of them.
TimeUs Batcher::expiry_due_us(const engine::Engine& engine, BatchesInFlight in_flight) const {
  if (options_.read_only || in_flight.all() >= options_.batch_in_flight_max) return kNever;
  // Expiries that wait for a sync leave a place to clients.
  if (in_flight.expiries > 0 && in_flight.all() + 1 >= options_.batch_in_flight_max) return kNever;
  if (in_flight.expiries >= kExpiriesInFlightMax) return kNever;
  const TimeUs next_us = engine.next_expiry();
  if (in_flight.all() == 0 || next_us > kNever - options_.batch_max_delay_us) return next_us;
  return next_us + options_.batch_max_delay_us;
}

bool Batcher::must_expire(const engine::Engine& engine, BatchesInFlight in_flight) const {
  const TimeUs due_us = expiry_due_us(engine, in_flight);
  return due_us != kNever && due_us <= stamps_.now_us();
}

TimeUs Batcher::next_expiry(const engine::Engine& engine, TimeUs now, BatchesInFlight in_flight) const {
  const TimeUs due_us = expiry_due_us(engine, in_flight);
  if (due_us == kNever) return kNever;
  const TimeUs left_us = std::max<TimeUs>(due_us - stamps_.now_us(), 0);
  return left_us > kNever - now ? kNever : now + left_us;
}

void Batcher::fill_expired(const Position& before, const engine::Engine& engine, const engine::KeyHashSecret& secret,
                           std::size_t keys_max, Batch* batch) {
  batch->header.number = before.batch + 1;
  batch->header.time_us = stamps_.take();
  batch->header.first_version = before.next_version;
  batch->expired = true;
  engine::ColumnsBuilder builder(&batch->columns, secret);
  engine.visit_due(batch->header.time_us, keys_max, [&](std::string_view key, TimeUs) {
    builder.begin();
    builder.op(engine::OpKind::del, builder.key(key));
    builder.end();
  });
  batch->expires.assign(batch->columns.size(), 0);
}

bool Batcher::fill(const Position& before, std::uint64_t unanswered_parts, RefusedBatch* refused, Batch* batch) {
  batch->header.number = before.batch + 1;
  batch->header.time_us = stamps_.take();
  batch->header.first_version = before.next_version;
  cost_ = unanswered_parts - std::min(unanswered_parts, kWholeBatch);
  largest_value_ = std::bit_ceil(queue_->largest_value());
  if (!refused->empty()) {
    refused->append_next(batch);
  } else if (!must_wait_for_parked(batch->header.time_us)) {
    // If parked transactions left no room for the request whose turn it was, the next batch has none.
    if (!queue_held_up_) append_parked(batch);
    append_queued(clock_->monotonic_us(), batch);
  }
  batch->parts.insert(batch->parts.end(), std::make_move_iterator(attached_.cancelled.begin()),
                      std::make_move_iterator(attached_.cancelled.end()));
  attached_.cancelled.clear();
  batch->session_entries.swap(attached_.entries);
  batch->access_changes.swap(attached_.access_changes);
  batch->when_durable.swap(attached_.when_durable);
  return !batch->columns.empty() || !batch->parts.empty() || !batch->session_entries.empty() ||
         !batch->access_changes.empty() || !batch->when_durable.empty();
}

// Whether nothing may go before all is answered, because too many batches have passed by a parked transaction.
bool Batcher::must_wait_for_parked(TimeUs stamp_us) {
  if (parked_passed_by_ < kPassedByMax) return false;
  if (waiting_->awake() == 0 && waiting_->next_due_us() > stamp_us) parked_passed_by_ = drained_hand_outs_ = 0;
  return parked_passed_by_ > 0 && cost_ > 0;
}

// Takes at most half of the batch in number, and in cost if requests wait in the queue, so that these also progress.
void Batcher::append_parked(Batch* batch) {
  const std::size_t half = std::max<std::size_t>(options_.batch_max_transactions / 2, 1);
  parked_room_ = queue_->ready() > 0 ? kWholeBatch / 2 : kWholeBatch;
  parked_cost_ = 0;
  parked_put_off_ = 0;
  const bool is_drained = cost_ == 0;
  waiting_->hand_out(
      batch->header.time_us, half, [this](Parked& parked) { return choose_parked(&parked); },
      [this, batch](const Parked& parked) { append_one_parked(parked, batch); });
  if (!is_drained) {
    if (parked_put_off_ > 0) ++parked_passed_by_;
  } else if (parked_passed_by_ >= kPassedByMax && ++drained_hand_outs_ == kDrainedHandOuts) {
    parked_passed_by_ = drained_hand_outs_ = 0;
  }
}

// The first transaction of a batch always goes.
bool Batcher::parked_fits(std::uint64_t part) const {
  return cost_ == 0 || (parked_cost_ + part <= parked_room_ && cost_ + part <= kWholeBatch);
}

// What fits not even at an older estimate is not looked at, because estimates only grow.
Waiting::Answer Batcher::choose_parked(Parked* parked) {
  if (!parked_fits(1)) return Waiting::Answer::full;
  if (parked->part_value != largest_value_ && parked_fits(parked->part)) estimate(unpacked(*parked), 0, parked);
  if (!parked_fits(parked->part)) {
    return ++parked_put_off_ > kParkedPutOffMax ? Waiting::Answer::full : Waiting::Answer::put_off;
  }
  if (Status status = check_parked_access(*parked); !status.ok()) {
    const auto request = std::static_pointer_cast<AdmittedRequest>(parked->owner);
    drop(request.get());
    denied_.push_back({request, std::move(status)});
    return Waiting::Answer::dropped;
  }
  cost_ += parked->part;
  parked_cost_ += parked->part;
  return Waiting::Answer::taken;
}

void Batcher::estimate(const engine::TransactionColumns& columns, std::size_t t, Parked* parked) const {
  const TransactionCost cost =
      cost_of(columns, t, parked->session.has_value(), largest_value_, options_.result_bytes_max);
  parked->part = BatchParts(largest_value_, options_).of(cost);
  parked->part_value = largest_value_;
}

// Valid until the next call.
const engine::TransactionColumns& Batcher::unpacked(const Parked& parked) {
  scratch_.clear();
  engine::unpack_transaction(parked.packed, &scratch_);
  return scratch_;
}

// Looks at the transaction only if the access table has changed.
Status Batcher::check_parked_access(const Parked& parked) {
  auto* const request = static_cast<AdmittedRequest*>(parked.owner.get());
  if (request->login == nullptr) return {};
  const std::uint64_t version = access_->version();
  if (version == request->access_version) return {};
  const std::shared_ptr<const Rights> rights = access_->latest()->rights(*request->login);
  if (rights == nullptr) return login_gone(request->login->user);
  if (rights == request->rights) {
    request->access_version = version;
    return {};
  }
  return check_rights(unpacked(parked), 0, 1, *rights, request->login->user,
                      [&parked](std::uint32_t) { return parked.index; });
}

void Batcher::append_one_parked(const Parked& parked, Batch* batch) {
  BatchPart part;
  part.request = std::static_pointer_cast<AdmittedRequest>(parked.owner);
  part.begin = static_cast<std::uint32_t>(batch->columns.size());
  part.end = part.begin + 1;
  part.admitted_batch = parked.admitted_batch;
  part.first_arrival = parked.arrival;
  part.parked_id = parked.id;
  part.deadline_us = parked.deadline_us;
  part.parked_since_us = parked.since_us;
  part.parked_guard = parked.guard;
  part.whole = false;
  part.items = {LiveItem{part.begin, parked.index, parked.admitted_batch, false}};
  batch->columns.append(unpacked(parked), 0, 1);
  batch->expires.push_back(parked.deadline_us <= batch->header.time_us);
  batch->parts.push_back(std::move(part));
}

// How many of the request's next transactions the batch takes. The first transaction of a batch always fits, and so
// does, by cost, the first of a turn. A transaction that has its own batch fits only into an empty one.
Batcher::Fitting Batcher::fitting(const Batch& batch, const AdmittedRequest& request, std::uint64_t turn_max) const {
  if (request.own_batch) {
    if (cost_ > 0) return {};
    return {request.to_run, request.cost_left};
  }
  // The transactions of the batch may copy this value, and their costs were estimated with a smaller one.
  if (request.parts_value > largest_value_) return {};
  const std::size_t room = options_.batch_max_transactions - batch.columns.size();
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(request.to_run - request.batched, room));
  if (wanted == request.to_run - request.batched && request.cost_left <= turn_max &&
      cost_ + request.cost_left <= kWholeBatch) {
    return {wanted, request.cost_left};  // all of it, which is the usual case
  }
  Fitting fit;
  while (fit.count < wanted) {
    const std::uint64_t part = request.content->parts_of_batch[request.batched + fit.count];
    if (fit.count > 0 && fit.cost + part > turn_max) break;
    if (cost_ + fit.cost > 0 && cost_ + fit.cost + part > kWholeBatch) break;
    fit.cost += part;
    ++fit.count;
  }
  return fit;
}

void Batcher::append_queued(TimeUs now_us, Batch* batch) {
  queue_->begin_batch(now_us);
  const bool has_parked = !batch->columns.empty();
  queue_held_up_ = cost_ >= kWholeBatch && has_parked && queue_->ready() > 0;
  std::size_t put_off = 0;
  while (batch->columns.size() < options_.batch_max_transactions && cost_ < kWholeBatch) {
    const auto [request, turn_max] = queue_->next();
    if (request == nullptr) return;
    if (!may_run(request)) continue;
    if (batch->columns.empty()) largest_value_ = std::bit_ceil(queue_->largest_value());
    if (request->parts_value < largest_value_) queue_->estimate_again(request.get(), largest_value_);
    const Fitting fit = fitting(*batch, *request, turn_max);
    if (fit.count > 0) {
      if (batch->columns.empty() && put_off == 0) passed_by_ = 0;
      append(request, fit, batch);
      if (request->own_batch) return;
      continue;
    }
    queue_->put_off();
    if (batch->columns.empty() && ++passed_by_ > kPassedByMax) return;
    if (put_off == 0 && has_parked) queue_held_up_ = true;
    if (++put_off > kPutOffMax) return;
  }
}

// A request that may not run leaves the queue here.
bool Batcher::may_run(const std::shared_ptr<AdmittedRequest>& request) {
  Status status = check_access(request.get());
  if (status.ok()) return true;
  drop(request.get());
  denied_.push_back({request, std::move(status)});
  return false;
}

// Checks those that are still in the queue. Others of the request may be parked, and these were not checked with the
// new rights. So the request gets the new rights only if there are no others.
Status Batcher::check_access(AdmittedRequest* request) const {
  if (request->login == nullptr) return {};
  const std::uint64_t version = access_->version();
  if (request->queue_access_version == version) return {};
  std::shared_ptr<const Rights> rights = access_->latest()->rights(*request->login);
  if (rights == nullptr) return login_gone(request->login->user);
  if (rights != request->rights) {
    Status status = check_rights(request->content->transactions, request->batched, request->to_run, *rights,
                                 request->login->user, [request](std::uint32_t t) { return request->index_of(t); });
    if (!status.ok()) return status;
  }
  request->queue_access_version = version;
  if (rights == request->rights || request->batched == 0) {
    request->rights = std::move(rights);
    request->access_version = version;
  }
  return {};
}

void Batcher::append(const std::shared_ptr<AdmittedRequest>& request, const Fitting& fit, Batch* batch) {
  BatchPart part;
  part.request = request;
  part.begin = static_cast<std::uint32_t>(batch->columns.size());
  part.end = part.begin + fit.count;
  part.first = request->batched;
  part.admitted_batch = batch->header.number;
  part.first_arrival = next_arrival_;
  next_arrival_ += fit.count;
  cost_ += fit.cost;
  engine::TransactionColumns& columns = request->content->transactions;
  for (std::uint32_t i = 0; i < fit.count; ++i) {
    batch->expires.push_back(columns.wait_timeout_us[request->batched + i] == 0);
  }
  if (request->own_batch) {
    std::swap(batch->columns, columns);  // a copy would delay all others
  } else {
    batch->columns.append(columns, request->batched, request->batched + fit.count);
  }
  if (!request->indices.empty()) {
    part.whole = false;
    for (std::uint32_t t = part.begin; t < part.end; ++t) part.items.push_back(item_of(part, t));
  }
  batch->parts.push_back(std::move(part));
  queue_->take(fit.count, fit.cost);
  if (request->batched == request->to_run) recycle(request.get());
}

void Batcher::drop(AdmittedRequest* request) {
  queue_->drop(request);
  if (request->content != nullptr) recycle(request);
}

void Batcher::recycle(AdmittedRequest* request) {
  request->content->clear();
  requests_->give(std::move(request->content));
}

bool Batcher::has_cancelled_of_failed() const {
  return std::any_of(attached_.cancelled.begin(), attached_.cancelled.end(),
                     [](const BatchPart& part) { return part.request->failed; });
}

void Batcher::take_back_attached(Batch* batch) {
  attached_.entries.insert(attached_.entries.begin(), batch->session_entries.begin(), batch->session_entries.end());
  attached_.access_changes.insert(attached_.access_changes.begin(),
                                  std::make_move_iterator(batch->access_changes.begin()),
                                  std::make_move_iterator(batch->access_changes.end()));
  attached_.when_durable.insert(attached_.when_durable.begin(), std::make_move_iterator(batch->when_durable.begin()),
                                std::make_move_iterator(batch->when_durable.end()));
  std::vector<BatchPart> parts;
  for (BatchPart& part : batch->parts) {
    (part.begin == part.end ? attached_.cancelled : parts).push_back(std::move(part));
  }
  batch->parts = std::move(parts);
}

}  // namespace kilokv::server
