#include "server/core/pipeline/log_stage.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "server/core/fail_point.hpp"
#include "server/core/sessions/stored_results.hpp"

namespace kilokv::server {

void LogStage::encode_results(Batch* batch) {
  for (BatchPart& part : batch->parts) {
    if (!part.request->identity.session || part.answered() == 0) continue;
    part.encoded_begin = batch->encoded_results.size();
    server::encode_results(batch->slice_of(part, *core_->engine), core_->options.result_bytes_max,
                           &part.request->stored_read_bytes, &batch->encoded_results);
    part.encoded_end = batch->encoded_results.size();
  }
}

// Called after encode_results, because views into encoded_results must not move any more.
void LogStage::add_session_results(Batch* batch) {
  for (const BatchPart& part : batch->parts) {
    if (part.encoded_begin == part.encoded_end) continue;
    const AdmittedRequest& request = *part.request;
    SessionEntry entry;
    entry.kind = SessionEntry::Kind::results;
    entry.identity = request.identity;
    entry.transactions = request.transactions;
    entry.results =
        std::string_view(batch->encoded_results).substr(part.encoded_begin, part.encoded_end - part.encoded_begin);
    batch->session_entries.push_back(entry);
  }
}

TimeUs LogStage::step() {
  group_ = core_->to_log.take_all();
  if (group_.empty() || core_->stopped.load()) return kNever;
  const Clock& clock = *core_->environment.clock;
  const TimeUs begin_us = clock.monotonic_us();
  core_->metrics.appends.begin(begin_us);
  records_.clear();
  for (auto& batch : group_) {
    encode_results(batch.get());
    add_session_results(batch.get());
    LogRecord record;
    record.header = batch->header;
    record.next_version = batch->after.next_version;
    record.tombstone_floor = batch->after.tombstone_floor;
    record.transactions = static_cast<std::uint32_t>(batch->columns.size());
    record.state_hash = batch->after.state_hash;
    record.writes = &batch->writes;
    record.sessions = batch->session_entries;
    record.access = batch->access_changes;
    record.expired = batch->expired;
    records_.push_back(record);
  }
  fail_point("core.log.before_append");
  const TimeUs sync_us = clock.monotonic_us();
  core_->syncs.begin(sync_us);
  if (const Status status = core_->log->append(records_); !status.ok()) {
    core_->fail(status);
    return kNever;
  }
  fail_point("core.log.after_append");
  const auto count = static_cast<std::uint32_t>(group_.size());
  const TimeUs durable_us = clock.monotonic_us();
  core_->metrics.appends.end();
  core_->metrics.append.add_time(begin_us, durable_us);
  core_->metrics.group_batches.add(count);
  core_->syncs.end(durable_us, group_.back()->after.batch, count);
  if (core_->events.batches_appended) {
    core_->events.batches_appended({durable_us - sync_us, group_.back()->after.batch, count});
  }
  for (const auto& batch : group_) {
    batch->times.durable_us = durable_us;
    if (batch->reserved_log_bytes > 0) core_->log->release(batch->reserved_log_bytes);
  }
  core_->durable.set(group_.back()->after);
  const auto expiries = static_cast<std::uint32_t>(
      std::count_if(group_.begin(), group_.end(), [](const auto& batch) { return batch->expired; }));
  for (auto& batch : group_) core_->to_answer.push(std::move(batch));
  group_.clear();
  core_->expiries_in_flight.fetch_sub(expiries, std::memory_order_relaxed);  // first: `in_flight` is never less
  core_->in_flight.fetch_sub(count, std::memory_order_release);
  core_->answer_worker->notify();
  core_->executor_worker->notify();
  return kNever;
}

}  // namespace kilokv::server
