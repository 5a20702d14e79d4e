#include "server/core/pipeline/execute_stage.hpp"
#include "server/core/access/access_check.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/check.hpp"
#include "engine/engine.hpp"
#include "engine/txn/kinds.hpp"
#include "server/core/fail_point.hpp"
#include "server/core/memory/memory_bounds.hpp"
#include "server/core/pipeline/transaction_cost.hpp"

namespace kilokv::server {
namespace {

constexpr DurationUs kExpiryIntervalUs = 500000;  // of sessions
constexpr DurationUs kNoSpaceUs = 1000000;        // until the log is asked for space again
constexpr DurationUs kCommandsUsMax = 1000;
constexpr DurationUs kIdleUs = 5000000;
// How much of what ends is done between two batches: about half a millisecond.
constexpr std::size_t kSessionsPerStep = 512, kResultsFreedPerStep = 1024;
constexpr std::size_t kAbandonedPerStep = 1024;
// The log stage and the answer stage work for each of them, too.
constexpr std::size_t kCancelledPerBatch = 1024;

// What a request keeps while it has parked transactions, with the overhead of its allocations, and with its sink.
constexpr std::uint64_t kParkedRequestBytes = sizeof(AdmittedRequest) + 64 + kSinkBytes;

std::shared_ptr<AdmittedRequest> request_of(const Parked& parked) {
  return std::static_pointer_cast<AdmittedRequest>(parked.owner);
}

// The place of a transaction of a batch in its request.
std::uint32_t index_of(const BatchPart& part, std::uint32_t t) {
  return part.parked_id != 0 ? part.items.front().index : part.request->index_of(part.first + (t - part.begin));
}

void note_batch(const engine::ExecutionReport& execution, std::size_t transactions, CoreMetrics* metrics) {
  const std::vector<engine::StrategyInfo>& all = engine::strategy_infos();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& info) { return info.name == execution.strategy; });
  const auto index = static_cast<std::size_t>(found - all.begin());
  CoreMetrics::Batches& batches = metrics->batches.at(index);
  (execution.on_device ? batches.on_device : batches.on_cpu).fetch_add(1, std::memory_order_relaxed);
  metrics->batch_transactions.add(transactions);
}

}  // namespace

ExecuteStage::ExecuteStage(CoreContext* core, Batcher* batcher, Waiting* waiting, Reader* reader)
    : core_(core),
      batcher_(batcher),
      waiting_(waiting),
      reader_(reader),
      shadow_(core->options.shadow_rate, {core->options.shadow_records_max, core->options.shadow_bytes_max},
              core->environment.random),
      refused_(&core->batches) {}

void ExecuteStage::post(std::shared_ptr<Client> client, std::function<void()> command) {
  commands_.push(std::move(client), std::move(command));
  core_->executor_worker->notify();
}

TimeUs ExecuteStage::step() {
  if (core_->stopped.load()) return kNever;
  // Once a batch is answered, the byte values that it replaced are no longer needed.
  if (const BatchNumber answered = core_->answered.batch(); answered > released_through_) {
    released_through_ = answered;
    core_->engine->release_through(answered);
    core_->data.set_held(core_->engine->memory());
  }
  run_commands();
  if (!searches_.empty()) search_rights();
  end_abandoned();
  if (!endings_.empty()) forget_some();
  answer_cancelled();
  waiting_->wake_candidates(*core_->engine, core_->executed.batch(), core_->in_flight.load() == 0);
  const TimeUs now = core_->environment.clock->monotonic_us();
  expire_sessions(now);
  core_->sessions.free_ended(kResultsFreedPerStep);
  free_when_idle(now);
  if (draining_ && drained()) finish_drain();
  const bool has_work = must_form(now);
  if (must_expire(now) && !(has_work && expired_last_)) {
    run_expired(now);
    return core_->environment.clock->monotonic_us();
  }
  if (has_work) {
    expired_last_ = false;
    const bool is_due = batcher_->has_due(*core_->engine);
    // If nothing fits beside the answers under way, the answer stage notifies when there is room again.
    const bool has_run = run_batch();
    if (is_due) expiry_pace_.note_clients(core_->environment.clock->monotonic_us() - now);
    const bool waits_for_answers = !has_run && core_->unanswered_parts.load() > kWholeBatch;
    return waits_for_answers && !has_more() ? next_expiry_us_ : core_->environment.clock->monotonic_us();
  }
  return next_wake(now);
}

// The time for commands is bounded, so that many commands at once do not delay batches. The rest runs after the next
// batch.
void ExecuteStage::run_commands() {
  if (commands_.empty()) return;
  const TimeUs end = core_->environment.clock->monotonic_us() + kCommandsUsMax;
  while (auto command = commands_.take()) {
    (*command)();
    if (core_->environment.clock->monotonic_us() >= end) break;
  }
  core_->data.set_held(core_->engine->memory());  // the end of a scan, or a checkpoint, may have freed some
}

// Cancels wait while parts of a refused batch are left: these were queued before the cancel, and are neither decided
// nor parked. Their time is bounded as that of commands is, and the rest is answered in the next step. If the next
// batch has all that it may answer, the rest waits until this batch has run.
void ExecuteStage::answer_cancelled() {
  const TimeUs end = waiting_->cancels() == 0 ? 0 : core_->environment.clock->monotonic_us() + kCommandsUsMax;
  cancels_left_ = false;
  while (refused_.empty() && batcher_->attached_cancelled() < kCancelledPerBatch) {
    std::optional<Waiting::Cancelled> cancelled =
        waiting_->take_cancelled([this](const RequestName& name) { return core_->queue.holds(name); },
                                 kCancelledPerBatch - batcher_->attached_cancelled());
    if (!cancelled) return;
    for (const Parked& parked : cancelled->parked) {
      BatchPart part;
      part.request = request_of(parked);
      ++part.request->decided;
      part.whole = false;
      part.items = {LiveItem{0, parked.index, parked.admitted_batch, true}};
      batcher_->attach(std::move(part));
    }
    if (cancelled->done) report(std::move(*cancelled));
    if (core_->environment.clock->monotonic_us() >= end) {
      cancels_left_ = waiting_->cancels() > 0;
      return;
    }
  }
}

// The last part of the cancel is attached, or in a batch that was executed, and so are the parts before.
void ExecuteStage::report(Waiting::Cancelled cancelled) {
  std::function<void()> answer = [done = std::move(cancelled.done), count = cancelled.count] { done(count); };
  if (batcher_->has_attached()) {
    batcher_->attach(std::move(answer));
  } else {
    core_->when_answered(core_->executed.batch(), std::move(answer));
  }
}

void ExecuteStage::abandon(SubmittedRequest request) {
  abandoned_.push(std::move(request));
  core_->executor_worker->notify();
}

void ExecuteStage::end_abandoned() {
  std::vector<std::shared_ptr<AdmittedRequest>> requests;
  for (std::size_t i = 0; i < kAbandonedPerStep; ++i) {
    const std::optional<SubmittedRequest> abandoned = abandoned_.take();
    if (!abandoned) break;
    std::shared_ptr<AdmittedRequest> request = abandoned->lock();
    if (request == nullptr || request->failed || request->decided == request->to_run) continue;
    requests.push_back(std::move(request));
  }
  if (requests.empty()) return;
  core_->counters.abandoned.fetch_add(requests.size(), std::memory_order_relaxed);
  fail(std::move(requests), Status(StatusCode::cancelled, "the client has gone away"), nullptr);
}

void ExecuteStage::end_denied() {
  for (Batcher::Denied& denied : batcher_->take_denied()) fail({std::move(denied.request)}, denied.status, nullptr);
}

// `allows`: whether these rights allow what is left of the request.
Status ExecuteStage::RightsSearch::check(const AdmittedRequest& request, const Check& allows) {
  if (request.login == nullptr || request.failed) return {};
  const auto [found, is_new] = known.try_emplace(request.login.get());
  if (is_new) found->second = table->rights(*request.login);
  const std::shared_ptr<const Rights>& rights = found->second;
  if (rights == nullptr) return login_gone(request.login->user);
  return rights == request.rights ? Status() : allows(*rights, request.login->user);
}

// A refused batch is not larger than a batch, so its parts are looked at in one step.
void ExecuteStage::end_without_rights(std::function<void()> done) {
  RightsSearch search{core_->access.latest(), std::move(done), waiting_->last_id()};
  std::vector<std::pair<std::shared_ptr<AdmittedRequest>, Status>> denied;
  refused_.visit([&](const engine::TransactionColumns& of_batch, const BatchPart& part) {
    Status status = search.check(*part.request, [&](const Rights& rights, const std::string& user) {
      return check_rights(of_batch, part.begin, part.end, rights, user,
                          [&part](std::uint32_t t) { return index_of(part, t); });
    });
    if (!status.ok()) denied.emplace_back(part.request, std::move(status));
  });
  for (auto& [request, status] : denied) fail({std::move(request)}, status, nullptr);
  search.known.clear();
  searches_.push_back(std::move(search));
  if (searches_.size() == 1) search_rights();
}

// Those that are parked later were allowed when they ran.
void ExecuteStage::search_rights() {
  RightsSearch& search = searches_.front();
  std::vector<std::pair<std::shared_ptr<AdmittedRequest>, Status>> denied;
  engine::TransactionColumns columns;
  const Waiting::Visited visited = waiting_->visit(search.after_id, [&](const Parked& parked) {
    std::shared_ptr<AdmittedRequest> request = request_of(parked);
    Status status = search.check(*request, [&](const Rights& rights, const std::string& user) {
      columns.clear();
      engine::unpack_transaction(parked.packed, &columns);
      return check_rights(columns, 0, 1, rights, user, [&parked](std::uint32_t) { return parked.index; });
    });
    if (!status.ok()) denied.emplace_back(std::move(request), std::move(status));
  });
  for (auto& [request, status] : denied) fail({std::move(request)}, status, nullptr);
  search.known.clear();
  search.after_id = visited.last_id;
  if (visited.has_more && visited.last_id < search.last_id) return;
  const std::function<void()> done = std::move(search.done);
  searches_.pop_front();
  done();
}

void ExecuteStage::expire_sessions(TimeUs now) {
  if (now < next_expiry_us_) return;
  next_expiry_us_ = now + kExpiryIntervalUs;
  if (reader_->free_old(now)) core_->data.set_held(core_->engine->memory());
  if (core_->options.read_only) return;
  const std::vector<SessionId> expired = core_->sessions.expire(now, kSessionsPerStep);
  if (expired.size() >= kSessionsPerStep) next_expiry_us_ = now;  // there may be more
  for (const SessionId& session : expired) {
    SessionEntry entry;
    entry.kind = SessionEntry::Kind::closed;
    entry.identity.session = session;
    batcher_->attach(entry);
  }
}

// Empty requests and batches are kept for the next ones. A server without work gives their memory back.
void ExecuteStage::free_when_idle(TimeUs now) {
  if (const BatchNumber last = core_->executed.batch(); last != last_batch_) {
    last_batch_ = last;
    idle_at_us_ = now + kIdleUs;
  }
  if (now < idle_at_us_) return;
  idle_at_us_ = kNever;
  core_->requests.clear();
  core_->batches.clear();
}

BatchesInFlight ExecuteStage::in_flight() const {
  const auto too_many = [](const std::atomic<std::uint32_t>& unanswered) {
    const std::uint32_t count = unanswered.load(std::memory_order_acquire);
    return count - std::min(count, CoreContext::kAnsweredLater);
  };
  const std::uint32_t all = core_->in_flight.load(std::memory_order_acquire);
  const std::uint32_t expiries = core_->expiries_in_flight.load(std::memory_order_relaxed);
  return {std::max(all - expiries, too_many(core_->unanswered_batches)),
          std::max(expiries, too_many(core_->unanswered_expiries))};
}

bool ExecuteStage::must_form(TimeUs now) const {
  const BatchesInFlight in_flight = this->in_flight();
  if (!refused_.empty()) return in_flight.all() < core_->options.batch_in_flight_max;
  return batcher_->must_form(now, in_flight, draining_);
}

bool ExecuteStage::must_expire(TimeUs now) const {
  return refused_.empty() && !draining_ && now >= no_expiry_before_us_ &&
         batcher_->must_expire(*core_->engine, in_flight());
}

// If the log has no space, the keys stay for a while longer.
void ExecuteStage::run_expired(TimeUs now) {
  expired_last_ = true;
  std::unique_ptr<Batch> batch = core_->batches.take();
  const TimeUs begin_us = core_->environment.clock->monotonic_us();
  batcher_->fill_expired(core_->executed.get(), *core_->engine, core_->secret,
                         expiry_pace_.keys(begin_us, core_->options.expiry_batch_max), batch.get());
  const std::size_t keys = batch->columns.size();
  std::uint64_t log_bytes = 0;
  for (std::size_t t = 0; t < batch->columns.size(); ++t)
    log_bytes += cost_of(batch->columns, t, false, 0, 0).log.bytes;
  if (!core_->log->reserve(log_bytes, LogUse::reads_and_deletes).ok()) {
    no_expiry_before_us_ = now + kNoSpaceUs;
    batch->clear();
    return core_->batches.give(std::move(batch));
  }
  batch->reserved_log_bytes = log_bytes;
  batch->times.formed_us = core_->environment.clock->monotonic_us();
  KILOKV_CHECK(execute(batch.get()).ok());  // a delete needs no room
  if (!shadow_passes(*batch)) return;
  core_->counters.expired.fetch_add(batch->writes.size(), std::memory_order_relaxed);
  complete(std::move(batch));
  const TimeUs end_us = core_->environment.clock->monotonic_us();
  expiry_pace_.note_expiries(end_us, keys, end_us - begin_us);
}

// Whether there is more of what is done between batches, a part at a time.
bool ExecuteStage::has_more() const {
  return !commands_.empty() || !abandoned_.empty() || !endings_.empty() || !searches_.empty() ||
         core_->sessions.has_ended() || (draining_ && drained());
}

TimeUs ExecuteStage::next_wake(TimeUs now) const {
  const BatchesInFlight in_flight = this->in_flight();  // the log stage and the answer stage notify when this changes
  if (has_more() || (cancels_left_ && refused_.empty()) || (in_flight.all() == 0 && waiting_->has_candidates()))
    return now;
  const TimeUs next_us = std::min(next_expiry_us_, batcher_->next_due(now, in_flight));
  if (draining_) return next_us;
  return std::min(next_us, std::max(batcher_->next_expiry(*core_->engine, now, in_flight), no_expiry_before_us_));
}

// Returns false if all work has to wait until answers are sent.
bool ExecuteStage::run_batch() {
  const bool had_refused = !refused_.empty();
  std::unique_ptr<Batch> batch = core_->batches.take();
  const bool filled = batcher_->fill(core_->executed.get(), core_->unanswered_parts.load(), &refused_, batch.get());
  if (!filled && !had_refused) {
    batch->clear();
    core_->batches.give(std::move(batch));
    end_denied();
    return false;
  }
  batch->times.formed_us = core_->environment.clock->monotonic_us();
  if (const Status status = execute(batch.get()); !status.ok()) {
    refuse(std::move(batch), status);
  } else {
    if (!shadow_passes(*batch)) return true;
    if (!refused_.empty()) refused_.passed();
    complete(std::move(batch));
  }
  // Only now, because a request of which the rest is denied may have transactions in this batch.
  end_denied();
  return true;
}

// A request counts when its first transaction runs. What was parked before has counted then.
void ExecuteStage::note_queue_waits(const Batch& batch, TimeUs now_us) {
  for (const BatchPart& part : batch.parts) {
    const bool is_first = part.begin != part.end && part.first == 0 && part.parked_id == 0;
    if (is_first) core_->metrics.queue_wait.add_time(part.request->admitted_us, now_us);
  }
}

Status ExecuteStage::execute(Batch* batch) {
  fail_point("core.execute.before");
  shadow_.before(*core_->engine, batch->columns);
  const TimeUs begin_us = core_->environment.clock->monotonic_us();
  core_->metrics.executes.begin(begin_us);
  Status status =
      core_->engine->execute(batch->header, batch->columns, batch->expires, &batch->results, &batch->writes);
  core_->metrics.executes.end();
  core_->metrics.execution.add_time(begin_us, core_->environment.clock->monotonic_us());
  if (status.ok()) note_queue_waits(*batch, begin_us);
  if (status.ok() && fail_point("core.execute.lost_writes")) batch->writes.clear();
  return status;
}

// Returns false if the batch is wrong, which ends the server.
bool ExecuteStage::shadow_passes(const Batch& batch) {
  if (shadow_.skipped()) {
    core_->counters.shadow_skipped.fetch_add(1, std::memory_order_relaxed);
    if (core_->events.shadow_checked) core_->events.shadow_checked(batch.header.number, true);
  }
  if (!shadow_.sampled()) return true;
  const engine::Engine& engine = *core_->engine;
  const Status status = shadow_.after(engine, {batch.header, batch.columns, batch.expires, batch.results, batch.writes,
                                               [&engine](Cell cell) { return engine.bytes_of(cell); }});
  core_->counters.shadow_batches.fetch_add(1, std::memory_order_relaxed);
  if (status.ok()) {
    if (core_->events.shadow_checked) core_->events.shadow_checked(batch.header.number, false);
    return true;
  }
  if (core_->events.shadow_mismatch) {
    core_->events.shadow_mismatch(batch.header.number, status,
                                  shadow_.text_of(batch.header, batch.columns, batch.expires));
  }
  // What differs has keys and values, which are for those alone who may read them.
  core_->fail(Status(
      status.code(), status.reason(),
      "--shadow-rate: the referee differs: batch " + std::to_string(batch.header.number) + " was executed wrongly"));
  return false;
}

void ExecuteStage::complete(std::unique_ptr<Batch> batch) {
  const engine::Engine& engine = *core_->engine;
  core_->counters.add_batch(engine.execution());
  std::uint64_t postponed = 0;
  if (!batch->expired) {  // nobody has sent these transactions
    note_batch(engine.execution(), batch->columns.size(), &core_->metrics);
    postponed = core_->counters.add_outcomes(batch->results);
    core_->hot_keys.note_batch(batch->columns, batch->results, core_->environment.clock->monotonic_us(), core_->secret);
  }
  Unparkable unparkable;
  if (postponed > 0) unparkable = park_postponed(batch.get());
  for (const BatchPart& part : batch->parts) {
    if (part.begin != part.end)
      part.request->decided += part.answered();  // others were counted when they were attached
  }
  std::span<const engine::BeforeImage> images;  // the engine builds them only on request
  if (batch->writes.size() > 0 && !waiting_->empty()) images = engine.before_images();
  waiting_->end_batch(images);
  reader_->record(batch->header.number);
  batch->after = {batch->header.number, batch->results.next_version, engine.tombstone_floor(), batch->header.time_us,
                  state_hash_with(engine.state_hash(), core_->access.hash())};
  const auto gets = std::count(batch->columns.op_kind.begin(), batch->columns.op_kind.end(),
                               static_cast<std::uint8_t>(engine::OpKind::get));
  batch->memory_bytes = capacity_bytes(*batch);
  const std::uint64_t reads = batch->results.pair_cell.size() + static_cast<std::size_t>(gets);
  batch->unanswered_parts = std::max(reads * kWholeBatch / core_->options.batch_max_reads,
                                     content_bytes(*batch) * kWholeBatch / whole_batch_bytes(core_->options));
  core_->unanswered_parts.fetch_add(batch->unanswered_parts);
  core_->batch_bytes.fetch_add(batch->memory_bytes, std::memory_order_relaxed);
  batch->times.executed_us = core_->environment.clock->monotonic_us();
  tell_executed(*batch, postponed);
  core_->data.set_held(engine.memory());  // before the answer, with which the request gives its memory back
  core_->counters.next_expiry_us.store(engine.next_expiry(), std::memory_order_relaxed);
  core_->note_stamp(batch->after.time_us);
  core_->executed.set(batch->after);
  core_->in_flight.fetch_add(1, std::memory_order_relaxed);
  if (batch->expired) core_->expiries_in_flight.fetch_add(1, std::memory_order_relaxed);
  core_->unanswered(batch->expired)->fetch_add(1, std::memory_order_relaxed);
  core_->to_log.push(std::move(batch));
  core_->log_worker->notify();
  if (!unparkable.requests.empty()) fail(std::move(unparkable.requests), unparkable.status, nullptr);
}

void ExecuteStage::tell_executed(const Batch& batch, std::uint64_t postponed) const {
  if (!core_->events.batch_executed) return;
  const engine::ExecutionReport& execution = core_->engine->execution();
  core_->events.batch_executed({.batch = batch.header.number,
                                .transactions = batch.columns.size(),
                                .postponed = postponed,
                                .writes = batch.writes.size(),
                                .strategy = execution.strategy,
                                .on_device = execution.on_device,
                                .execution_us = batch.times.executed_us - batch.times.formed_us});
}

// Leaves in each part only the transactions that are answered with this batch.
ExecuteStage::Unparkable ExecuteStage::park_postponed(Batch* batch) {
  const auto postponed = [batch](std::uint32_t t) {
    return batch->results.outcome[t] == static_cast<std::uint8_t>(engine::Outcome::postponed);
  };
  Unparkable unparkable;
  for (BatchPart& part : batch->parts) {
    std::vector<LiveItem> done;
    bool any = false;
    const auto begin = batch->results.outcome.begin();
    const auto count = static_cast<std::uint64_t>(
        std::count(begin + part.begin, begin + part.end, static_cast<std::uint8_t>(engine::Outcome::postponed)));
    for (std::uint32_t t = part.begin; t < part.end; ++t) {
      if (!postponed(t)) continue;
      any = true;
      if (Status status = park(*batch, part, t, kParkedRequestBytes / count); !status.ok()) {
        unparkable.requests.push_back(part.request);
        unparkable.status = std::move(status);
      }
    }
    if (!any) continue;
    for (std::uint32_t t = part.begin; t < part.end; ++t) {
      if (postponed(t)) continue;
      done.push_back({t, part.request->index_of(part.first + (t - part.begin)), part.admitted_batch, false});
    }
    part.whole = false;
    part.items = std::move(done);
  }
  return unparkable;
}

// `owner_bytes`: its part of what the request takes.
Status ExecuteStage::park(const Batch& batch, const BatchPart& part, std::uint32_t t, std::uint64_t owner_bytes) {
  const bool again = part.parked_id != 0;
  Parked parked;
  parked.id = part.parked_id;
  parked.owner = part.request;
  parked.client = part.request->client.get();
  parked.session = part.request->identity.session;
  parked.request = part.request->identity.number;
  parked.index = index_of(part, t);
  parked.arrival = part.first_arrival + (t - part.begin);
  parked.admitted_batch = part.admitted_batch;
  parked.since_us = again ? part.parked_since_us : batch.header.time_us;
  parked.deadline_us = again ? part.deadline_us : batch.header.time_us + batch.columns.wait_timeout_us[t];
  parked.next_time_us = core_->engine->next_time(batch.columns, t, batch.header.time_us);
  parked.guard = batch.results.failed_index[t];
  parked.precedence = batch.columns.precedence[t];
  parked.owner_bytes = owner_bytes + 2 * sizeof(std::uint64_t);  // and its place in parked_ids, which may be half full
  batcher_->estimate(batch.columns, t, &parked);
  if (core_->tells_requests()) tell_parked(batch.columns, t, parked);
  const Result<std::uint64_t> id = waiting_->park(batch.columns, t, std::move(parked));
  if (id.ok()) core_->metrics.parkings.fetch_add(1, std::memory_order_relaxed);
  if (id.ok() && !again) part.request->parked_ids.push_back(*id);
  return id.status();
}

void ExecuteStage::tell_parked(const engine::TransactionColumns& columns, std::uint32_t t, const Parked& parked) const {
  const std::uint32_t g = columns.guard_begin(t) + parked.guard;
  const bool is_range = uses_range(static_cast<engine::GuardKind>(columns.guard_kind[g]));
  core_->events.transaction_parked(
      {.client = parked.client->name,
       .session = parked.session,
       .request = parked.request,
       .index = parked.index,
       .guard = parked.guard,
       .guards_range = is_range,
       .key = is_range ? columns.range_from(columns.guard_key[g]) : columns.key_of_guard(g),
       .deadline_us = parked.deadline_us});
}

// Session entries and cancellations do not need the table, so they go with the next batch. If only one part is left,
// this part is the one that needs room, and its request fails.
void ExecuteStage::refuse(std::unique_ptr<Batch> batch, const Status& status) {
  batcher_->take_back_attached(batch.get());
  KILOKV_CHECK(!batch->parts.empty());
  const bool alone = batch->parts.size() == 1;
  if (alone) fail({batch->parts.front().request}, status, nullptr);
  if (refused_.empty() && !alone) return refused_.hold(std::move(batch));
  if (!refused_.empty()) refused_.refused_again(alone);
  batch->clear();
  core_->batches.give(std::move(batch));
}

void ExecuteStage::fail(std::vector<std::shared_ptr<AdmittedRequest>> requests, const Status& status,
                        std::function<void()> done) {
  // A request is there once for each of its transactions that are parked. It may have failed for another reason.
  std::set<const AdmittedRequest*> seen;
  std::erase_if(requests,
                [&seen](const auto& request) { return request->failed || !seen.insert(request.get()).second; });
  if (requests.empty() && !done) return;
  for (const auto& request : requests) {
    request->failed = true;
    batcher_->drop(request.get());
  }
  endings_.push_back({std::move(requests), status, std::move(done)});
  if (endings_.size() == 1) forget_some();
}

// They take turns, so that a request with few does not wait for one with many.
void ExecuteStage::forget_some() {
  std::size_t left = kLooksPerStep;
  while (!endings_.empty() && left > 0) {
    Ending ending = std::move(endings_.front());
    endings_.pop_front();
    if (forget_some_of(&ending, &left)) {
      finish(std::move(ending));
    } else {
      endings_.push_back(std::move(ending));
    }
  }
}

// `left`: how many looks at parked transactions are left in this step. Returns whether nothing is left of the ending.
bool ExecuteStage::forget_some_of(Ending* ending, std::size_t* left) {
  for (; ending->request < ending->requests.size(); ++ending->request, ending->id = 0) {
    std::vector<std::uint64_t>& ids = ending->requests[ending->request]->parked_ids;
    ending->id += waiting_->forget(std::span(ids).subspan(ending->id), left);
    if (ending->id < ids.size()) return false;
    ids = {};
  }
  return true;
}

// What is answered with it runs after the last batch that has a part of these requests, so the executor does not change
// `decided` any more.
void ExecuteStage::finish(Ending ending) {
  std::function<void()> fail_all = [core = core_, ending = std::move(ending)] {
    for (const auto& request : ending.requests) {
      const Status of_request = request->decided > 0 ? ending.status : ending.status.as_not_run();
      if (request->identity.session) {
        core->sessions.abandon(*request->identity.session, request->identity.number, of_request);
      } else {
        request->sink->fail(of_request);
      }
      core->queue.finished(*request);
      if (ending.status.code() != StatusCode::cancelled) {
        core->counters.refused.fetch_add(1, std::memory_order_relaxed);
      }
    }
    if (ending.done) ending.done();
  };
  if (batcher_->has_cancelled_of_failed()) {
    batcher_->attach(std::move(fail_all));
  } else {
    core_->when_answered(core_->executed.batch(), std::move(fail_all));
  }
}

void ExecuteStage::drain(std::function<void()> done) {
  draining_ = true;
  when_drained_ = std::move(done);
}

bool ExecuteStage::drained() const {
  return core_->queue.transactions() == 0 && commands_.empty() && refused_.empty() && endings_.empty() &&
         searches_.empty() && waiting_->quiet() && !batcher_->has_attached() && core_->in_flight.load() == 0;
}

// Fails some of what is parked. The next part follows when these are forgotten, because then drained() holds again.
void ExecuteStage::finish_drain() {
  waiting_->close();
  std::vector<std::shared_ptr<AdmittedRequest>> requests;
  waiting_->visit(0, [&](const Parked& parked) { requests.push_back(request_of(parked)); });
  if (!requests.empty()) return fail(std::move(requests), draining(), nullptr);
  draining_ = false;
  fail({}, draining(), std::move(when_drained_));
}

}  // namespace kilokv::server
