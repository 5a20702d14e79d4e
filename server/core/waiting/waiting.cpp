#include "server/core/waiting/waiting.hpp"

#include <algorithm>
#include <string>

#include "engine/txn/kinds.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {
namespace {

constexpr std::size_t kCandidatesPerBatch = 1024;  // about a quarter of a millisecond
constexpr std::size_t kFilteredPerCall = 1024;
constexpr std::size_t kGuardsPerCandidate = 8;  // a candidate with more guards counts more than once

}  // namespace

Waiting::Waiting(const DatabaseOptions& options)
    : awake_max_(options.batch_max_transactions), lot_(options.parked_max, options.parked_bytes_max) {}

Result<std::uint64_t> Waiting::park(const engine::TransactionColumns& columns, std::size_t t, Parked parked) {
  if (closed_) return draining();
  return lot_.park(columns, t, std::move(parked));
}

void Waiting::end_batch(std::span<const engine::BeforeImage> images) {
  if (!images.empty()) lot_.written(images);
  publish();
}

void Waiting::wake_candidates(const engine::Engine& engine, BatchNumber last, bool idle) {
  if (!lot_.has_candidates()) return;
  if (looked_after_ == last && !idle) return;
  looked_after_ = last;
  for (std::size_t looked = 0; looked < kCandidatesPerBatch && awake_.size() < awake_max_;) {
    const Parked* candidate = lot_.next_candidate();
    if (candidate == nullptr) return;
    scratch_.clear();
    engine::unpack_transaction(candidate->packed, &scratch_);
    looked += 1 + scratch_.guard_kind.size() / kGuardsPerCandidate;
    if (!engine.would_wait(scratch_, 0)) awake_.push_back(candidate->id);
  }
}

// The due transactions and those that are awake, in the order of their first arrival. Removes the ids from those that
// are awake.
std::vector<std::uint64_t> Waiting::next_ids(TimeUs stamp_us, std::size_t max) {
  std::vector<std::uint64_t> ids;
  if (!lot_.empty()) lot_.due(stamp_us, max, &ids);
  for (std::size_t i = ids.size(); i < max && !awake_.empty(); ++i) {
    ids.push_back(awake_.front());
    awake_.pop_front();
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> by_arrival;
  for (const std::uint64_t id : ids) {
    if (const Parked* parked = lot_.find(id); parked != nullptr) by_arrival.emplace_back(parked->arrival, id);
  }
  std::sort(by_arrival.begin(), by_arrival.end());
  by_arrival.erase(std::unique(by_arrival.begin(), by_arrival.end()), by_arrival.end());
  ids.clear();
  for (const auto& [arrival, id] : by_arrival) ids.push_back(id);
  return ids;
}

void Waiting::cancel(const CancelTarget& target, TimeUs now_us, std::function<void(Result<std::uint64_t>)> done) {
  const TimeUs since_us_max = target.filter ? now_us - target.filter->older_than_us : 0;
  cancelling_.push_back({target, since_us_max, lot_.last_id(), 0, 0, std::move(done)});
}

std::vector<std::uint64_t> Waiting::ids_of(const CancelTarget& target) const {
  if (target.parked_id != 0) {
    if (lot_.find(target.parked_id) == nullptr) return {};
    return {target.parked_id};
  }
  if (!target.session) return {};
  return lot_.of_request(*target.session, target.request, target.indices);
}

std::optional<Waiting::Cancelled> Waiting::take_cancelled(const std::function<bool(const RequestName&)>& is_queued) {
  const auto ready = std::find_if(cancelling_.begin(), cancelling_.end(), [&](const Cancelling& cancelling) {
    const CancelTarget& target = cancelling.target;
    return !target.session || !is_queued({*target.session, target.request});
  });
  if (ready == cancelling_.end()) return std::nullopt;
  Status allowed = ready->target.allowed ? ready->target.allowed() : Status();
  if (!allowed.ok()) {
    if (ready->count == 0) allowed = allowed.as_not_run();
    Cancelled refused{{}, std::move(ready->done), std::move(allowed)};
    cancelling_.erase(ready);
    return refused;
  }
  bool is_last = true;
  const std::vector<std::uint64_t> ids = ready->target.filter ? next_ids_of(&*ready, &is_last) : ids_of(ready->target);
  Cancelled cancelled;
  for (const std::uint64_t id : ids) cancelled.parked.push_back(lot_.take(id));
  cancelled.count = ready->count += ids.size();
  if (is_last) {
    cancelled.done = std::move(ready->done);
    cancelling_.erase(ready);
  }
  if (!cancelled.parked.empty()) {  // in one pass, because a cancel can name as many as a request has
    drop_gone_from_awake();
  }
  publish();
  return cancelled;
}

// The next transactions that the filter of the cancel lets pass.
std::vector<std::uint64_t> Waiting::next_ids_of(Cancelling* cancelling, bool* is_last) {
  std::vector<std::uint64_t> ids;
  const std::vector<const Parked*> looked = lot_.list(cancelling->after_id, kFilteredPerCall);
  for (const Parked* parked : looked) {
    if (parked->id > cancelling->last_id) break;
    if (passes(*parked, *cancelling)) ids.push_back(parked->id);
  }
  *is_last = looked.size() < kFilteredPerCall || looked.back()->id >= cancelling->last_id;
  if (!looked.empty()) cancelling->after_id = looked.back()->id;
  return ids;
}

bool Waiting::passes(const Parked& parked, const Cancelling& cancelling) {
  const ParkedFilter& filter = *cancelling.target.filter;
  if (!filter.client.empty() && (parked.client == nullptr || parked.client->name != filter.client)) return false;
  if (parked.since_us > cancelling.since_us_max) return false;
  return filter.key_prefix.empty() || guard_key_of(parked).starts_with(filter.key_prefix);
}

// The key of the deciding guard; empty for a guard of a range. Valid until the next call.
std::string_view Waiting::guard_key_of(const Parked& parked) {
  scratch_.clear();
  engine::unpack_transaction(parked.packed, &scratch_);
  if (uses_range(static_cast<engine::GuardKind>(scratch_.guard_kind[parked.guard]))) return {};
  return scratch_.key(scratch_.guard_key[parked.guard]);
}

std::vector<ParkedTransaction> Waiting::list(std::uint64_t after_id, std::uint32_t limit) {
  std::vector<ParkedTransaction> listed;
  for (const Parked* parked : lot_.list(after_id, limit)) {
    ParkedTransaction out;
    out.id = parked->id;
    out.session = parked->session;
    out.request = parked->request;
    out.index = parked->index;
    out.guard = parked->guard;
    out.guard_key = guard_key_of(*parked);
    out.since_us = parked->since_us;
    if (parked->client != nullptr) out.client = parked->client->name;
    out.admitted_batch = parked->admitted_batch;
    out.deadline_us = parked->deadline_us;
    listed.push_back(std::move(out));
  }
  return listed;
}

void Waiting::forget(std::span<const std::uint64_t> ids) {
  bool any = false;
  for (const std::uint64_t id : ids) {
    if (lot_.find(id) == nullptr) continue;
    static_cast<void>(lot_.take(id));
    any = true;
  }
  if (any) drop_gone_from_awake();
  publish();
}

void Waiting::drop_gone_from_awake() {
  std::erase_if(awake_, [this](std::uint64_t id) { return lot_.find(id) == nullptr; });
}

std::vector<Parked> Waiting::close() {
  closed_ = true;
  std::vector<Parked> left;
  while (!lot_.empty()) left.push_back(lot_.take(lot_.list(0, 1).front()->id));
  publish();
  return left;
}

void Waiting::publish() {
  parked_.store(lot_.size(), std::memory_order_relaxed);
  parked_bytes_.store(lot_.memory_bytes(), std::memory_order_relaxed);
}

}  // namespace kilokv::server
