#include "server/core/waiting/waiting.hpp"

#include <algorithm>
#include <string>

#include "engine/txn/kinds.hpp"
#include "server/core/request.hpp"

namespace kilokv::server {
namespace {

constexpr std::size_t kCandidatesPerBatch = 1024;  // about a quarter of a millisecond
constexpr std::size_t kLookedPerCall = 1024;       // by a cancel
constexpr std::size_t kGoneMax = 1024;
constexpr std::size_t kGuardsPerCandidate = 8;  // a candidate with more guards counts more than once

}  // namespace

Waiting::Waiting(const DatabaseOptions& options, std::function<bool(const Parked&)> is_over)
    : awake_max_(options.batch_max_transactions),
      is_over_(std::move(is_over)),
      lot_(options.parked_max, options.parked_bytes_max) {}

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
  for (std::size_t looked = 0; looked < kCandidatesPerBatch && awake_count_ < awake_max_;) {
    Parked* const candidate = lot_.next_candidate();
    if (candidate == nullptr) return;
    if (candidate->awake || is_over(*candidate)) {
      ++looked;
      continue;
    }
    scratch_.clear();
    engine::unpack_transaction(candidate->packed, &scratch_);
    looked += 1 + scratch_.guard_kind.size() / kGuardsPerCandidate;
    if (!engine.would_wait(scratch_, 0)) wake_last(candidate);
  }
}

void Waiting::wake_last(Parked* parked) {
  parked->awake = true;
  ++awake_count_;
  awake_.push_back(parked->id);
}

void Waiting::wake_first(std::uint64_t id) {
  lot_.find(id)->awake = true;
  ++awake_count_;
  awake_.push_front(id);
}

// The transaction that woke first; it is not awake any more. 0: none is awake.
std::uint64_t Waiting::next_awake() {
  while (!awake_.empty()) {
    Parked* const parked = lot_.find(awake_.front());
    awake_.pop_front();
    if (parked == nullptr || !parked->awake) continue;  // it has left
    parked->awake = false;
    --awake_count_;
    return parked->id;
  }
  return 0;
}

Parked Waiting::take(std::uint64_t id) {
  Parked parked = lot_.take(id);
  if (parked.awake) --awake_count_;
  return parked;
}

// The due transactions and those that are awake, in the order of their first arrival. They are not awake any more. Each
// gets half of the places if it needs so many. If a half is not a whole number, it is rounded up every other time.
std::vector<std::uint64_t> Waiting::next_ids(TimeUs stamp_us, std::size_t max) {
  std::vector<std::uint64_t> ids;
  round_up_ = !round_up_;
  const std::size_t of_awake = std::min(awake_count_, (max + (round_up_ ? 1 : 0)) / 2);
  if (!lot_.empty()) lot_.due(stamp_us, max - of_awake, &ids);
  while (ids.size() < max) {
    const std::uint64_t id = next_awake();
    if (id == 0) break;
    ids.push_back(id);
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> by_arrival;
  for (const std::uint64_t id : ids) {
    const Parked& parked = *lot_.find(id);
    if (is_over(parked)) {
      static_cast<void>(take(id));
    } else {
      by_arrival.emplace_back(parked.arrival, id);
    }
  }
  std::sort(by_arrival.begin(), by_arrival.end());
  ids.clear();
  for (const auto& [arrival, id] : by_arrival) ids.push_back(id);
  return ids;
}

void Waiting::cancel(CancelTarget target, TimeUs now_us, std::function<void(Result<std::uint64_t>)> done) {
  const TimeUs since_us_max = target.filter ? now_us - target.filter->older_than_us : 0;
  std::sort(target.indices.begin(), target.indices.end());
  cancelling_.push_back({std::move(target), since_us_max, false, 0, lot_.last_id(), 0, std::move(done)});
}

std::optional<Waiting::Cancelled> Waiting::take_cancelled(const std::function<bool(const RequestName&)>& is_queued,
                                                          std::size_t max) {
  const auto ready = std::find_if(cancelling_.begin(), cancelling_.end(), [&](const Cancelling& cancelling) {
    const CancelTarget& target = cancelling.target;
    return cancelling.begun || !target.session || !is_queued({*target.session, target.request});
  });
  if (ready == cancelling_.end()) return std::nullopt;
  Cancelling cancelling = std::move(*ready);
  cancelling_.erase(ready);
  Status allowed = cancelling.target.allowed ? cancelling.target.allowed() : Status();
  if (!allowed.ok()) {
    if (cancelling.count == 0) allowed = allowed.as_not_run();
    return Cancelled{{}, std::move(cancelling.done), std::move(allowed)};
  }
  if (!cancelling.begun) begin(&cancelling);
  std::vector<std::uint64_t> ids;
  const bool is_last = next_ids_of(&cancelling, max, &ids);
  Cancelled cancelled;
  for (const std::uint64_t id : ids) cancelled.parked.push_back(take(id));
  cancelled.count = cancelling.count += cancelled.parked.size();
  if (is_last) {
    cancelled.done = std::move(cancelling.done);
  } else {
    cancelling_.push_back(std::move(cancelling));
  }
  drop_gone_from_awake();
  publish();
  return cancelled;
}

// Finds between which ids the cancel has to look. A filter looks at everything that was parked when the cancel came.
void Waiting::begin(Cancelling* cancelling) {
  cancelling->begun = true;
  const CancelTarget& target = cancelling->target;
  if (target.filter) return;
  ParkingLot::IdRange ids{target.parked_id, target.parked_id};
  if (target.parked_id == 0) {
    const std::optional<ParkingLot::IdRange> of_request =
        target.session ? lot_.ids_of_request({*target.session, target.request}) : std::nullopt;
    ids = of_request.value_or(ParkingLot::IdRange{1, 0});
  }
  cancelling->after_id = ids.first - 1;
  cancelling->last_id = ids.last;
}

// Appends the next ids that the cancel names, at most `max`. Returns whether these are the last ones.
bool Waiting::next_ids_of(Cancelling* cancelling, std::size_t max, std::vector<std::uint64_t>* ids) {
  const std::vector<const Parked*> looked = lot_.list(cancelling->after_id, kLookedPerCall, cancelling->last_id);
  for (const Parked* parked : looked) {
    if (ids->size() == max) return false;
    cancelling->after_id = parked->id;
    if (names(*cancelling, *parked) && !is_over(*parked)) ids->push_back(parked->id);
  }
  return looked.size() < kLookedPerCall || cancelling->after_id == cancelling->last_id;
}

// Requires: the id is one of those between which the cancel looks.
bool Waiting::names(const Cancelling& cancelling, const Parked& parked) {
  const CancelTarget& target = cancelling.target;
  if (target.filter) return passes(parked, cancelling);
  if (target.parked_id != 0) return true;
  if (parked.session != target.session || parked.request != target.request) return false;
  return target.indices.empty() || std::binary_search(target.indices.begin(), target.indices.end(), parked.index);
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

std::uint64_t Waiting::visit(std::uint64_t after_id, std::size_t limit,
                             const std::function<void(const Parked&)>& visitor) const {
  const std::vector<const Parked*> listed = lot_.list(after_id, limit);
  for (const Parked* parked : listed) visitor(*parked);
  return listed.empty() ? 0 : listed.back()->id;
}

void Waiting::forget(std::span<const std::uint64_t> ids) {
  for (const std::uint64_t id : ids) {
    if (std::as_const(lot_).find(id) != nullptr) static_cast<void>(take(id));
  }
  drop_gone_from_awake();
  publish();
}

// Looks at all only if most have left, so that this costs little for each that leaves.
void Waiting::drop_gone_from_awake() {
  if (awake_.size() <= 2 * awake_count_ + kGoneMax) return;
  std::erase_if(awake_, [this](std::uint64_t id) {
    const Parked* const parked = lot_.find(id);
    return parked == nullptr || !parked->awake;
  });
}

void Waiting::publish() {
  parked_.store(lot_.size(), std::memory_order_relaxed);
  parked_bytes_.store(lot_.memory_bytes(), std::memory_order_relaxed);
}

}  // namespace kilokv::server
