#include "server/core/pipeline/answer_stage.hpp"

#include <string>
#include <utility>

#include "engine/base/check.hpp"
#include "server/core/fail_point.hpp"
#include "server/core/pipeline/transaction_cost.hpp"

namespace kilokv::server {

void AnswerStage::answer_part(const Batch& batch, const BatchPart& part) {
  const std::uint32_t answered = part.answered();
  if (answered == 0) return;
  AdmittedRequest& request = *part.request;
  KILOKV_CHECK(answered <= request.unanswered);
  request.unanswered -= answered;
  const LiveSlice slice = batch.slice_of(part, *core_->engine);
  if (request.identity.session) {
    core_->sessions.deliver(*request.identity.session, request.identity.number, slice,
                            batch.encoded_results.substr(part.encoded_begin, part.encoded_end - part.encoded_begin));
  } else {
    request.sink->results(slice, request.unanswered == 0);
  }
  if (request.unanswered != 0) return;
  core_->queue.finished(request);
  if (core_->tells_requests()) {
    const DurationUs took_us = core_->environment.clock->monotonic_us() - request.admitted_us;
    core_->events.request_answered(CoreContext::report_of(request, took_us));
  }
}

void AnswerStage::answer(Batch* batch) {
  for (const SessionEntry& entry : batch->session_entries) {
    if (entry.kind != SessionEntry::Kind::results && core_->events.session_changed)
      core_->events.session_changed(entry);
    // Neither call can be refused: id and lease are valid, a place was reserved, and closing twice does no harm.
    switch (entry.kind) {
      case SessionEntry::Kind::opened:
        static_cast<void>(core_->sessions.open(*entry.identity.session, entry.lease_us,
                                               core_->environment.clock->monotonic_us(), entry.user));
        break;
      case SessionEntry::Kind::closed:
        static_cast<void>(core_->sessions.close(*entry.identity.session));
        core_->executor_worker->notify();  // it frees what the session held
        break;
      case SessionEntry::Kind::attached:
        core_->sessions.attached(*entry.identity.session, entry.identity.holder);
        break;
      case SessionEntry::Kind::results: break;  // answer_part() delivers them
    }
  }
  fail_point("core.answer.before");
  for (const BatchPart& part : batch->parts) answer_part(*batch, part);
  fail_point("core.answer.after");
  const Clock& clock = *core_->environment.clock;
  core_->slow.look(*batch, clock.monotonic_us(), clock.wall_us(), core_->events.transaction_slow);
  for (const auto& work : batch->when_durable) work();
}

TimeUs AnswerStage::step() {
  for (auto& batch : core_->to_answer.take_all()) {
    if (core_->stopped.load()) return kNever;
    answer(batch.get());
    core_->answered.set(batch->after);
    core_->at_boundary.run_through(batch->after.batch);
    const bool was_full = core_->unanswered_parts.fetch_sub(batch->unanswered_parts) > kWholeBatch;
    const bool was_in_flight = core_->unanswered(batch->expired)->fetch_sub(1) > CoreContext::kAnsweredLater;
    if (was_full || was_in_flight) core_->executor_worker->notify();
    core_->batch_bytes.fetch_sub(batch->memory_bytes, std::memory_order_relaxed);
    batch->clear();
    core_->batches.give(std::move(batch));
  }
  core_->at_boundary.run_through(core_->answered.batch());
  return kNever;
}

}  // namespace kilokv::server
