// The executor's part that parks, wakes, lists and drains.

#include <algorithm>
#include <utility>

#include "engine/base/check.hpp"
#include "server/core/pipeline/executor.hpp"

namespace kilokv::server {

constexpr std::size_t kCandidatesPerBatch = 1024;  // about a quarter of a millisecond
constexpr std::size_t kGuardsPerCandidate = 8;     // one with more of them counts more than once

bool Executor::park(const Batch& batch, const BatchPart& part, std::uint32_t t) {
  Parked parked;
  parked.id = part.parked_id;
  parked.owner = part.request;
  parked.session = part.request->identity.session;
  parked.request = part.request->identity.number;
  parked.index = part.parked_id != 0 ? part.items.front().index : part.request->index_of(part.first + (t - part.begin));
  parked.arrival = part.first_arrival + (t - part.begin);
  parked.admitted_batch = part.admitted_batch;
  parked.deadline_us = part.parked_id != 0 ? part.deadline_us : batch.header.time_us + batch.columns.wait_timeout_us[t];
  parked.guard = batch.results.failed_index[t];
  parked.precedence = batch.columns.precedence[t];
  const Result<std::uint64_t> id = drained_ ? draining() : parking_.park(batch.columns, t, std::move(parked));
  if (!id.ok()) {
    parking_refusal_ = id.status();
  } else if (part.parked_id == 0) {
    part.request->parked_ids.push_back(*id);
  }
  return id.ok();
}

void Executor::park_postponed(Batch* batch) {
  const auto postponed = [batch](std::uint32_t t) {
    return batch->results.outcome[t] == static_cast<std::uint8_t>(engine::Outcome::postponed);
  };
  for (BatchPart& part : batch->parts) {
    std::vector<LiveItem> done;
    bool any = false;
    for (std::uint32_t t = part.begin; t < part.end; ++t) {
      if (postponed(t)) {
        any = true;
        if (!park(*batch, part, t)) unparkable_.push_back(part.request);
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
}

// A key of their guards was written: those that have something new to say join the next batch, the others would only be
// postponed again. So many of them for each batch; when there is nothing else to do, one round after the other.
void Executor::look_at_candidates() {
  if (!parking_.has_candidates()) return;
  const BatchNumber last = core_->executed.batch();
  if (looked_after_ == last && core_->in_flight.load() > 0) return;
  looked_after_ = last;
  const std::size_t woken_max = core_->options.batch_max_transactions;
  for (std::size_t looked = 0; looked < kCandidatesPerBatch && woken_.size() < woken_max;) {
    const Parked* candidate = parking_.next_candidate();
    if (candidate == nullptr) return;
    scratch_.clear();
    engine::unpack_transaction(candidate->packed, &scratch_);
    looked += 1 + scratch_.guard_kind.size() / kGuardsPerCandidate;
    if (!core_->engine->would_wait(scratch_, 0)) woken_.push_back(candidate->id);
  }
}

void Executor::publish_parked() {
  core_->parked.store(parking_.size(), std::memory_order_relaxed);
  core_->parked_bytes.store(parking_.memory_bytes(), std::memory_order_relaxed);
}

void Executor::unpark(const AdmittedRequest& run) {
  for (const std::uint64_t id : run.parked_ids) {
    if (parking_.find(id) != nullptr) parking_.take(id);
  }
}

std::vector<ParkedTransaction> Executor::list_parked(std::uint64_t after_id, std::uint32_t limit) const {
  std::vector<ParkedTransaction> listed;
  engine::TransactionColumns columns;
  for (const Parked* parked : parking_.list(after_id, limit)) {
    ParkedTransaction out;
    out.id = parked->id;
    out.session = parked->session;
    out.request = parked->request;
    out.index = parked->index;
    out.guard = parked->guard;
    columns.clear();
    engine::unpack_transaction(parked->packed, &columns);
    if (columns.guard_kind[parked->guard] != static_cast<std::uint8_t>(engine::GuardKind::range_unchanged)) {
      out.guard_key = columns.key(columns.guard_key[parked->guard]);
    }
    out.admitted_batch = parked->admitted_batch;
    out.deadline_us = parked->deadline_us;
    listed.push_back(std::move(out));
  }
  return listed;
}

void Executor::cancel(const CancelTarget& target, std::function<void(Result<std::uint64_t>)> done) {
  cancelling_.push_back({core_->queue.pushed(), target, std::move(done)});
}

void Executor::drain(std::function<void()> done) {
  draining_ = true;
  when_drained_ = std::move(done);
}

bool Executor::drained() const {
  return core_->queue.transactions() == 0 && refused_ == nullptr && woken_.empty() && !parking_.has_candidates() &&
         cancelling_.empty() && pending_cancelled_.empty() && pending_entries_.empty() && pending_durable_.empty() &&
         core_->in_flight.load() == 0;
}

void Executor::finish_drain() {
  draining_ = false;
  drained_ = true;
  std::vector<std::shared_ptr<AdmittedRequest>> runs;
  while (!parking_.empty()) {
    const Parked parked = parking_.take(parking_.list(0, 1).front()->id);
    runs.push_back(std::static_pointer_cast<AdmittedRequest>(parked.owner));
  }
  publish_parked();
  fail_runs(std::move(runs), draining(), std::move(when_drained_));
}

}  // namespace kilokv::server
