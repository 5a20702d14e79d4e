#include "server/core/pipeline/executor.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "server/core/fail_point.hpp"

namespace kilokv::server {
namespace {

constexpr DurationUs kExpiryIntervalUs = 500000;
constexpr DurationUs kCommandsUsMax = 1000;
constexpr std::size_t kParkedTriedMin = 64;

// Ascending runs of LiveItem need increasing indices; parked transactions of one request come one by one.
LiveItem item_of(const BatchPart& part, std::uint32_t t) {
  return {t, part.run->index_of(part.first + (t - part.begin)), part.admitted_batch, false};
}

}  // namespace

Executor::Executor(CoreContext* core)
    : core_(core),
      parking_(core->options.parked_max, core->options.parked_bytes_max),
      snapshots_(
          core->options.snapshot_bytes_max, core->options.snapshot_age_us_max,
          [core](Cell cell) {
            core->engine->retain(cell);
            return core->engine->bytes_of(cell).size();
          },
          [core](Cell cell) { core->engine->release(cell); }),
      shadow_(core->options.shadow_rate, {core->options.shadow_records_max, core->options.shadow_bytes_max},
              core->environment.random),
      last_stamp_{core->executed.get().time_us, core->environment.clock->monotonic_us()} {}

void Executor::post(std::function<void()> command) {
  commands_.push(std::move(command));
  core_->executor_worker->notify();
}

TimeUs Executor::step() {
  if (core_->stopped.load()) return kNever;
  // What was answered no longer needs the byte values that its batch replaced.
  if (const BatchNumber answered = core_->answered.batch(); answered > released_through_) {
    released_through_ = answered;
    core_->engine->release_through(answered);
  }
  run_commands();
  run_cancels();
  look_at_candidates();
  const TimeUs now = core_->environment.clock->monotonic_us();
  expire_sessions(now);
  if (draining_ && drained()) finish_drain();
  if (must_form(now)) {
    run_batch();
    return core_->environment.clock->monotonic_us();
  }
  return next_wake(now);
}

// Batches are not held up by many commands at once: what is left runs after the next batch.
void Executor::run_commands() {
  const TimeUs end = core_->environment.clock->monotonic_us() + kCommandsUsMax;
  while (auto command = commands_.take()) {
    (*command)();
    if (core_->environment.clock->monotonic_us() >= end) return;
  }
}

// A cancel waits for what was queued before it: that is then either decided or parked.
void Executor::run_cancels() {
  while (!cancelling_.empty() && core_->queue.taken() >= cancelling_.front().queue_pushed && refused_ == nullptr) {
    const Cancelling cancelling = std::move(cancelling_.front());
    cancelling_.pop_front();
    const Database::CancelTarget& target = cancelling.target;
    std::vector<std::uint64_t> ids;
    if (target.parked_id != 0) {
      if (parking_.find(target.parked_id) != nullptr) ids.push_back(target.parked_id);
    } else if (target.session) {
      ids = parking_.of_request(*target.session, target.request, target.index);
    }
    for (const std::uint64_t id : ids) {
      std::erase(woken_, id);
      const Parked parked = parking_.take(id);
      BatchPart part;
      part.run = std::static_pointer_cast<RequestRun>(parked.owner);
      part.whole = false;
      part.items = {LiveItem{0, parked.index, parked.admitted_batch, true}};
      pending_cancelled_.push_back(std::move(part));
    }
    publish_parked();
    const std::uint64_t count = ids.size();
    auto report = [done = cancelling.done, count] { done(count); };
    if (count > 0) {
      pending_durable_.push_back(std::move(report));
    } else {
      core_->at_boundary.add(core_->executed.batch(), std::move(report));
      core_->answer_worker->notify();
    }
  }
}

void Executor::expire_sessions(TimeUs now) {
  if (now < next_expiry_us_) return;
  next_expiry_us_ = now + kExpiryIntervalUs;
  for (const SessionId& session : core_->sessions.expire(now)) {
    SessionEntry entry;
    entry.kind = SessionEntry::Kind::closed;
    entry.session = session;
    pending_entries_.push_back(entry);
  }
}

void Executor::add_session_entry(const SessionEntry& entry, std::function<void()> when_durable) {
  pending_entries_.push_back(entry);
  pending_durable_.push_back(std::move(when_durable));
}

// The wall clock, or where that is behind, the last stamp and the time since: a wall clock that is set back, or was
// ahead for a moment, must not make the deadlines wait for it.
Executor::Stamp Executor::stamp() const {
  const TimeUs wall_us = core_->environment.clock->wall_us();  // first, so that a pause here puts no stamp ahead
  const TimeUs now = core_->environment.clock->monotonic_us();
  return {std::max(wall_us, last_stamp_.time_us + (now - last_stamp_.monotonic_us)), now};
}

bool Executor::must_form(TimeUs now) const {
  const std::uint32_t in_flight = core_->in_flight.load(std::memory_order_acquire);
  if (in_flight >= core_->options.batch_in_flight_max) return false;
  const std::uint64_t waiting = core_->queue.ready() + woken_.size();
  const bool other_work = refused_ != nullptr || !pending_cancelled_.empty() || !pending_entries_.empty() ||
                          !pending_durable_.empty() ||
                          (!parking_.empty() && parking_.next_deadline_us() <= stamp().time_us);
  if (waiting == 0 && !other_work) return false;
  if (in_flight == 0 || draining_ || refused_ != nullptr) return true;
  if (waiting >= core_->options.batch_max_transactions) return true;
  const TimeUs oldest = core_->queue.oldest_us();
  return oldest != kNever && now - oldest >= core_->options.batch_max_delay_us;
}

TimeUs Executor::next_wake(TimeUs now) const {
  const std::uint32_t in_flight = core_->in_flight.load();  // the log stage notifies when it moves
  if (!commands_.empty() || (in_flight == 0 && parking_.has_candidates())) return now;
  TimeUs wake = next_expiry_us_;
  if (in_flight >= core_->options.batch_in_flight_max) return wake;
  if (const TimeUs oldest = core_->queue.oldest_us(); oldest != kNever) {
    wake = std::min(wake, oldest + core_->options.batch_max_delay_us);
  }
  if (!parking_.empty()) {
    // One that is due already waits for what is in flight.
    const TimeUs left_us = parking_.next_deadline_us() - stamp().time_us;
    if (left_us > 0 || in_flight == 0) wake = std::min(wake, now + std::max<TimeUs>(left_us, 0));
  }
  return wake;
}

// The parked transactions whose turn it is, in the order of their first arrival; no more than fit, as far as the last
// batch tells.
std::vector<std::uint64_t> Executor::take_woken(TimeUs stamp_us) {
  const std::size_t half = std::max<std::size_t>(core_->options.batch_max_transactions / 2, 1);
  const std::size_t max = std::min<std::size_t>(half, 2 * parked_taken_ + kParkedTriedMin);
  std::vector<std::uint64_t> ids;
  if (!parking_.empty()) parking_.due(stamp_us, max, &ids);
  for (std::size_t i = ids.size(); i < max && !woken_.empty(); ++i) {
    ids.push_back(woken_.front());
    woken_.pop_front();
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> by_arrival;
  for (const std::uint64_t id : ids) {
    if (const Parked* parked = parking_.find(id); parked != nullptr) by_arrival.emplace_back(parked->arrival, id);
  }
  std::sort(by_arrival.begin(), by_arrival.end());
  by_arrival.erase(std::unique(by_arrival.begin(), by_arrival.end()), by_arrival.end());
  ids.clear();
  for (const auto& [arrival, id] : by_arrival) ids.push_back(id);
  return ids;
}

// At most half of the batch in number, and in cost where others wait in the queue, so that they get on, too; but the
// first one always goes.
void Executor::append_parked(Batch* batch) {
  const std::vector<std::uint64_t> ids = take_woken(batch->header.time_us);
  const std::uint64_t share = core_->queue.ready() > 0 ? 2 : 1;
  std::size_t taken = 0;
  for (; taken < ids.size(); ++taken) {
    const Parked* const next = parking_.find(ids[taken]);
    scratch_.clear();
    engine::unpack_transaction(next->packed, &scratch_);
    const TransactionCost cost =
        cost_of(scratch_, 0, next->session.has_value(), core_->queue.largest_value(), core_->options.result_bytes_max);
    if (taken > 0 && !has_room(cost, share)) break;
    batch_cost_ += cost;
    append_one_parked(parking_.take(ids[taken]), batch);
  }
  woken_.insert(woken_.begin(), ids.begin() + static_cast<std::ptrdiff_t>(taken), ids.end());
  parked_taken_ = taken;
}

// The one that is unpacked in scratch_.
void Executor::append_one_parked(const Parked& parked, Batch* batch) {
  BatchPart part;
  part.run = std::static_pointer_cast<RequestRun>(parked.owner);
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

// Whether the batch at hand (`share` 2: half of it) takes this, too. With the largest value of now: that of the newest
// run in the batch counts.
bool Executor::has_room(TransactionCost more, std::uint64_t share) const {
  const DatabaseOptions& options = core_->options;
  const std::uint64_t largest_value = core_->queue.largest_value();
  more += batch_cost_;
  return more.log.at(largest_value, options.result_bytes_max) <= options.batch_max_bytes / share &&
         more.reads_at(largest_value) <= options.batch_max_reads / share;
}

// How many of the run's next transactions the batch takes; the first one of a batch always fits, and one that is alone
// only there.
std::uint32_t Executor::fitting(const Batch& batch, const RequestRun& run) {
  if (run.alone) {
    if (!batch.columns.empty()) return 0;
    batch_cost_ += run.cost;
    return run.to_run;
  }
  const std::size_t room = core_->options.batch_max_transactions - batch.columns.size();
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(run.to_run - run.batched, room));
  if (wanted == run.to_run && has_room(run.cost, 1)) {
    batch_cost_ += run.cost;
    return wanted;
  }
  std::uint32_t count = 0;
  for (; count < wanted; ++count) {
    const TransactionCost cost = cost_of(run.request->transactions, run.batched + count, run.session.has_value(),
                                         core_->queue.largest_value(), core_->options.result_bytes_max);
    if (!has_room(cost, 1) && batch.columns.size() + count > 0) break;
    batch_cost_ += cost;
  }
  return count;
}

void Executor::append_queued(Batch* batch) {
  while (batch->columns.size() < core_->options.batch_max_transactions) {
    const std::shared_ptr<RequestRun> run = core_->queue.front();
    if (run == nullptr) return;
    if (run->failed) {
      core_->queue.take(run->to_run - run->batched);
      continue;
    }
    const std::uint32_t count = fitting(*batch, *run);
    if (count == 0) return;
    BatchPart part;
    part.run = run;
    part.begin = static_cast<std::uint32_t>(batch->columns.size());
    part.end = part.begin + count;
    part.first = run->batched;
    part.admitted_batch = batch->header.number;
    part.first_arrival = next_arrival_;
    next_arrival_ += count;
    engine::TransactionColumns& columns = run->request->transactions;
    for (std::uint32_t i = 0; i < count; ++i) {
      batch->expires.push_back(columns.wait_timeout_us[run->batched + i] == 0);
    }
    if (run->alone) {
      std::swap(batch->columns, columns);  // a copy would hold everybody up
    } else {
      batch->columns.append(columns, run->batched, run->batched + count);
    }
    if (!run->indices.empty()) {
      part.whole = false;
      for (std::uint32_t t = part.begin; t < part.end; ++t) part.items.push_back(item_of(part, t));
    }
    batch->parts.push_back(std::move(part));
    core_->queue.take(count);
    if (run->batched == run->to_run) {
      run->request->clear();
      core_->requests.give(std::move(run->request));
    }
    if (run->alone) return;
  }
}

void Executor::fill(Batch* batch) {
  const Position before = core_->executed.get();
  batch->header.number = before.batch + 1;
  last_stamp_ = stamp();
  batch->header.time_us = last_stamp_.time_us;
  batch->header.first_version = before.next_version;
  batch_cost_ = {};
  if (refused_ != nullptr) {
    append_refused(batch);
  } else {
    // A batch that one parked transaction filled is followed by one without them.
    if (!queue_held_up_) append_parked(batch);
    const std::uint64_t ready = core_->queue.ready();
    append_queued(batch);
    queue_held_up_ = ready > 0 && core_->queue.ready() == ready;
  }
  batch->parts.insert(batch->parts.end(), std::make_move_iterator(pending_cancelled_.begin()),
                      std::make_move_iterator(pending_cancelled_.end()));
  pending_cancelled_.clear();
  batch->session_entries.swap(pending_entries_);
  batch->when_durable.swap(pending_durable_);
}

Status Executor::execute(Batch* batch) {
  shadow_.before(*core_->engine, batch->columns);
  Status status =
      core_->engine->execute(batch->header, batch->columns, batch->expires, &batch->results, &batch->writes);
  if (status.ok() && fail_point("core.execute.lost_writes")) batch->writes.clear();
  return status;
}

// A wrong batch ends the server before anything of it is logged or answered.
bool Executor::shadow_passes(const Batch& batch) {
  if (shadow_.skipped()) core_->counters.shadow_skipped.fetch_add(1, std::memory_order_relaxed);
  if (!shadow_.sampled()) return true;
  const engine::Engine& engine = *core_->engine;
  const Status status = shadow_.after(engine, {batch.header, batch.columns, batch.expires, batch.results, batch.writes,
                                               [&engine](Cell cell) { return engine.bytes_of(cell); }});
  core_->counters.shadow_batches.fetch_add(1, std::memory_order_relaxed);
  if (status.ok()) return true;
  if (core_->events.shadow_mismatch) {
    core_->events.shadow_mismatch(shadow_.text_of(batch.header, batch.columns, batch.expires));
  }
  core_->fail(status);
  return false;
}

void Executor::run_batch() {
  std::unique_ptr<Batch> batch = core_->batches.take();
  fill(batch.get());
  if (const Status status = execute(batch.get()); !status.ok()) return refuse(std::move(batch), status);
  if (!shadow_passes(*batch)) return;
  if (refused_ != nullptr) {
    pass_refused(refused_step_);
    refused_step_ *= 2;
  }
  count_batch();
  count_outcomes(*batch);
  if (postponed_ > 0) park_postponed(batch.get());
  if (batch->writes.size() > 0 && !parking_.empty()) parking_.written(core_->engine->before_images());
  publish_parked();
  std::span<const engine::BeforeImage> images;  // built by the engine when asked for
  if (snapshots_.open()) images = core_->engine->before_images();
  snapshots_.record(batch->header.number, images, core_->environment.clock->monotonic_us());
  batch->after = {batch->header.number, batch->results.next_version, core_->engine->tombstone_floor(),
                  batch->header.time_us, core_->engine->state_hash()};
  core_->executed.set(batch->after);
  core_->in_flight.fetch_add(1, std::memory_order_relaxed);
  core_->to_log.push(std::move(batch));
  core_->log_worker->notify();
  if (!unparkable_.empty()) {
    fail_runs(std::move(unparkable_), parking_refusal_, nullptr);
    unparkable_.clear();
  }
}

void Executor::count_batch() {
  const engine::ExecutionReport& execution = core_->engine->execution();
  Counters& counters = core_->counters;
  const bool serial = std::string_view(execution.strategy) == "serial";
  std::atomic<std::uint64_t>& of_its_kind = execution.on_device ? counters.batches_on_device
                                            : serial            ? counters.batches_serial
                                                                : counters.batches_parallel;
  of_its_kind.fetch_add(1, std::memory_order_relaxed);
  counters.batches.fetch_add(1, std::memory_order_relaxed);
}

void Executor::count_outcomes(const Batch& batch) {
  std::array<std::uint64_t, 8> counts{};
  for (const std::uint8_t outcome : batch.results.outcome) ++counts[outcome & 7];
  const auto of = [&counts](engine::Outcome outcome) { return counts[static_cast<std::size_t>(outcome)]; };
  Counters& counters = core_->counters;
  constexpr auto relaxed = std::memory_order_relaxed;
  counters.transactions.fetch_add(batch.columns.size() - of(engine::Outcome::postponed), relaxed);
  counters.committed.fetch_add(of(engine::Outcome::committed), relaxed);
  counters.guard_failed.fetch_add(of(engine::Outcome::guard_failed), relaxed);
  counters.wait_expired.fetch_add(of(engine::Outcome::wait_expired), relaxed);
  counters.overflow.fetch_add(of(engine::Outcome::overflow), relaxed);
  counters.type_mismatch.fetch_add(of(engine::Outcome::type_mismatch), relaxed);
  postponed_ = of(engine::Outcome::postponed);
}

}  // namespace kilokv::server
