// The executor's part that ends requests without results.

#include <algorithm>
#include <set>
#include <utility>

#include "engine/base/check.hpp"
#include "server/core/pipeline/executor.hpp"

namespace kilokv::server {

// The engine refused the batch (the table is full) and has run nothing: neither number nor versions are used up.
// Session entries and cancellations do not need the table and go into the next batch. Of the rest, only the part that
// is refused alone, too, fails: the requests that write what is there already do not pay for the others. To find it the
// parts run again, half as many at a time after each refusal, twice as many after each success.
void Executor::refuse(std::unique_ptr<Batch> batch, const Status& status) {
  pending_entries_.insert(pending_entries_.begin(), batch->session_entries.begin(), batch->session_entries.end());
  pending_durable_.insert(pending_durable_.begin(), std::make_move_iterator(batch->when_durable.begin()),
                          std::make_move_iterator(batch->when_durable.end()));
  std::vector<BatchPart> parts;
  for (BatchPart& part : batch->parts) {
    (part.begin == part.end ? pending_cancelled_ : parts).push_back(std::move(part));
  }
  KILOKV_CHECK(!parts.empty());
  const bool alone = parts.size() == 1;
  if (alone) fail_runs({parts.front().run}, status, nullptr);
  if (refused_ == nullptr && !alone) {
    refused_step_ = parts.size() / 2;
    refused_next_ = 0;
    batch->parts = std::move(parts);
    refused_ = std::move(batch);
    return;
  }
  if (refused_ != nullptr) {
    refused_step_ = std::max<std::size_t>(refused_step_ / 2, 1);
    if (alone) pass_refused(1);
  }
  batch->clear();
  core_->batches.give(std::move(batch));
}

// So many of the refused batch's next parts have run, or failed.
void Executor::pass_refused(std::size_t parts) {
  refused_next_ += parts;
  if (refused_next_ < refused_->parts.size()) return;
  refused_->clear();
  core_->batches.give(std::move(refused_));
}

// The next parts of the refused batch.
void Executor::append_refused(Batch* batch) {
  std::vector<BatchPart>& parts = refused_->parts;
  while (refused_next_ + 1 < parts.size() && parts[refused_next_].run->failed) ++refused_next_;
  const std::size_t end = std::min(refused_next_ + refused_step_, parts.size());
  for (std::size_t i = refused_next_; i < end; ++i) {
    BatchPart part = parts[i];
    if (part.run->failed) continue;
    const std::uint32_t begin = std::exchange(part.begin, static_cast<std::uint32_t>(batch->columns.size()));
    const std::uint32_t moved = part.begin - begin;  // modulo 2^32
    batch->columns.append(refused_->columns, begin, part.end);
    part.end += moved;
    const bool parked = part.parked_id != 0;
    for (std::uint32_t t = part.begin; t < part.end; ++t) {
      batch->expires.push_back(parked ? part.deadline_us <= batch->header.time_us
                                      : batch->columns.wait_timeout_us[t] == 0);
    }
    for (LiveItem& item : part.items) item.transaction += moved;
    if (!parked) {
      part.admitted_batch = batch->header.number;
      for (LiveItem& item : part.items) item.admitted_batch = part.admitted_batch;
    }
    batch->parts.push_back(std::move(part));
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
