// The executor's part that ends requests without results.

#include <algorithm>
#include <set>
#include <utility>

#include "engine/base/check.hpp"
#include "server/core/executor.hpp"

namespace kilokv::server {

// The engine refused the batch (the table is full) and has run nothing: neither number nor versions are used up.
// Session entries and cancellations do not need the table and go into the next batch. Of the rest, only the part that
// is refused alone, too, fails: the requests that write what is there already do not pay for the others.
void Executor::refuse(std::unique_ptr<Batch> batch, const Status& status) {
  pending_entries_.insert(pending_entries_.begin(), batch->session_entries.begin(), batch->session_entries.end());
  pending_durable_.insert(pending_durable_.begin(), std::make_move_iterator(batch->when_durable.begin()),
                          std::make_move_iterator(batch->when_durable.end()));
  std::vector<BatchPart> parts;
  for (BatchPart& part : batch->parts) {
    (part.begin == part.end ? pending_cancelled_ : parts).push_back(std::move(part));
  }
  batch->parts = std::move(parts);
  if (batch->parts.size() > 1) {
    refused_ = std::move(batch);
    refused_next_ = 0;
    return;
  }
  KILOKV_CHECK(!batch->parts.empty());
  fail_runs({batch->parts.front().run}, status, nullptr);
  batch->clear();
  core_->batches.give(std::move(batch));
}

// The next part of the refused batch, alone.
void Executor::append_refused(Batch* batch) {
  BatchPart part = std::move(refused_->parts[refused_next_++]);
  if (!part.run->failed) {
    batch->columns.append(refused_->columns, part.begin, part.end);
    const bool parked = part.parked_id != 0;
    for (std::uint32_t t = 0; t < batch->columns.size(); ++t) {
      batch->last_try.push_back(parked ? part.deadline_us <= batch->header.time_us
                                       : batch->columns.wait_timeout_us[t] == 0);
    }
    for (LiveItem& item : part.items) item.transaction -= part.begin;
    part.end -= part.begin;
    part.begin = 0;
    if (!parked) {
      part.admitted_batch = batch->header.number;
      for (LiveItem& item : part.items) item.admitted_batch = part.admitted_batch;
    }
    batch->parts.push_back(std::move(part));
  }
  if (refused_next_ == refused_->parts.size()) {
    refused_->clear();
    core_->batches.give(std::move(refused_));
  }
}

// Ends runs without results, in the answer worker, after everything that was executed or cancelled so far.
void Executor::fail_runs(std::vector<std::shared_ptr<RequestRun>> runs, const Status& status,
                         std::function<void()> done) {
  for (const auto& run : runs) {
    run->failed = true;
    unpark(*run);
  }
  publish_parked();
  auto fail_all = [core = core_, runs = std::move(runs), status, done] {
    std::set<const RequestRun*> seen;
    for (const auto& run : runs) {
      if (!seen.insert(run.get()).second) continue;
      if (run->session) {
        core->sessions.abandon(*run->session, run->number, status);
      } else {
        run->sink->fail(status);
      }
      core->queue.finished(*run);
      core->counters.refused.fetch_add(1, std::memory_order_relaxed);
    }
    if (done) done();
  };
  const auto of_failed = [](const BatchPart& part) { return part.run->failed; };
  if (std::any_of(pending_cancelled_.begin(), pending_cancelled_.end(), of_failed)) {
    pending_durable_.push_back(std::move(fail_all));
    return;
  }
  core_->at_boundary.add(core_->executed.batch(), std::move(fail_all));
  core_->answer_worker->notify();
}

}  // namespace kilokv::server
