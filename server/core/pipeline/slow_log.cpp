#include "server/core/pipeline/slow_log.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/txn/kinds.hpp"

namespace kilokv::server {
namespace {

constexpr DurationUs kSecondUs = 1000000;

// A clock that seems to go back counts as no time.
DurationUs between(TimeUs begin_us, TimeUs end_us) { return std::max<DurationUs>(end_us - begin_us, 0); }

// The guard for which the transaction of this part was parked last.
void describe_guard(const engine::TransactionColumns& columns, const BatchPart& part, SlowTransaction* slow) {
  const std::uint32_t g = columns.guard_begin(part.begin) + part.parked_guard;
  if (g >= columns.guard_end[part.begin]) return;
  slow->guard = part.parked_guard;
  slow->guards_range = uses_range(static_cast<engine::GuardKind>(columns.guard_kind[g]));
  slow->guard_key = slow->guards_range ? columns.range_from(columns.guard_key[g]) : columns.key_of_guard(g);
}

}  // namespace

void SlowLog::look(const Batch& batch, TimeUs now_us, TimeUs wall_us, const Tell& tell) {
  if (threshold_us_ == 0) return;
  for (const BatchPart& part : batch.parts) {
    if (now_us - part.request->admitted_us < threshold_us_) continue;
    if (part.begin == part.end || part.answered() == 0) continue;  // cancelled before it ran, or it goes on waiting
    SlowTransaction slow = times_of(batch, part, now_us);
    slow.answered_us = wall_us;
    note(batch, part, std::move(slow), now_us, tell);
  }
}

// A wait is measured by the stamps of batches, which follow jumps of the wall clock. So it is bounded by the time that
// was left for it.
SlowTransaction SlowLog::times_of(const Batch& batch, const BatchPart& part, TimeUs now_us) const {
  const AdmittedRequest& request = *part.request;
  SlowTransaction slow;
  slow.total_us = between(request.admitted_us, now_us);
  slow.execution_us = between(batch.times.formed_us, batch.times.executed_us);
  slow.sync_us = between(batch.times.executed_us, batch.times.durable_us);
  slow.answer_us = between(batch.times.durable_us, now_us);
  const DurationUs before_us = between(request.admitted_us, batch.times.formed_us);
  if (part.parked_id != 0) slow.waited_us = std::min(between(part.parked_since_us, batch.header.time_us), before_us);
  slow.queued_us = before_us - slow.waited_us;
  slow.reads = request.most_reads.amount + request.uploaded.keys;
  const bool reads_much = slow.reads >= large_reads_;
  const std::pair<DurationUs, SlowReason> stages[] = {
      {slow.waited_us, SlowReason::waiting},
      {slow.queued_us, SlowReason::queued},
      {slow.execution_us, reads_much ? SlowReason::large_read : SlowReason::execution},
      {slow.sync_us, SlowReason::sync},
      {slow.answer_us, SlowReason::answer}};
  slow.reason = std::max_element(std::begin(stages), std::end(stages), [](const auto& a, const auto& b) {
                  return a.first < b.first;
                })->second;
  return slow;
}

void SlowLog::describe(const Batch& batch, const BatchPart& part, SlowTransaction* slow) {
  const AdmittedRequest& request = *part.request;
  slow->client = request.client->name;
  slow->session = request.identity.session;
  slow->request = request.identity.number;
  slow->index = part.whole ? request.index_of(part.first) : part.items.front().index;
  slow->transactions = part.answered();
  const std::uint32_t first = part.whole ? part.begin : part.items.front().transaction;
  slow->outcome = static_cast<engine::Outcome>(batch.results.outcome[first]);
  slow->batch = batch.header.number;
  slow->admitted_batch = part.admitted_batch;
  slow->batch_transactions = static_cast<std::uint32_t>(batch.columns.size());
  slow->trace = request.trace;
  if (part.parked_id != 0) describe_guard(batch.columns, part, slow);
}

void SlowLog::note(const Batch& batch, const BatchPart& part, SlowTransaction slow, TimeUs now_us, const Tell& tell) {
  OfReason& of_reason = reasons_[static_cast<std::size_t>(slow.reason)];
  std::uint64_t left_out = 0;
  {
    const std::scoped_lock lock(mutex_);
    of_reason.count += part.answered();
    if (now_us - of_reason.second_us >= kSecondUs) {
      of_reason.second_us = now_us;
      of_reason.records = of_reason.lines = 0;
    }
    if (of_reason.records == kRecordsPerSecond) {
      of_reason.untold += part.answered();
      return;
    }
    ++of_reason.records;
    describe(batch, part, &slow);
    of_reason.kept.push_back(slow);
    if (of_reason.kept.size() > kKept) of_reason.kept.pop_front();
    if (of_reason.lines == kLinesPerSecond) {
      of_reason.untold += part.answered();
      return;
    }
    ++of_reason.lines;
    left_out = std::exchange(of_reason.untold, 0);
  }
  if (tell) tell(slow, left_out);
}

std::vector<SlowTransaction> SlowLog::latest() const {
  std::vector<SlowTransaction> all;
  {
    const std::scoped_lock lock(mutex_);
    for (const OfReason& of_reason : reasons_) all.insert(all.end(), of_reason.kept.begin(), of_reason.kept.end());
  }
  std::stable_sort(all.begin(), all.end(), [](const SlowTransaction& a, const SlowTransaction& b) {
    return a.answered_us != b.answered_us ? a.answered_us > b.answered_us : a.batch > b.batch;
  });
  return all;
}

std::array<std::uint64_t, kSlowReasons> SlowLog::counts() const {
  std::array<std::uint64_t, kSlowReasons> counts{};
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < kSlowReasons; ++i) counts[i] = reasons_[i].count;
  return counts;
}

}  // namespace kilokv::server
